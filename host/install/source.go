package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

// Source is one plugin at the place where its releases are published. Each
// release has SHA256SUMS, which names its archives, and may have a signature of
// it. What a Source gives is not trusted.
type Source interface {
	// String is the source as the lock records it.
	String() string
	// Name is the plugin's name; "" if only the files tell.
	Name() string
	// Versions are those that there are, in any order. A place of one release,
	// whose files tell the version, gives "".
	Versions(ctx context.Context) ([]string, error)
	// Open opens a file of a release. The error is fs.ErrNotExist for a file that
	// is not there.
	Open(ctx context.Context, version, file string) (io.ReadCloser, error)
}

// single is a Source that is one archive.
type single interface{ archive() string }

// Grammar says what can be installed from.
const Grammar = "want ./dir, ./archive.tar.gz, https://host/archive.tar.gz#sha256=…, gh:owner/repo[@version], or the name of a plugin[@version] on a mirror"

// Place is what a user asked to install from.
type Place struct {
	Source     Source // nil for a folder to link
	Link       string // absolute folder of a plugin under development
	Constraint string // of versions
	SHA256     string // that the archive must have
	// Listed is what the index says through which the source was found; nil: none was
	// asked.
	Listed *ListedAs
}

// Mirror is one entry of sources.toml.
type Mirror struct {
	Root    string   `toml:"root"`    // folder or https URL
	Include []string `toml:"include"` // globs of names; empty: all
	Exclude []string `toml:"exclude"`
}

// Sources finds plugins at the places where they are published. It changes nothing.
type Sources struct {
	version string // of amux
	mirrors []Mirror
	client  *http.Client
	api     string // address of GitHub's releases API
	token   string // for the API only
}

