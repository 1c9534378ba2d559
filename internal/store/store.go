// Package store is what amux keeps on disk about runs: a directory for each,
// which one host at a time holds by a lock, a marker for those that are active,
// and the index of those that have ended. It knows the names of the files, not
// what stands in journal and event log.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/amux-dev/amux/internal/sys/foreign"
)

// Meta is run.json: what a run was started with. It is written before anything
// is spawned and never changed. Of variables it has the names only.
type Meta struct {
	Version       int             `json:"version"` // 1
	RunID         string          `json:"run_id"`
	Name          string          `json:"name,omitempty"`
	Agent         string          `json:"agent"`
	Spec          json.RawMessage `json:"spec"`
	EnvNames      []string        `json:"env_names,omitempty"` // of the spec's own variables
	Cwd           string          `json:"cwd"`
	Project       string          `json:"project,omitempty"`
	Tags          []string        `json:"tags,omitempty"`
	Created       time.Time       `json:"created"`
	TempDir       string          `json:"temp_dir"`
	Plugin        string          `json:"plugin"`
	PluginVersion string          `json:"plugin_version"`
	PluginHash    string          `json:"plugin_hash"` // sha256 of the executable
	AmuxVersion   string          `json:"amux_version,omitempty"`
	HostPID       int             `json:"host_pid"`
	HostStart     uint64          `json:"host_start"`
	BootID        string          `json:"boot_id"`
}

// Store is the folder of runs.
type Store struct{ root string }

// New returns the store below a config folder. It touches no file.
func New(configDir string) *Store { return &Store{filepath.Join(configDir, "runs")} }

// Run is the directory of one run.
type Run struct {
	ID   string
	Dir  string
	lock *flock.Flock
	root string
}

// ErrLocked says that another host holds the run.
var ErrLocked = errors.New("another host holds the run")

// Create makes the directory of a new run and locks it.
func (s *Store) Create(id string) (*Run, error) {
	if err := os.MkdirAll(s.root, 0o700); err != nil {
		return nil, err
	}
	r := s.Run(id)
	if err := os.Mkdir(r.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := r.Lock(); err != nil {
		_ = os.RemoveAll(r.Dir)
		return nil, err
	}
	return r, nil
}

// Run names the directory of a run, which need not exist.
func (s *Store) Run(id string) *Run {
	return &Run{ID: id, Dir: filepath.Join(s.root, id), root: s.root}
}

// Lock makes this process the run's host, or says ErrLocked. A lock ends with
// the process that holds it, however it ends.
func (r *Run) Lock() error {
	lock := flock.New(r.Path("lock"))
	ok, err := lock.TryLock()
	if err != nil {
		return err
	}
	if !ok {
		return ErrLocked
	}
	r.lock = lock
	return nil
}

// Unlock gives the run up.
func (r *Run) Unlock() {
	if r.lock != nil {
		_ = r.lock.Close()
		r.lock = nil
	}
}

// Held reports whether some process holds the run now. It disturbs a host that
// begins to hold it at the same moment, so it is for runs that seem to have none.
func (r *Run) Held() bool {
	lock := flock.New(r.Path("lock"), flock.SetFlag(os.O_RDONLY))
	ok, err := lock.TryRLock()
	_ = lock.Close()
	return err == nil && !ok
}

// Path names a file of the run.
func (r *Run) Path(name string) string { return filepath.Join(r.Dir, name) }

// WriteMeta writes run.json.
func (r *Run) WriteMeta(m Meta) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	// By another name first: who reads it, also after this process was killed, finds
	// all of it or nothing.
	if err := os.WriteFile(r.Path(".run.json"), append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(r.Path(".run.json"), r.Path("run.json"))
}

// ReadMeta reads run.json.
func (r *Run) ReadMeta() (Meta, error) {
	var m Meta
	data, err := os.ReadFile(r.Path("run.json"))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("%s: %w", r.Path("run.json"), err)
	}
	return m, nil
}

// MarkActive notes that the run has not ended.
func (r *Run) MarkActive() error {
	dir := filepath.Join(r.root, "active")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, r.ID), nil, 0o600)
}

// MarkEnded takes the note away.
func (r *Run) MarkEnded() { _ = os.Remove(filepath.Join(r.root, "active", r.ID)) }

// Active reports whether the run is marked as not ended.
func (r *Run) Active() bool {
	_, err := os.Lstat(filepath.Join(r.root, "active", r.ID))
	return err == nil
}

