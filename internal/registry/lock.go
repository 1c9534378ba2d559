package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/pelletier/go-toml/v2"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

const (
	lockName    = "plugins.lock"
	lockMax     = 1 // highest lock = N that is understood
	receiptName = "receipt.json"
)

// lockFile is plugins.lock: which of the installed plugins are active.
type lockFile struct {
	Lock    int         `toml:"lock"`
	Plugins []lockEntry `toml:"plugin"`
}

type lockEntry struct {
	Name       string            `toml:"name"`
	Version    string            `toml:"version"`
	Source     string            `toml:"source"`
	Constraint string            `toml:"constraint"` // this and previous are the installer's
	Previous   string            `toml:"previous"`
	Signer     string            `toml:"signer"`
	Link       string            `toml:"link"`   // folder of a plugin under development; the user's lock only
	H1         map[string]string `toml:"h1"`     // of the unpacked files, by os_arch
	SHA256     map[string]string `toml:"sha256"` // of the archives, by os_arch
}

// receipt is what the installer wrote, last, into a plugin's folder.
type receipt struct {
	Source        string            `json:"source"`
	ArchiveSHA256 string            `json:"archive_sha256"`
	H1            string            `json:"h1"`
	Files         map[string]string `json:"files"`       // SHA-256 by name
	Signer        string            `json:"signer"`      // key that signed it; empty: none
	SignerName    string            `json:"signer_name"` // who that is, as trust.toml said
	Unverified    bool              `json:"unverified"`  // nothing vouched for it
}

// h1 is the hash over all files, which the lock keeps.
func (r receipt) h1() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		fmt.Fprintf(h, "%s  %s\n", r.Files[name], name)
	}
	return "h1:" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// userLock returns the lock in the folder of plugins, if nobody else could have
// put it there; absent is empty.
func (r *Registry) userLock(path string) (*lockFile, error) {
	if err := foreign.CheckFolder(r.opts.PluginDir); err != nil {
		return parseLock(path, nil, err)
	}
	f, err := r.read.open(path, foreign.Rule{Limit: maxSmall, Private: true})
	if errors.Is(err, fs.ErrNotExist) {
		return &lockFile{}, nil
	}
	if err != nil {
		return parseLock(path, nil, err)
	}
	return parsed(f, func(data []byte) (*lockFile, error) { return parseLock(path, data, nil) })
}

// projectLock returns the lock of a project, which comes with a cloned repository; absent is empty.
func (r *Registry) projectLock(path string) (*lockFile, error) {
	data, err := foreign.ReadIn(r.opts.ProjectDir, ".agent-mux/"+lockName, foreign.Rule{Limit: maxTOML})
	if errors.Is(err, fs.ErrNotExist) {
		return &lockFile{}, nil
	}
	return parseLock(path, data, err)
}

// fromLock adds the plugins that a lock names, unless their names are taken. users is
// the user's own lock. Of those that the search passes there is no more than the name.
func (r *Registry) fromLock(lock *lockFile, path string, origin Origin, users *lockFile, s *search, chosen map[string]Plugin) {
	for _, entry := range lock.Plugins {
		if _, taken := chosen[entry.Name]; taken {
			continue
		}
		if s.passes(entry) {
			chosen[entry.Name] = Plugin{Name: entry.Name, Version: entry.Version, Origin: origin, rank: ranks[origin]}
			continue
		}
		p := r.fromStore(entry, path, origin, users)
		s.learn(entry, p)
		chosen[entry.Name] = p
	}
}

// parseLock makes a lock of what was read of its file, or of the error of reading it.
func parseLock(path string, data []byte, err error) (*lockFile, error) {
	lock := &lockFile{}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", e.Path, e.Err).WithHint("%s", foreign.Fix(err))
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", path, err)
	}
	// A key that is not known may be a known one that was altered: then a plugin of
	// lower precedence must not take the place of the one that it chose.
	err = toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(lock)
	if lock.Lock > lockMax {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s is of format %d; this amux knows %d", path, lock.Lock, lockMax).
			WithHint("upgrade amux, or delete the file")
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s", tomlError(path, err)).
			WithHint("restore the file, or delete it")
	}
	if lock.Lock < 1 {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s has no lock = %d", path, lockMax).WithHint("restore the file, or delete it")
	}
	return lock, nil
}