var repoRule = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Resolve reads what a user typed. cwd is what relative paths begin at.
func (s *Sources) Resolve(text, cwd string) (Place, error) {
	wrong := func(format string, args ...any) (Place, error) {
		return Place{}, pluginapi.Errorf(pluginapi.CodeValidation, "%.200q: %s", text, fmt.Sprintf(format, args...)).WithHint("%s", Grammar)
	}
	scheme, rest, hasScheme := strings.Cut(text, ":")
	switch {
	case text == "":
		return wrong("it is empty")
	case strings.HasPrefix(text, "https://"):
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.User != nil {
			return wrong("it is no address of an archive")
		}
		hash := ""
		if u.Fragment != "" {
			var ok bool
			if hash, ok = strings.CutPrefix(u.Fragment, "sha256="); !ok || !hashRule.MatchString(hash) {
				return wrong("what follows # must be sha256= and 64 of 0-9 and a-f")
			}
		}
		u.Fragment = ""
		file := path.Base(u.Path)
		if _, _, _, ok := ParseArchiveName(file); !ok {
			return wrong("the archive is not named %s", ArchiveName("NAME", "VERSION", "OS/ARCH"))
		}
		return Place{Source: s.web(*u, file), SHA256: hash}, nil
	case strings.HasPrefix(text, "http://"):
		return wrong("without TLS anybody on the way can change it")
	case hasScheme && scheme == "gh":
		repo, version, hasVersion := strings.Cut(rest, "@")
		if !repoRule.MatchString(repo) || hasVersion && version == "" {
			return wrong("want gh:owner/repo or gh:owner/repo@version")
		}
		return Place{Source: s.github(repo), Constraint: version}, nil
	case filepath.IsAbs(text) || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || text == "." || text == ".." ||
		filepath.Separator != '/' && strings.ContainsRune(text, filepath.Separator):
		return s.resolvePath(text, cwd)
	case hasScheme:
		return wrong("the kind %.40q is not known", scheme+":")
	}
	name, version, hasVersion := strings.Cut(text, "@")
	if CheckName(name) != nil {
		if _, err := os.Stat(filepath.Join(cwd, text)); err == nil {
			return wrong("to install from this file or folder, type ./%s", filepath.ToSlash(text))
		}
		if strings.ContainsAny(text, `/\`) {
			return wrong("a path begins with ./")
		}
		err := pluginapi.AsError(CheckName(name))
		return Place{}, err
	}
	if hasVersion && version == "" {
		return wrong("no version follows the @")
	}
	root, err := s.mirrorFor(name)
	if err != nil {
		if _, statErr := os.Stat(filepath.Join(cwd, text)); statErr == nil {
			return wrong("no mirror is set for a plugin of that name; to install from the file or folder here, type ./%s", filepath.ToSlash(text))
		}
		return Place{}, err
	}
	return Place{Source: s.mirror(root, name), Constraint: version}, nil
}

func (s *Sources) resolvePath(text, cwd string) (Place, error) {
	file := text
	if !filepath.IsAbs(file) {
		file = filepath.Join(cwd, file)
	}
	file = filepath.Clean(file)
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return Place{}, pluginapi.Errorf(pluginapi.CodePluginNotFound, "%.200q: %w", text, fault.Plain(err)).WithHint("%s", Grammar)
	case !info.IsDir():
		base := filepath.Base(file)
		if _, _, _, ok := ParseArchiveName(base); !ok {
			return Place{}, pluginapi.Errorf(pluginapi.CodeValidation, "%.200q: the archive is not named %s", text, ArchiveName("NAME", "VERSION", "OS/ARCH")).
				WithHint("archives are made by: amux plugin package")
		}
		return Place{Source: folderSource{dir: filepath.Dir(file), file: base}}, nil
	}
	if _, err := os.Stat(filepath.Join(file, SumsName)); err == nil {
		return Place{Source: folderSource{dir: file}}, nil
	}
	if _, err := os.Stat(filepath.Join(file, ManifestName)); err == nil {
		return Place{Link: file}, nil
	}
	return Place{}, pluginapi.Errorf(pluginapi.CodePluginNotFound, "%.200q holds neither %s nor %s", text, SumsName, ManifestName).
		WithHint("a folder to link has a manifest, a release that can be copied has sums; see: amux plugin package")
}

// Reopen makes the source that a lock has recorded.
func (s *Sources) Reopen(name, recorded string) (Source, error) {
	kind, rest, _ := strings.Cut(recorded, ":")
	switch kind {
	case "gh":
		if repoRule.MatchString(rest) {
			return s.github(rest), nil
		}
	case "mirror":
		return s.mirror(rest, name), nil
	case "https":
		u, err := url.Parse(recorded)
		if err == nil {
			return s.web(*u, path.Base(u.Path)), nil
		}
	case "file":
		if strings.HasSuffix(rest, archiveSuffix) {
			return folderSource{dir: filepath.Dir(rest), file: filepath.Base(rest)}, nil
		}
		return folderSource{dir: rest}, nil
	}
	return nil, pluginapi.Errorf(pluginapi.CodeConfig, "plugin %s has the source %.100q, which this amux does not know", name, recorded).
		WithHint("install it again: %s", Grammar)
}

// Newest is the version that an upgrade would choose.
func (s *Sources) Newest(ctx context.Context, entry Locked) (string, error) {
	src, err := s.Reopen(entry.Name, entry.Source)
	if err != nil {
		return "", err
	}
	versions, err := src.Versions(ctx)
	if err != nil {
		return "", err
	}
	return choose(src, versions, entry.Constraint)
}

// samePlace reports whether two recorded sources are one: archives that lie side
// by side are.
func samePlace(a, b string) bool { return placeOf(a) == placeOf(b) }

func placeOf(recorded string) string {
	if !strings.HasSuffix(recorded, archiveSuffix) {
		return recorded
	}
	recorded = strings.ReplaceAll(recorded, `\`, "/")
	dir := recorded[:strings.LastIndexByte(recorded, '/')]
	// Releases on the web have a folder for each version, if not one for all.
	if name, version, _, ok := ParseArchiveName(recorded[len(dir)+1:]); ok {
		last := dir[strings.LastIndexByte(dir, '/')+1:]
		if last == version || last == "v"+version {
			dir = dir[:len(dir)-len(last)-1]
		}
		return dir + "#" + name
	}
	return dir
}

// folderSource is a folder with one release, or one archive in a folder.
type folderSource struct{ dir, file string }

var (
	_ Source = folderSource{}
	_ single = folderSource{}
)

func (s folderSource) String() string { return "file:" + filepath.Join(s.dir, s.file) }

func (s folderSource) Name() string {
	name, _, _, _ := ParseArchiveName(s.file)
	return name
}

func (s folderSource) archive() string { return s.file }

func (s folderSource) Versions(context.Context) ([]string, error) {
	_, version, _, _ := ParseArchiveName(s.file)
	return []string{version}, nil
}

func (s folderSource) Open(_ context.Context, _, file string) (io.ReadCloser, error) {
	if filepath.Base(file) != file {
		return nil, fs.ErrNotExist
	}
	f, err := foreign.Open(filepath.Join(s.dir, file), foreign.Rule{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodePlugin, "%s: %w", filepath.Join(s.dir, file), fault.Plain(err)).WithHint("%s", foreign.Fix(err))
	}
	return f, nil
}