// Remove deletes the run's directory and its marker.
func (r *Run) Remove() error {
	r.MarkEnded()
	err := os.RemoveAll(r.Dir)
	r.Unlock()
	return err
}

// Active lists the runs that are marked active.
func (s *Store) Active() []string { return names(filepath.Join(s.root, "active")) }

// List returns the ids of all runs, newest first.
func (s *Store) List() []string {
	ids := slices.DeleteFunc(names(s.root), isNoID)
	slices.Reverse(ids) // ULIDs sort by time
	return ids
}

// Any reports whether there is a run, ended or not. It costs the same for any number of them.
func (s *Store) Any() bool {
	dir, err := os.Open(s.root)
	if err != nil {
		return false
	}
	defer dir.Close()
	for {
		found, err := dir.Readdirnames(100)
		if slices.ContainsFunc(found, func(name string) bool { return !isNoID(name) }) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

func isNoID(name string) bool { return len(name) != idLength }

const idLength = 26

func names(dir string) []string {
	folder, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer folder.Close()
	list, err := folder.Readdirnames(-1)
	if err != nil {
		return nil
	}
	slices.Sort(list)
	return list
}

// Find returns the ids that ref names: the whole id, or a unique part of at least
// four characters at either end.
func (s *Store) Find(ref string) []string {
	upper := strings.ToUpper(ref)
	var found []string
	for _, id := range s.List() {
		if id == upper {
			return []string{id}
		}
		if len(ref) >= 4 && (strings.HasPrefix(id, upper) || strings.HasSuffix(id, upper)) {
			found = append(found, id)
		}
	}
	return found
}

// lockWait bounds the wait for the lock of the index.
const lockWait = 5 * time.Second

// appending lines up the runs of this process, which end by the hundred: the file's
// lock can only be tried again and again.
var appending sync.Mutex

// IndexName is the index of ended runs, in the configuration folder.
const IndexName = "run-index.jsonl"

// AppendIndex adds one line to the index in configDir, and to that of a project if
// project is not empty, under the lock of the first. It writes through no link, and
// into no file of another user.
func AppendIndex(configDir, project string, line []byte) error {
	if err := os.MkdirAll(configDir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(configDir, IndexName)
	deadline := time.Now().Add(lockWait)
	appending.Lock()
	defer appending.Unlock()
	lock := flock.New(path + ".lock")
	for ; ; time.Sleep(10 * time.Millisecond) {
		ok, err := lock.TryLock()
		if err != nil {
			return err
		}
		if ok {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %w", path, ErrLocked)
		}
	}
	defer lock.Close()
	err := appendLine(path, line)
	if project != "" {
		err = errors.Join(err, appendProject(project, line))
	}
	return err
}

// ignored keeps the index of a project, and itself, out of the project's repository.
const ignored = "# Written by amux, for the index of runs.\n/" + IndexName + "\n/" + IndexName + ".lock\n/.gitignore\n"

// appendProject adds a line to PROJECT/.agent-mux/run-index.jsonl, which git never sees.
func appendProject(project string, line []byte) error {
	if err := os.Mkdir(filepath.Join(project, ".agent-mux"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, name := range []string{IndexName, ".gitignore"} {
		if err := foreign.CheckIn(project, ".agent-mux/"+name); err != nil {
			return err
		}
	}
	covers, err := foreign.ReadIn(project, ".agent-mux/.gitignore", foreign.Rule{Limit: 64 << 10})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f, err := foreign.OpenAppend(filepath.Join(project, ".agent-mux", ".gitignore"))
		if err != nil {
			return err
		}
		_, err = f.WriteString(ignored)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	case err != nil:
		return err
	case !slices.ContainsFunc(strings.Split(string(covers), "\n"), coversIndex):
		return fmt.Errorf("%s: it does not name %s, which git would commit; add that line",
			filepath.Join(project, ".agent-mux", ".gitignore"), IndexName)
	}
	return appendLine(filepath.Join(project, ".agent-mux", IndexName), line)
}

// coversIndex reports whether a line of a .gitignore covers the index.
func coversIndex(pattern string) bool {
	return slices.Contains([]string{IndexName, "/" + IndexName, "*", "/*", "*.jsonl", "/*.jsonl"}, strings.TrimSpace(pattern))
}

func appendLine(path string, line []byte) error {
	f, err := foreign.OpenAppend(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
