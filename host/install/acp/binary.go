package acp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

// maxArchive is the largest download, in bytes.
const maxArchive = 512 << 20

// binary installs an archive, or a bare executable.
func (s *Store) binary(ctx context.Context, dir string, a Installed, pins pinned) (outcome, error) {
	packed := filepath.Join(dir, ".archive")
	hash, err := s.download(ctx, a.Way.Archive, packed)
	if err != nil {
		return outcome{}, err
	}
	defer os.Remove(packed)
	got := "sha256:" + hash
	if want := a.Way.SHA256; want != "" && want != hash {
		return outcome{}, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "agent %s %s: its archive has the hash %s, not %s as the registry says", a.ID, a.Version, hash, want).
			WithHint("nothing was installed; report it to the registry")
	}
	if pins.integrity != "" && pins.integrity != got {
		return outcome{}, changed(a, pins.integrity, got)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return outcome{}, install.WriteError(err)
	}
	defer root.Close()
	if err := root.Mkdir("tree", 0o700); err != nil {
		return outcome{}, install.WriteError(err)
	}
	tree, err := root.OpenRoot("tree")
	if err != nil {
		return outcome{}, install.WriteError(err)
	}
	defer tree.Close()
	u, err := url.Parse(a.Way.Archive)
	if err != nil {
		return outcome{}, err
	}
	file := path.Base(u.Path)
	switch {
	case isArchive(file):
		if err := install.Extract(packed, file, tree); err != nil {
			if e, ok := errors.AsType[*pluginapi.Error](err); ok && e.Code == pluginapi.CodePluginInvalid {
				return outcome{}, pluginapi.Errorf(e.Code, "agent %s %s: its archive is refused: %s", a.ID, a.Version, e.Msg).WithHint("report it to the registry")
			}
			return outcome{}, err
		}
	case installerOf(file):
		return outcome{}, pluginapi.Errorf(pluginapi.CodePluginInvalid, "agent %s %s: %.60q is an installer, not an archive", a.ID, a.Version, file).
			WithHint("try another way with --method")
	default: // the executable itself
		if err := tree.MkdirAll(path.Dir(a.Way.Command), 0o700); err != nil {
			return outcome{}, install.WriteError(err)
		}
		if err := os.Rename(packed, filepath.Join(dir, "tree", filepath.FromSlash(a.Way.Command))); err != nil {
			return outcome{}, install.WriteError(err)
		}
	}
	if err := tree.Chmod(a.Way.Command, 0o555); err != nil && !errors.Is(err, os.ErrNotExist) {
		return outcome{}, install.WriteError(err)
	}
	return outcome{program: "tree/" + a.Way.Command, integrity: got}, nil
}

func isArchive(name string) bool {
	return endsIn(name, ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".zip")
}

func installerOf(name string) bool {
	return endsIn(name, ".dmg", ".pkg", ".deb", ".rpm", ".msi", ".appimage", ".tar", ".tar.xz", ".txz", ".7z", ".rar", ".gz", ".xz")
}

func endsIn(name string, endings ...string) bool {
	for _, ending := range endings {
		if strings.HasSuffix(strings.ToLower(name), ending) {
			return true
		}
	}
	return false
}

// download fetches a file and returns its SHA-256.
func (s *Store) download(ctx context.Context, address, to string) (hash string, err error) {
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	shown, _, _ := strings.Cut(address, "?")
	s.Note("fetching %s", shown)
	body, err := get(ctx, s.HTTP, address, s.agent())
	if err != nil {
		return "", err
	}
	defer body.Close()
	stalled := time.AfterFunc(time.Minute, cancel)
	defer stalled.Stop()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return "", install.WriteError(err)
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(alive{body, stalled}, maxArchive+1))
	if closeErr := f.Close(); err == nil && closeErr != nil {
		return "", install.WriteError(closeErr)
	}
	switch {
	case err != nil:
		return "", fetchError(address, err)
	case n > maxArchive:
		return "", fetchError(address, errors.New("it has more than 512 MiB"))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// alive ends a download through which nothing comes for a minute.
type alive struct {
	io.Reader
	timer *time.Timer
}

func (a alive) Read(b []byte) (int, error) {
	n, err := a.Reader.Read(b)
	a.timer.Reset(time.Minute)
	return n, err
}
