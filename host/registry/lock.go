package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/pelletier/go-toml/v2"

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
	Name    string            `toml:"name"`
	Version string            `toml:"version"`
	Source  string            `toml:"source"`
	Signer  string            `toml:"signer"`
	H1      map[string]string `toml:"h1"` // of the unpacked files, by os_arch
}

// receipt is what the installer wrote, last, into a plugin's folder.
type receipt struct {
	Source           string `json:"source"`
	H1               string `json:"h1"`
	ExecutableSHA256 string `json:"executable_sha256"`
	Signer           string `json:"signer"`      // key that signed it; empty: none
	SignerName       string `json:"signer_name"` // who that is, as trust.toml said
}

// fromLock adds the plugins that a lock names, unless their names are taken.
func (r *Registry) fromLock(path string, origin Origin, chosen map[string]Plugin, add func(Plugin)) {
	lock, err := readLock(path)
	if err != nil {
		add(Plugin{Name: string(origin), Dir: filepath.Dir(path), Source: path, Origin: origin,
			rank: ranks[origin], lockFile: true, Err: err})
		return
	}
	for _, entry := range lock.Plugins {
		if _, taken := chosen[entry.Name]; !taken {
			add(r.fromStore(entry, path, origin))
		}
	}
}

func readLock(path string) (*lockFile, error) {
	lock := &lockFile{}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return lock, nil
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", path, plain(err))
	}
	err = toml.Unmarshal(data, lock)
	if lock.Lock > lockMax {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s is of format %d; this amux knows %d", path, lock.Lock, lockMax).
			WithHint("upgrade amux, or delete the file")
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s", tomlError(path, err)).
			WithHint("restore the file, or delete it")
	}
	return lock, nil
}

// fromStore finds the installed plugin that a lock's entry names. A project's
// lock comes from a cloned repository: it may choose, nothing more, so what it
// says about source and signer is not believed; the receipt is.
func (r *Registry) fromStore(entry lockEntry, lockPath string, origin Origin) Plugin {
	p := Plugin{Name: entry.Name, Version: entry.Version, Origin: origin, rank: ranks[origin],
		Source: entry.Source, Trust: TrustUnverified}
	if p.Err = checkName(entry.Name); p.Err != nil {
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
	data, err := os.ReadFile(filepath.Join(p.Dir, receiptName))
	if errors.Is(err, fs.ErrNotExist) {
		p.Err = p.errorf(pluginapi.CodePluginNotFound, "%s asks for it, and it is not installed for %s", lockPath, platform).
			WithHint("install that version, or change %s", lockPath)
		return p
	}
	var got receipt
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	switch {
	case err != nil:
		p.Err = p.errorf(pluginapi.CodePluginInvalid, "%s: %w", filepath.Join(p.Dir, receiptName), plain(err))
		return p
	case len(got.ExecutableSHA256) != 64:
		p.Err = p.errorf(pluginapi.CodePluginInvalid, "%s does not say the hash of the executable", filepath.Join(p.Dir, receiptName))
		return p
	case entry.H1[platform] != "" && entry.H1[platform] != got.H1:
		p.Err = p.errorf(pluginapi.CodePluginUntrusted, "what is installed is not what %s asks for (%s, installed %s)",
			lockPath, short(entry.H1[platform]), short(got.H1)).
			WithHint("reinstall the plugin, or change %s", lockPath)
		return p
	}
	p.Source, p.SHA256 = got.Source, got.ExecutableSHA256
	switch {
	case got.Signer != "":
		p.Trust = "signed by " + got.SignerName + " (" + short(got.Signer) + ")"
	case strings.HasPrefix(got.Source, "go:"):
		p.Trust = TrustBuilt
	default:
		p.Trust = TrustPinned
	}
	r.load(&p)
	return p
}

// tomlError says in one line where a TOML file is wrong.
func tomlError(path string, err error) string {
	if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, column := decode.Position()
		return fmt.Sprintf("%s:%d:%d: %s", path, row, column, strings.TrimPrefix(decode.Error(), "toml: "))
	}
	return path + ": " + strings.TrimPrefix(err.Error(), "toml: ")
}

// plain takes the operation and the path off an error of package os.
func plain(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
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
