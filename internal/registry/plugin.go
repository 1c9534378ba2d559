package registry

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/pelletier/go-toml/v2"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Origin says which place a plugin was taken from.
type Origin string

// The origins, by falling precedence.
const (
	OriginOverride Origin = "override"
	OriginProject  Origin = "project lock"
	OriginUser     Origin = "user lock"
	OriginBundled  Origin = "bundled"
)

type rank int

var ranks = map[Origin]rank{OriginOverride: 0, OriginProject: 1, OriginUser: 2, OriginBundled: 3}

// How far a plugin is trusted, in the words shown to people. "signed by …" is
// made of the signer's name.
const (
	TrustPinned     = "checksum pinned"
	TrustBuilt      = "built here"
	TrustLocal      = "local (dev)"
	TrustBundled    = "bundled"
	TrustUnverified = "unverified"
)

// Plugin is one plugin as it lies on the disk; nothing of it was run or hashed.
type Plugin struct {
	Name       string
	Version    string
	Dir        string // holds manifest and describe.json
	Executable string // absolute
	Origin     Origin
	Source     string // where it was installed from: "gh:acme/amux-plugin-acme"
	Trust      string
	Signer     string // the key that vouches for it; "" if none does
	// SHA256 is what the executable must hash to; empty: whatever it is.
	SHA256 string
	// Manifest and Description are nil where they could not be read; both are
	// there if Err is nil.
	Manifest    *Manifest
	Description *pluginapi.Description
	// Err says why the plugin cannot be used.
	Err error

	// Linked says that the plugin is a folder that amux plugin install has linked.
	Linked bool

	rank     rank
	lockFile bool
	granted  []string          // agents that the user chose it for
	files    map[string]string // what each file must hash to, if it was installed
	describe identity          // of the file that Description is from; none: it may have changed since
}

// Manifest is the part of amux-plugin.toml that matters here.
type Manifest struct {
	Manifest int    `toml:"manifest"`
	Name     string `toml:"name"`
	Version  string `toml:"version"`
	Summary  string `toml:"summary"`
	License  string `toml:"license"`
	Homepage string `toml:"homepage"`
	Protocol struct {
		Major []int  `toml:"major"`
		Minor int    `toml:"minor"`
		Amux  string `toml:"amux"` // range of versions of amux
	} `toml:"protocol"`
	Agents []struct {
		ID string `toml:"id"`
	} `toml:"agent"`
	Process struct {
		Env []string `toml:"env"` // more variables that the plugin process may see
	} `toml:"process"`
}

const (
	manifestName = "amux-plugin.toml"
	describeName = "describe.json"
	manifestMax  = 1 // highest number of manifest = N that is understood

	maxSmall = 4 << 20 // bytes of a file beside an executable, or of the user's lock

	// maxTOML is for TOML that others wrote. A key may be as long as its file and as
	// deep: to read it takes two hundred times its size.
	maxTOML = 256 << 10
)

// IsLock reports that this stands for a lock that cannot be read, and not for a plugin.
// A Set gives no agent whose plugin the lock may have chosen.
func (p Plugin) IsLock() bool { return p.lockFile }

// label names the plugin in errors.
func (p Plugin) label() string {
	if p.Version == "" {
		return "plugin " + p.Name
	}
	return "plugin " + p.Name + " " + p.Version
}

func (p Plugin) errorf(code pluginapi.Code, format string, args ...any) *pluginapi.Error {
	return pluginapi.Errorf(code, p.label()+": "+format, args...)
}

