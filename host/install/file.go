package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// maxSmall is the most that is read of a lock, a manifest, a description or the like.
const maxSmall = 4 << 20

// readSmall reads a file that somebody else wrote.
func readSmall(path string) ([]byte, error) { return foreign.Read(path, foreign.Rule{Limit: maxSmall}) }

// ReplaceFile puts data in the place of a file, so that it holds the old content
// or the new, whenever this process or the machine dies.
func ReplaceFile(path string, data []byte) (retErr error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return WriteError(err)
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return WriteError(err)
	}
	defer func() {
		if retErr != nil {
			_ = temp.Close()
			_ = os.Remove(temp.Name())
		}
	}()
	if _, err := temp.Write(data); err != nil {
		return WriteError(err)
	}
	if err := errors.Join(temp.Sync(), temp.Close()); err != nil {
		return WriteError(err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return WriteError(err)
	}
	return WriteError(syncDir(dir))
}

// replacePublic is ReplaceFile for what others read as well.
func replacePublic(path string, data []byte) error {
	if err := ReplaceFile(path, data); err != nil {
		return err
	}
	return WriteError(os.Chmod(path, 0o644))
}

// WriteError is the error of writing below a folder of amux; nil stays nil.
func WriteError(err error) error {
	switch {
	case err == nil:
		return nil
	case fault.Full(err):
		why, hint := fault.Limit(err)
		return pluginapi.Errorf(pluginapi.CodeDiskFull, "cannot write %s: %s", describePath(err), why).WithHint("%s", hint)
	}
	if why, hint := fault.Limit(err); why != "" {
		return pluginapi.Errorf(pluginapi.CodeConfig, "cannot write %s: %s", describePath(err), why).WithHint("%s", hint)
	}
	return pluginapi.Errorf(pluginapi.CodeConfig, "cannot write %s: %w", describePath(err), fault.Plain(err)).
		WithHint("make it writable, or choose another folder with --config-dir or AMUX_PLUGIN_DIR")
}

func describePath(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Path
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.New
	}
	return "the folder of plugins"
}

// exchangeSlowly swaps two folders by three renames: for a moment there is none
// at the second path.
func exchangeSlowly(from, to string) error {
	aside := from + ".aside"
	if err := os.Rename(to, aside); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Rename(aside, to))
	}
	return os.Rename(aside, from)
}

// syncTree makes all that lies in a folder last.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return syncDir(path)
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(syncFile(f), f.Close())
	})
}
