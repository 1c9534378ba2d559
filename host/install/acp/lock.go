package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// lockName is the file below the folder of a Store that pins what is installed.
const lockName = "lock.json"

// Installed is an agent as the lock pins it.
type Installed struct {
	Name     string `json:"name"` // under which amux runs it
	ID       string `json:"id"`   // in the registry
	Registry string `json:"registry"`
	Version  string `json:"version"`
	Title    string `json:"title,omitempty"` // its name for people
	Way      Way    `json:"way"`             // as the registry had it
	// Integrity is the hash of the package or archive: "sha512-…" from npm, "sha256:…"
	// otherwise.
	Integrity string `json:"integrity"`
	// PackageLock is the SHA-256 of the kept lock of the package's manager, which pins all
	// that it depends on; "" for an archive.
	PackageLock string `json:"package_lock,omitempty"`
	Scripts     bool   `json:"scripts,omitempty"` // install scripts may run
	// Dir and Program are below the folder of the Store, with slashes.
	Dir     string `json:"dir"`
	Program string `json:"program"`
}

type lockFile struct {
	Lock   int         `json:"lock"`
	Agents []Installed `json:"agents"`
}

// Read returns what is installed below dir, by name. Where there is no lock, nothing is.
func Read(dir string) ([]Installed, error) {
	path := filepath.Join(dir, lockName)
	data, err := foreign.Read(path, foreign.Rule{Limit: maxDocument, Private: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, lockError(path, fault.Plain(err))
	}
	var lock lockFile
	if err := strict(data, &lock); err != nil {
		return nil, lockError(path, err)
	}
	if lock.Lock != 1 {
		return nil, lockError(path, fmt.Errorf("its format is %d; this amux reads 1", lock.Lock))
	}
	seen := map[string]bool{}
	for _, a := range lock.Agents {
		if !idRule.MatchString(a.Name) || !idRule.MatchString(a.ID) || !within(a.Dir) || !within(a.Program) || seen[a.Name] {
			return nil, lockError(path, fmt.Errorf("agent %.60q is malformed", a.Name))
		}
		seen[a.Name] = true
	}
	return lock.Agents, nil
}

func lockError(path string, err error) error {
	return pluginapi.Errorf(pluginapi.CodeConfig, "cannot use %s: %w", path, err).
		WithHint("remove the file and add the agents of the registry again")
}

// Argv is the command of an agent below dir.
func (a Installed) Argv(dir string) []string {
	return append([]string{filepath.Join(dir, filepath.FromSlash(a.Program))}, a.Way.Args...)
}

// Find returns the agent of a name.
func Find(agents []Installed, name string) (Installed, bool) {
	i := slices.IndexFunc(agents, func(a Installed) bool { return a.Name == name })
	if i < 0 {
		return Installed{}, false
	}
	return agents[i], true
}

// lockBytes is the lock of agents.
func lockBytes(agents []Installed) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(lockFile{1, agents})
	return b.Bytes(), err
}

// exists reports whether the program of an agent is there.
func (a Installed) exists(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(a.Program)))
	return err == nil && info.Mode().IsRegular()
}

// What is the package or the archive of an agent.
func (a Installed) What() string { return cmp.Or(a.Way.Package, a.Way.Archive) }
