package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/pelletier/go-toml/v2"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

// mirrorSource is a plugin on a mirror, the same tree in a folder or below an
// https address:
//
//	<root>/<name>/index.json
//	<root>/<name>/<version>/{archives, amux-plugin.toml, SHA256SUMS, SHA256SUMS.minisig}
type mirrorSource struct {
	all    *Sources
	root   string
	name   string
	serial uint64 // of the index that was read
}

var _ Source = (*mirrorSource)(nil)

// index is index.json of one plugin.
type index struct {
	Index    int      `json:"index"`
	Name     string   `json:"name"`
	Serial   uint64   `json:"serial"` // rises with every change
	Versions []string `json:"versions"`
}

const (
	indexName = "index.json"
	indexMax  = 1
	maxIndex  = 4 << 20
)

func (s *Sources) mirror(root, name string) *mirrorSource {
	return &mirrorSource{all: s, root: root, name: name}
}

func (s *mirrorSource) String() string { return "mirror:" + s.root }
func (s *mirrorSource) Name() string   { return s.name }

func (s *mirrorSource) open(ctx context.Context, elements ...string) (io.ReadCloser, error) {
	if strings.HasPrefix(s.root, "https://") {
		for i, e := range elements {
			elements[i] = strings.ReplaceAll(e, "+", "%2B")
		}
		return s.all.get(ctx, strings.TrimSuffix(s.root, "/")+"/"+path.Join(elements...), nil)
	}
	if _, err := os.Stat(s.root); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodePlugin, "mirror %s: %v", s.root, fault.Plain(err)).WithHint("is it mounted?")
	}
	// Below the root only: a link in a mirror leads nowhere else.
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodePlugin, "mirror %s: %w", s.root, fault.Plain(err))
	}
	defer root.Close()
	f, err := foreign.OpenBelow(root, path.Join(elements...), foreign.Rule{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodePlugin, "mirror %s: %s: %w", s.root, path.Join(elements...), fault.Plain(err)).WithHint("%s", foreign.Fix(err))
	}
	return f, nil
}

func (s *mirrorSource) Versions(ctx context.Context) ([]string, error) {
	body, err := s.open(ctx, s.name, indexName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "mirror %s has no plugin named %s", s.root, s.name).
			WithHint("check the name; a mirror is filled by: amux plugin mirror DIR")
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := foreign.ReadStream(body, maxIndex)
	var got index
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	place := fmt.Sprintf("mirror %s: %s/%s", s.root, s.name, indexName)
	switch {
	case err != nil:
		return nil, pluginapi.Errorf(pluginapi.CodePlugin, "%s: %v", place, err)
	case got.Index > indexMax:
		return nil, pluginapi.Errorf(pluginapi.CodePlugin, "%s is of format %d; this amux knows %d", place, got.Index, indexMax).WithHint("upgrade amux")
	case got.Name != s.name:
		return nil, pluginapi.Errorf(pluginapi.CodePlugin, "%s is that of a plugin named %.40q", place, got.Name)
	}
	s.serial = got.Serial
	return slices.DeleteFunc(got.Versions, func(v string) bool { return checkVersion(v) != nil }), nil
}

func (s *mirrorSource) Open(ctx context.Context, version, file string) (io.ReadCloser, error) {
	if checkVersion(version) != nil || !elementRule.MatchString(file) {
		return nil, fs.ErrNotExist
	}
	return s.open(ctx, s.name, version, file)
}

// key is what the serial seen last is remembered under.
func (s *mirrorSource) key() string { return s.root + " " + s.name }

// seen is mirrors.json: the serial of the newest index of each mirror and plugin.
type seen struct {
	Mirrors map[string]uint64 `json:"mirrors"`
}

func (d *Folder) readSeen() seen {
	got := seen{}
	if data, err := foreign.Read(d.path(seenName), foreign.Rule{Limit: maxSmall, Private: true}); err == nil {
		_ = json.Unmarshal(data, &got) // a spoilt file is an empty one
	}
	if got.Mirrors == nil {
		got.Mirrors = map[string]uint64{}
	}
	return got
}

