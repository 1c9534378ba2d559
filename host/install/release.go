package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

// release is what a source tells of one version, before its archive is fetched.
type release struct {
	name, version string
	sums          Sums   // nil: there is no SHA256SUMS
	sumsText      []byte // as it was fetched
	signature     []byte // nil: there is none
	archives      map[string]string
}

// findRelease chooses a version and reads what describes it. name is "" if the
// source may tell it.
func findRelease(ctx context.Context, src Source, name, constraint string) (*release, error) {
	versions, err := src.Versions(ctx)
	if err != nil {
		return nil, err
	}
	version, err := choose(src, versions, constraint)
	if err != nil {
		return nil, err
	}
	r := &release{name: src.Name(), version: version, archives: map[string]string{}}
	if r.sumsText, err = readSmallFile(ctx, src, version, SumsName); err != nil {
		return nil, err
	}
	if r.sumsText != nil {
		if r.sums, err = ParseSums(r.sumsText); err != nil {
			return nil, at(src, err)
		}
		sumsName, sumsVersion, archives, err := r.sums.release()
		if err != nil {
			return nil, at(src, err)
		}
		if r.name != "" && sumsName != r.name && name == "" || r.version != "" && sumsVersion != r.version {
			return nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "%s: %s is of %s %s, not of %s %s", src, SumsName, sumsName, sumsVersion, r.name, r.version)
		}
		r.name, r.version, r.archives = sumsName, sumsVersion, archives
		if r.signature, err = readSmallFile(ctx, src, version, SignatureName); err != nil {
			return nil, err
		}
	}
	if s, ok := src.(single); ok && s.archive() != "" {
		_, v, platform, _ := ParseArchiveName(s.archive())
		if r.sums != nil && r.sums[s.archive()] == "" {
			return nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "%s: %s does not name the archive", src, SumsName).
				WithHint("the file beside it is of another release")
		}
		r.version, r.archives[platform] = v, s.archive()
	}
	if len(r.archives) == 0 {
		return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s: the release %s has no %s", src, version, SumsName).
			WithHint("a release is made by: amux plugin package")
	}
	if name != "" && r.name != name {
		return nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "%s is the plugin %s, not %s", src, r.name, name)
	}
	if err := errors.Join(CheckName(r.name), checkVersion(r.version)); err != nil {
		return nil, err
	}
	return r, nil
}

// choose picks the newest version that the constraint allows; prereleases only
// if it names one.
func choose(src Source, versions []string, constraint string) (string, error) {
	if _, ok := src.(single); ok && constraint == "" && len(versions) == 1 {
		return versions[0], nil
	}
	if constraint == "" {
		constraint = "*"
	}
	exact := strings.TrimPrefix(constraint, "v")
	want, err := semver.NewConstraint(constraint)
	if err != nil {
		return "", pluginapi.Errorf(pluginapi.CodeValidation, "%.80q is no version and no range of versions", constraint).
			WithHint("for example 1.2.0, ^1.2 or ~1.2")
	}
	var best *semver.Version
	var all []string
	for _, text := range versions {
		v, err := semver.StrictNewVersion(text)
		if err != nil {
			continue
		}
		if text == exact {
			return text, nil
		}
		all = append(all, text)
		if want.Check(v) && (best == nil || v.GreaterThan(best)) {
			best = v
		}
	}
	if best != nil {
		return best.Original(), nil
	}
	e := pluginapi.Errorf(pluginapi.CodePluginNotFound, "%s has no version %s", src, constraint)
	if constraint == "*" {
		e = pluginapi.Errorf(pluginapi.CodePluginNotFound, "%s has no release", src)
	}
	if len(all) > 0 {
		slices.SortFunc(all, func(a, b string) int { return semver.MustParse(b).Compare(semver.MustParse(a)) })
		return "", e.WithHint("there are: %s", strings.Join(all[:min(len(all), 8)], ", "))
	}
	return "", e
}

// ExactConstraint names one version, where a source has more than one.
func ExactConstraint(src Source, version string) string {
	if _, ok := src.(single); ok {
		return ""
	}
	return version
}

// read fetches a small file; nil if there is none.
func readSmallFile(ctx context.Context, src Source, version, file string) ([]byte, error) {
	body, err := src.Open(ctx, version, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxSums+1))
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodePlugin, "%s: %s: %w", src, file, fault.Plain(err))
	}
	if len(data) > maxSums {
		return nil, at(src, invalid("%s is larger than 1 MiB", file))
	}
	return data, nil
}

// download streams a file of a release to w and returns its hash.
func download(ctx context.Context, src Source, version, file string, w io.Writer, inject func(string) error) (string, error) {
	body, err := src.Open(ctx, version, file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", pluginapi.Errorf(pluginapi.CodePluginNotFound, "%s: there is no %s", src, file).WithHint("check the address")
	}
	if err != nil {
		return "", err
	}
	defer body.Close()
	h := sha256.New()
	buffer := make([]byte, 256<<10)
	var size int64
	for {
		n, readErr := body.Read(buffer)
		if size += int64(n); size > maxArchive {
			return "", at(src, invalid("%s is larger than %d MiB", file, maxArchive>>20))
		}
		if n > 0 {
			h.Write(buffer[:n])
			if _, err := w.Write(buffer[:n]); err != nil {
				return "", WriteError(err)
			}
			if err := inject("archive part"); err != nil {
				return "", err
			}
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if readErr == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if readErr != nil {
			return "", pluginapi.Errorf(pluginapi.CodePlugin, "%s: %s: the connection broke: %w", src, file, fault.Plain(readErr)).WithHint("try again")
		}
	}
}

// at says where an error is that does not say it itself.
func at(src fmt.Stringer, err error) error {
	if e, ok := errors.AsType[*pluginapi.Error](err); ok {
		return &pluginapi.Error{Code: e.Code, Msg: src.String() + ": " + e.Msg, Hint: e.Hint, Err: e.Err}
	}
	return err
}

func wrongHash(name, version, file, want, got string) error {
	return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s %s: %s has the wrong SHA-256 sum (want %s, got %s)", name, version, file, want, got).
		WithHint("it was changed on its way, or published a second time; nothing was installed")
}

// openPack opens an archive that was downloaded.
func openPack(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, WriteError(err)
	}
	return f, nil
}