// fromStore finds the installed plugin that a lock's entry names. A project's
// lock comes from a cloned repository: it may choose, nothing more, so what it
// says about source and signer is not believed; the receipt is.
func (r *Registry) fromStore(entry lockEntry, lockPath string, origin Origin, users *lockFile) Plugin {
	p := Plugin{Name: entry.Name, Version: entry.Version, Origin: origin, rank: ranks[origin],
		Source: entry.Source, Trust: TrustUnverified}
	if p.Err = checkName(entry.Name); p.Err != nil {
		return p
	}
	if entry.Link != "" {
		if origin != OriginUser || !filepath.IsAbs(entry.Link) {
			p.Err = p.errorf(pluginapi.CodePluginUntrusted, "%s links to a folder, which only the user's lock may do", lockPath)
			return p
		}
		p.Version, p.Trust, p.Linked = "", TrustLocal, true // the manifest tells the version of the day
		p.Dir, p.Executable = entry.Link, filepath.Join(entry.Link, executableName(p.Name))
		r.load(&p, "")
		return p
	}
	if _, err := semver.StrictNewVersion(entry.Version); err != nil {
		p.Err = p.errorf(pluginapi.CodeConfig, "%s: version %q is no semantic version", lockPath, entry.Version)
		return p
	}
	platform := runtime.GOOS + "_" + runtime.GOARCH
	p.Dir = filepath.Join(r.opts.PluginDir, "store", p.Name, p.Version, platform)
	p.Executable = filepath.Join(p.Dir, executableName(p.Name))
	if r.opts.PluginDir == "" {
		p.Err = p.errorf(pluginapi.CodePluginNotFound, "%s asks for it, and no folder of plugins is set", lockPath)
		return p
	}
	data, err := foreign.Read(filepath.Join(p.Dir, receiptName), foreign.Rule{Limit: maxSmall})
	if errors.Is(err, fs.ErrNotExist) {
		p.Err = p.errorf(pluginapi.CodePluginNotFound, "%s asks for it, and it is not installed for %s", lockPath, platform).
			WithHint("install that version, or change %s", lockPath)
		return p
	}
	var got receipt
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	place := filepath.Join(p.Dir, receiptName)
	own := filepath.Base(p.Executable)
	differs := func(what, asked, found string) {
		p.Err = p.errorf(pluginapi.CodePluginUntrusted, "what is installed is not what %s asks for (%s %s, installed %s)",
			lockPath, what, short(asked), short(found)).WithHint("reinstall the plugin, or change %s", lockPath)
	}
	switch {
	case err != nil:
		p.Err = p.errorf(pluginapi.CodePluginInvalid, "%s: %w", place, fault.Plain(err))
	case len(got.Files[own]) != 64:
		p.Err = p.errorf(pluginapi.CodePluginInvalid, "%s does not say the hash of the executable", place)
	case got.h1() != got.H1:
		p.Err = p.errorf(pluginapi.CodePluginUntrusted, "%s is not as the installer wrote it", place)
	case entry.H1[platform] != "" && entry.H1[platform] != got.H1:
		differs("files", entry.H1[platform], got.H1)
	case entry.SHA256[platform] != "" && entry.SHA256[platform] != got.ArchiveSHA256:
		differs("archive", entry.SHA256[platform], got.ArchiveSHA256)
	case entry.Signer != "" && entry.Signer != got.Signer:
		differs("signer", entry.Signer, got.Signer)
	case origin == OriginUser && entry.H1[platform] == "":
		p.Err = p.errorf(pluginapi.CodePluginUntrusted, "%s has no hash of it for %s", lockPath, platform)
	}
	if p.Err != nil {
		return p
	}
	p.Source, p.SHA256, p.files = got.Source, got.Files[own], got.Files
	switch {
	case got.Signer != "" && !users.byChecksum(p.Name, p.Version, platform, got.H1):
		who, err := r.signedBy(p, got)
		if err != nil {
			p.Err = err
			r.load(&p, "") // its agents stay its own
			return p
		}
		p.Trust, p.Signer = "signed by "+who+" ("+short(got.Signer)+")", got.Signer
	case strings.HasPrefix(got.Source, "go:"):
		p.Trust = TrustBuilt
	case got.Unverified:
		p.Trust = TrustUnverified
	default:
		p.Trust = TrustPinned
	}
	r.load(&p, "")
	return p
}

// tomlError says in one line where a TOML file is wrong.
func tomlError(path string, err error) string {
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(strict.Errors) > 0 {
		row, _ := strict.Errors[0].Position()
		return fmt.Sprintf("%s:%d: unknown key %.100s", path, row, strings.Join(strict.Errors[0].Key(), "."))
	}
	if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, column := decode.Position()
		text := strings.TrimPrefix(decode.Error(), "toml: ")
		if key := strings.Join(decode.Key(), "."); key != "" && (strings.Contains(text, "Go ") || strings.Contains(text, "struct field")) {
			text = fmt.Sprintf("the value of %.100s is of the wrong type", key) // go-toml speaks of Go's types
		}
		return fmt.Sprintf("%s:%d:%d: %s", path, row, column, text)
	}
	return path + ": " + strings.TrimPrefix(err.Error(), "toml: ")
}

// short is as much of a hash as people compare.
func short(hash string) string {
	if len(hash) > 15 {
		return hash[:12] + "…"
	}
	return hash
}

func joinInts(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ", ")
}