// checkSerial refuses an index that is older than one seen before: somebody may
// want to hide what came since.
func (d *Folder) checkSerial(src Source, allow bool) error {
	s, ok := src.(*mirrorSource)
	if !ok {
		return nil
	}
	if last := d.readSeen().Mirrors[s.key()]; s.serial < last && !allow {
		return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "mirror %s: its index of %s is older than the one seen before (serial %d, was %d)", s.root, s.name, s.serial, last).
			WithHint("if it was set back on purpose: --allow-downgrade")
	}
	return nil
}

func (d *Folder) rememberSerial(src Source) error {
	s, ok := src.(*mirrorSource)
	if !ok {
		return nil
	}
	got := d.readSeen()
	if got.Mirrors[s.key()] == s.serial {
		return nil
	}
	got.Mirrors[s.key()] = s.serial
	data, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		return err
	}
	return ReplaceFile(d.path(seenName), append(data, '\n'))
}

// SourcesName is the file that lists mirrors, in the configuration folder.
const SourcesName = "sources.toml"

// ReadMirrors reads sources.toml; absent is empty.
func ReadMirrors(file string) ([]Mirror, error) {
	data, err := foreign.Read(file, foreign.Rule{Limit: maxSmall, Private: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", file, fault.Plain(err))
	}
	var content struct {
		Mirrors []Mirror `toml:"mirror"`
	}
	decoder := toml.NewDecoder(strings.NewReader(string(data))).DisallowUnknownFields()
	if err := decoder.Decode(&content); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s", tomlError(file, err)).WithHint("a [[mirror]] has root, include and exclude")
	}
	for i, m := range content.Mirrors {
		if err := CheckMirrorRoot(m.Root); err != nil {
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: [[mirror]] %d: %s", file, i+1, err)
		}
		for _, glob := range append(slices.Clone(m.Include), m.Exclude...) {
			if _, err := path.Match(glob, "x"); err != nil || glob == "" {
				return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: [[mirror]] %d: %.40q is no pattern of plugin names", file, i+1, glob)
			}
		}
	}
	return content.Mirrors, nil
}

// CheckMirrorRoot says what is wrong with a mirror's root.
func CheckMirrorRoot(root string) error {
	if strings.HasPrefix(root, "https://") && len(root) > len("https://") || filepath.IsAbs(root) {
		return nil
	}
	wrong := pluginapi.Errorf(pluginapi.CodeValidation, "%.100q is no root of a mirror", root)
	switch scheme := schemeRule.FindString(root); {
	case strings.EqualFold(scheme, "http:"):
		return pluginapi.Errorf(pluginapi.CodeValidation, "%.100q is no root of a mirror: without TLS anybody on the way can change it", root).
			WithHint("use its https:// address, or a folder")
	case strings.EqualFold(scheme, "file:"):
		return wrong.WithHint("give the folder itself: %s", strings.TrimPrefix(root[len(scheme):], "//"))
	}
	return wrong.WithHint("want an absolute folder or an address that begins with https://")
}

// schemeRule is the beginning of an address; one letter is a drive of Windows.
var schemeRule = pattern.New(`^[A-Za-z][A-Za-z0-9+.-]+:`)

// IsAddress reports whether a mirror's root is meant as an address, not as a folder.
func IsAddress(root string) bool { return schemeRule.MatchString(root) }

// mirrorFor finds the mirror of a plugin: the first that matches, and no other.
// If it lacks the plugin, nothing else may stand in for it.
func (s *Sources) mirrorFor(name string) (string, error) {
	matches := func(globs []string) bool {
		return slices.ContainsFunc(globs, func(glob string) bool {
			ok, _ := path.Match(glob, name)
			return ok
		})
	}
	for _, m := range s.mirrors {
		if (len(m.Include) == 0 || matches(m.Include)) && !matches(m.Exclude) {
			return m.Root, nil
		}
	}
	return "", pluginapi.Errorf(pluginapi.CodePluginNotFound, "no mirror is set for a plugin named %s", name).
		WithHint("name one by --mirror DIR or in %s; or install from elsewhere: %s", SourcesName, Grammar)
}

