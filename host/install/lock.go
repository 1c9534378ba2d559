package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

var lockPlatformRule = pattern.New(`^[a-z0-9]+_[a-z0-9]+$`)

const lockMax = 1 // highest lock = N that is understood

// Lock is plugins.lock: which of the installed plugins are active.
type Lock struct {
	Plugins []Locked
}

// Locked is one entry of a lock.
type Locked struct {
	Name       string `toml:"name"`
	Version    string `toml:"version"`
	Source     string `toml:"source"`
	Constraint string `toml:"constraint"` // of versions to upgrade to; empty: pinned
	Signer     string `toml:"signer"`     // the key that has signed it; empty: checksum only
	Previous   string `toml:"previous"`   // version to roll back to
	// Link is the folder of a plugin under development. Only the user's lock may
	// have any.
	Link   string            `toml:"link"`
	H1     map[string]string `toml:"h1"`     // over the unpacked files, by os_arch
	SHA256 map[string]string `toml:"sha256"` // of the archives, by os_arch
}

// ReadLock reads the user's lock file; absent is empty.
func ReadLock(file string) (*Lock, error) {
	data, err := foreign.Read(file, foreign.Rule{Limit: maxSmall, Private: true})
	return parseLock(file, data, err)
}

// ReadProjectLock reads PROJECT/.agent-mux/plugins.lock; absent is empty. It comes with
// a cloned repository, so no link is followed to it.
func ReadProjectLock(file string) (*Lock, error) {
	project, name := splitProjectFile(file)
	data, err := foreign.ReadIn(project, name, foreign.Rule{Limit: manifestSize})
	return parseLock(file, data, err)
}

// WriteProjectLock writes PROJECT/.agent-mux/plugins.lock, through no link.
func WriteProjectLock(file string, lock *Lock) error {
	if err := foreign.CheckIn(splitProjectFile(file)); err != nil {
		return lockError(file, err)
	}
	return replacePublic(file, lock.Bytes())
}

// splitProjectFile cuts the path of a file in a project's .agent-mux.
func splitProjectFile(file string) (project, name string) {
	folder := filepath.Dir(file)
	return filepath.Dir(folder), filepath.Base(folder) + "/" + filepath.Base(file)
}

func lockError(file string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		file = e.Path
	}
	return pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", file, fault.Plain(err)).WithHint("%s", foreign.Fix(err))
}

// parseLock makes a lock of what was read of its file, or of the error of reading it.
func parseLock(file string, data []byte, err error) (*Lock, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return &Lock{}, nil
	}
	if err != nil {
		return nil, lockError(file, err)
	}
	var content struct {
		Lock    int      `toml:"lock"`
		Plugins []Locked `toml:"plugin"`
	}
	// An unknown key may be a known one that was altered.
	err = toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&content)
	switch {
	case content.Lock > lockMax:
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s is of format %d; this amux knows %d", file, content.Lock, lockMax).
			WithHint("upgrade amux, or delete the file")
	case err != nil:
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s", tomlError(file, err)).WithHint("restore the file, or delete it")
	case content.Lock < 1:
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s has no lock = %d", file, lockMax).WithHint("restore the file, or delete it")
	}
	seen := map[string]bool{}
	for _, p := range content.Plugins {
		if err := errors.Join(CheckName(p.Name), checkVersion(p.Version)); err != nil {
			text, _, _ := strings.Cut(err.Error(), "\n")
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: %s", file, text).WithHint("restore the file, or delete it")
		}
		for platform := range p.H1 {
			if !lockPlatformRule.MatchString(platform) {
				return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: plugin %s: %.40q is no os_arch", file, p.Name, platform)
			}
		}
		if seen[p.Name] {
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: plugin %s is there twice", file, p.Name).WithHint("restore the file, or delete it")
		}
		seen[p.Name] = true
	}
	return &Lock{content.Plugins}, nil
}

// Get returns the entry of that name, nil if there is none.
func (l *Lock) Get(name string) *Locked {
	for i := range l.Plugins {
		if l.Plugins[i].Name == name {
			return &l.Plugins[i]
		}
	}
	return nil
}

// Set puts an entry in its place.
func (l *Lock) Set(entry Locked) {
	l.Remove(entry.Name)
	l.Plugins = append(l.Plugins, entry)
	slices.SortFunc(l.Plugins, func(a, b Locked) int { return strings.Compare(a.Name, b.Name) })
}

// Remove takes an entry out.
func (l *Lock) Remove(name string) {
	l.Plugins = slices.DeleteFunc(l.Plugins, func(p Locked) bool { return p.Name == name })
}

// Names of the entries.
func (l *Lock) Names() []string {
	var names []string
	for _, p := range l.Plugins {
		names = append(names, p.Name)
	}
	return names
}

// Bytes is the text of the file; the same entries give the same text.
func (l *Lock) Bytes() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by amux. Edits may be lost.\nlock = %d\n", lockMax)
	for _, p := range l.Plugins {
		b.WriteString("\n[[plugin]]\n")
		for _, field := range []struct{ key, value string }{
			{"name", p.Name}, {"version", p.Version}, {"source", p.Source}, {"constraint", p.Constraint}, {"signer", p.Signer},
			{"previous", p.Previous}, {"link", p.Link},
		} {
			if field.value != "" || field.key == "constraint" || field.key == "signer" {
				fmt.Fprintf(&b, "%s = %s\n", field.key, quote(field.value))
			}
		}
		for _, hashes := range []struct {
			key    string
			values map[string]string
		}{{"h1", p.H1}, {"sha256", p.SHA256}} {
			if len(hashes.values) == 0 {
				continue
			}
			var pairs []string
			for _, platform := range slices.Sorted(maps.Keys(hashes.values)) {
				pairs = append(pairs, platform+" = "+quote(hashes.values[platform]))
			}
			fmt.Fprintf(&b, "%s = { %s }\n", hashes.key, strings.Join(pairs, ", "))
		}
	}
	return []byte(b.String())
}

// quote is a TOML string, whose escapes are JSON's.
func quote(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string is always encodable
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}