// IsName says whether a plugin can have this name: at most 40 of a-z, 0-9 and single hyphens within, with a letter at the
// beginning, and none of Windows' names of devices. It uses no regular expression: each start looks at names, and
// compiling one takes a fifth of a millisecond.
func IsName(name string) bool {
	if name == "" || len(name) > 40 || !isLower(name[0]) || strings.HasSuffix(name, "-") || strings.Contains(name, "--") {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isLower(c) && !isDigit(c) && c != '-' {
			return false
		}
	}
	switch name {
	case "con", "prn", "aux", "nul":
		return false
	}
	port := strings.HasPrefix(name, "com") || strings.HasPrefix(name, "lpt")
	return !port || len(name) != 4 || !isDigit(name[3])
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// checkName says what is wrong with a plugin's name.
func checkName(name string) error {
	if !IsName(name) {
		return pluginapi.Errorf(pluginapi.CodePluginInvalid, "%q is no name for a plugin", name).
			WithHint("a name has at most 40 of a-z, 0-9 and single hyphens, begins with a letter, and is no device name")
	}
	return nil
}

// executableName of a plugin.
func executableName(name string) string { return "amux-plugin-" + name + exeSuffix }

func (r *Registry) fromOverride(name, path string) Plugin {
	p := Plugin{Name: name, Origin: OriginOverride, rank: ranks[OriginOverride], Trust: TrustLocal}
	abs, err := filepath.Abs(path)
	if err == nil {
		path = abs
	}
	p.Source, p.Dir, p.Executable = path, filepath.Dir(path), path
	if p.Err = checkName(name); p.Err != nil {
		return p
	}
	info, err := os.Stat(path)
	if err != nil {
		p.Err = p.errorf(pluginapi.CodePluginNotFound, "%s: %w", path, fault.Plain(err)).
			WithHint("correct the path given for %s by --plugin or in [dev_overrides] of config.toml", name)
		return p
	}
	if info.IsDir() {
		p.Dir, p.Executable = path, filepath.Join(path, executableName(name))
	}
	r.load(&p, "")
	return p
}

// At returns the plugin in a folder, or that of an executable, whatever its name, as
// an override takes one: nobody vouches for it. Its Err says why it cannot be used.
func (r *Registry) At(path string) Plugin {
	p := Plugin{Origin: OriginOverride, rank: ranks[OriginOverride], Trust: TrustLocal, Source: path, Dir: path}
	info, err := os.Stat(path)
	if err != nil {
		p.Err = pluginapi.Errorf(pluginapi.CodePluginNotFound, "%s: %w", path, fault.Plain(err)).
			WithHint("name the folder of a plugin: it holds %s, %s and the executable", manifestName, describeName)
		return p
	}
	if !info.IsDir() {
		p.Dir = filepath.Dir(path)
	}
	if p.Name, err = nameIn(p.Dir); err != nil {
		p.Err = err
		return p
	}
	return r.fromOverride(p.Name, path)
}

// nameIn returns the name that the manifest in a folder gives its plugin, or, where
// there is no manifest, describe.json.
func nameIn(dir string) (string, error) {
	path := filepath.Join(dir, manifestName)
	data, err := foreign.Read(path, foreign.Rule{Limit: maxTOML})
	if err == nil {
		var m struct {
			Name string `toml:"name"`
		}
		if err := toml.Unmarshal(data, &m); err != nil {
			return "", pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s", tomlError(path, err))
		}
		return m.Name, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		path = filepath.Join(dir, describeName)
		if data, err = foreign.Read(path, foreign.Rule{Limit: maxSmall}); errors.Is(err, fs.ErrNotExist) {
			return "", pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s holds no plugin: there is neither %s nor %s", dir, manifestName, describeName).
				WithHint("name the folder of a plugin; begin one with: amux plugin new NAME")
		}
	}
	if err != nil {
		return "", pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s: %w", path, fault.Plain(err))
	}
	d, err := parseDescription(data)
	if err != nil {
		return "", pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s: %v", path, strings.ReplaceAll(err.Error(), "\u00a0", " "))
	}
	return d.Plugin, nil
}

// fromBundle reads a bundled plugin; only is as in load.
func (r *Registry) fromBundle(name, only string) Plugin {
	dir := filepath.Join(r.opts.BundledDir, name)
	p := Plugin{
		Name: name, Origin: OriginBundled, rank: ranks[OriginBundled], Source: "bundled", Trust: TrustBundled,
		Dir: dir, Executable: filepath.Join(dir, executableName(name)), SHA256: r.opts.BundledHashes[name],
	}
	if p.SHA256 == "" {
		p.Trust = TrustUnverified
	}
	if p.Err = checkName(name); p.Err == nil {
		r.load(&p, only)
	}
	return p
}

// load reads what lies beside the executable and sets p.Err if it is not what a
// plugin of this amux must be. only is the id of the one agent that is looked for, or empty:
// the description of a plugin whose manifest names other agents is not read then.
func (r *Registry) load(p *Plugin, only string) {
	if err := r.loadManifest(p, only); err != nil || p.Err != nil {
		p.Err = cmp.Or(p.Err, err)
		return
	}
	if only != "" && (p.Manifest == nil || len(p.Manifest.Agents) > 0 && !slices.Contains(p.named(), only)) {
		return
	}
	path := filepath.Join(p.Dir, describeName)
	file, err := r.read.open(path, foreign.Rule{Limit: maxSmall})
	if err != nil {
		missing := p.errorf(pluginapi.CodePluginInvalid, "it has no readable %s in %s: %w", describeName, p.Dir, fault.Plain(err))
		if p.Origin == OriginOverride || p.Linked {
			missing.WithHint("make it with: %s --amux-describe > %s", p.Executable, path)
		}
		p.Err = missing
		return
	}
	if err := p.checkFile(describeName, file.data); err != nil {
		p.Err = err
		return
	}
	description, err := file.description()
	if err != nil {
		p.Err = p.errorf(pluginapi.CodePluginInvalid, "%s: %v", path, strings.ReplaceAll(err.Error(), "\u00a0", " "))
		return
	}
	switch {
	case description.Plugin != p.Name:
		p.Err = p.errorf(pluginapi.CodePluginInvalid, "%s is that of a plugin named %q", path, description.Plugin)
	case p.Version != "" && description.Version != p.Version:
		p.Err = p.errorf(pluginapi.CodePluginInvalid, "%s says version %q", path, description.Version)
	case len(description.Agents) == 0:
		p.Err = p.errorf(pluginapi.CodePluginInvalid, "%s names no agent", path)
	}
	seen := map[string]bool{}
	for _, a := range description.Agents {
		// An id is written in one way: no other can look like it.
		if p.Err == nil && (checkName(a.Id) != nil || seen[a.Id]) {
			p.Err = p.errorf(pluginapi.CodePluginInvalid, "%s: agent id %.60q is not of a-z, 0-9 and single hyphens, or is there twice", path, a.Id)
		}
		seen[a.Id] = true
	}
	if p.Err != nil {
		return
	}
	p.Version, p.Description = description.Version, description
	if file.settled() {
		p.describe = file.identity
	}
	if err := cmp.Or(p.checkExecutable(), p.checkExtra()); err != nil {
		p.Err = err
	}
}

// namesOthers reports that a manifest names agents, and surely not that one, without parsing it.
func namesOthers(manifest []byte, id string) bool {
	return bytes.Contains(manifest, []byte("[[agent]]")) && !bytes.Contains(manifest, []byte(id)) && !bytes.ContainsRune(manifest, '\\')
}

// loadManifest reads the manifest; only is as in load. One that names other agents plainly is not parsed,
// and p.Manifest stays nil.
func (r *Registry) loadManifest(p *Plugin, only string) error {
	path := filepath.Join(p.Dir, manifestName)
	file, err := r.read.open(path, foreign.Rule{Limit: maxTOML})
	if errors.Is(err, fs.ErrNotExist) && p.Origin == OriginOverride {
		// Somebody's build folder; describe.json says what matters.
		p.Manifest = &Manifest{Name: p.Name}
		return nil
	}
	if err != nil {
		return p.errorf(pluginapi.CodePluginInvalid, "it has no readable %s in %s: %w", manifestName, p.Dir, fault.Plain(err))
	}
	if err := p.checkFile(manifestName, file.data); err != nil {
		return err
	}
	if only != "" && namesOthers(file.data, only) {
		return nil
	}
	m, err := file.manifest()
	p.Manifest = m
	if m.Manifest > manifestMax {
		return p.errorf(pluginapi.CodePluginIncompatible, "its manifest is of format %d; this amux knows %d", m.Manifest, manifestMax).
			WithHint("it needs a newer amux")
	}
	if err != nil {
		return p.errorf(pluginapi.CodePluginInvalid, "%s", tomlError(path, err))
	}
	if m.Name != p.Name {
		return p.errorf(pluginapi.CodePluginInvalid, "%s is that of a plugin named %q", path, m.Name)
	}
	if _, err := semver.StrictNewVersion(m.Version); err != nil {
		return p.errorf(pluginapi.CodePluginInvalid, "%s: version %q is no semantic version", path, m.Version)
	}
	if p.Version != "" && p.Version != m.Version {
		return p.errorf(pluginapi.CodePluginInvalid, "%s says version %s", path, m.Version)
	}
	p.Version = m.Version
	if len(m.Protocol.Major) == 0 {
		return p.errorf(pluginapi.CodePluginInvalid, "%s does not say which protocol it speaks: [protocol] major", path)
	}
	if !slices.Contains(m.Protocol.Major, pluginapi.ProtocolMajor) {
		return pluginapi.Errorf(pluginapi.CodePluginIncompatible, "%s speaks protocol %s; this amux speaks %d",
			p.label(), joinInts(m.Protocol.Major), pluginapi.ProtocolMajor).
			WithHint("%s", protocolHint(m.Protocol.Major, p.Name))
	}
	if m.Protocol.Amux != "" {
		want, err := semver.NewConstraint(m.Protocol.Amux)
		if err != nil {
			return p.errorf(pluginapi.CodePluginInvalid, "%s: amux = %q is no range of versions", path, m.Protocol.Amux)
		}
		if own, err := semver.NewVersion(r.opts.Version); err == nil && !want.Check(own) {
			return p.errorf(pluginapi.CodePluginIncompatible, "it needs amux %s; this is %s", m.Protocol.Amux, own).
				WithHint("upgrade the older of the two")
		}
	}
	return nil
}

// checkFile holds what was read of an installed plugin's small files against its
// receipt: they say what it is, and what its process may see.
func (p Plugin) checkFile(name string, data []byte) error {
	if p.files == nil {
		return nil
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != p.files[name] {
		return p.errorf(pluginapi.CodePluginUntrusted, "%s is not the file that was installed (sha256 must be %s, is %s)",
			filepath.Join(p.Dir, name), short(p.files[name]), short(got))
	}
	return nil
}

// checkExtra refuses what lies in an installed plugin's folder and was not installed:
// somebody has written there.
func (p Plugin) checkExtra() error {
	if p.files == nil {
		return nil
	}
	err := filepath.WalkDir(p.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(p.Dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if p.files[name] == "" && !slices.Contains(besideFiles, name) {
			return p.errorf(pluginapi.CodePluginUntrusted, "%s was not installed with it", path).
				WithHint("find out who put it there, then remove it; see: amux plugin verify %s", p.Name)
		}
		return nil
	})
	if e, ok := errors.AsType[*pluginapi.Error](err); ok {
		return e
	}
	if err != nil {
		return p.errorf(pluginapi.CodePluginInvalid, "%s: %w", p.Dir, fault.Plain(err))
	}
	return nil
}

// besideFiles are what the installer adds to a plugin's own files.
var besideFiles = []string{receiptName, "SHA256SUMS", "SHA256SUMS.minisig"}

func protocolHint(majors []int, name string) string {
	if slices.Min(majors) > pluginapi.ProtocolMajor {
		return "upgrade amux, or install an older version of " + name
	}
	return "install a newer version of " + name
}

// checkExecutable says why the executable cannot be one, without opening it.
func (p Plugin) checkExecutable() error {
	info, err := os.Stat(p.Executable)
	switch {
	case err != nil:
		return p.errorf(pluginapi.CodePluginInvalid, "%s: %w", p.Executable, fault.Plain(err))
	case info.IsDir():
		return p.errorf(pluginapi.CodePluginInvalid, "%s is a folder, not a program", p.Executable)
	case !info.Mode().IsRegular():
		return p.errorf(pluginapi.CodePluginInvalid, "%s is not a regular file", p.Executable)
	case !mayExecute(info):
		return p.errorf(pluginapi.CodePluginInvalid, "%s is not executable", p.Executable).
			WithHint("chmod +x %s, or reinstall the plugin", p.Executable)
	}
	return nil
}