// AddToMirror copies a whole release, for all platforms, into a mirror's tree.
// The index is replaced last. locked may be nil; what it says of hashes must hold.
func (in *Installer) AddToMirror(ctx context.Context, root string, src Source, constraint string, locked *Locked) (name, version string, _ error) {
	if locked != nil {
		name = locked.Name
	}
	r, err := findRelease(ctx, src, name, constraint)
	if err == nil {
		_, _, err = in.vouch(r) // a wrong signature is not handed on
	}
	if err != nil {
		return "", "", err
	}
	if err := in.mirrorRelease(ctx, root, src, r, locked); err != nil {
		return "", "", err
	}
	return r.name, r.version, addToIndex(filepath.Join(root, r.name, indexName), r.name, r.version)
}

func (in *Installer) mirrorRelease(ctx context.Context, root string, src Source, r *release, locked *Locked) error {
	if r.sums == nil {
		return pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s has no %s, so it cannot be mirrored", src, SumsName)
	}
	dir := filepath.Join(root, r.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return WriteError(err)
	}
	final := filepath.Join(dir, r.version)
	if old, err := foreign.Read(filepath.Join(final, SumsName), foreign.Rule{Limit: maxSums, NoLink: true}); err == nil && string(old) != string(r.sumsText) {
		return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "mirror %s has another %s %s already", root, r.name, r.version).
			WithHint("a version that was published does not change; publish a new one")
	}
	staging, err := os.MkdirTemp(dir, ".staging-*")
	if err != nil {
		return WriteError(err)
	}
	defer os.RemoveAll(staging)
	if err := os.Chmod(staging, 0o755); err != nil { // others read a mirror
		return WriteError(err)
	}
	write := func(file string, data []byte) error {
		return WriteError(os.WriteFile(filepath.Join(staging, file), data, 0o644))
	}
	if err := write(SumsName, r.sumsText); err != nil {
		return err
	}
	if r.signature != nil {
		if err := write(SignatureName, r.signature); err != nil {
			return err
		}
	}
	for file, want := range r.sums {
		if _, _, _, isArchive := ParseArchiveName(file); !isArchive && file != ManifestName {
			continue
		}
		f, err := os.Create(filepath.Join(staging, file))
		if err != nil {
			return WriteError(err)
		}
		got, err := download(ctx, src, r.version, file, f, in.fault)
		err = errors.Join(err, f.Close())
		if err != nil {
			return err
		}
		if _, _, platform, ok := ParseArchiveName(file); ok && locked != nil {
			if hash := locked.SHA256[underscored(platform)]; hash != "" && locked.Version == r.version {
				want = hash
			}
		}
		if got != want {
			return wrongHash(r.name, r.version, file, want, got)
		}
	}
	if err := os.RemoveAll(final); err != nil {
		return WriteError(err)
	}
	if err := os.Rename(staging, final); err != nil {
		return WriteError(err)
	}
	return nil
}

func addToIndex(file, name, version string) error {
	var got index
	data, err := foreign.Read(file, foreign.Rule{Limit: maxIndex, NoLink: true})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pluginapi.Errorf(pluginapi.CodePlugin, "%s: %w", file, fault.Plain(err)).WithHint("%s", foreign.Fix(err))
	}
	if err == nil {
		if err := json.Unmarshal(data, &got); err != nil {
			return pluginapi.Errorf(pluginapi.CodePlugin, "%s: %v", file, err)
		}
	}
	if slices.Contains(got.Versions, version) {
		return nil
	}
	got.Index, got.Name = indexMax, name
	got.Serial++
	got.Versions = append(got.Versions, version)
	slices.SortFunc(got.Versions, func(a, b string) int {
		va, err1 := semver.StrictNewVersion(a)
		vb, err2 := semver.StrictNewVersion(b)
		if err1 != nil || err2 != nil {
			return strings.Compare(a, b)
		}
		return va.Compare(vb)
	})
	if data, err = json.MarshalIndent(got, "", "  "); err != nil {
		return err
	}
	return replacePublic(file, append(data, '\n'))
}
