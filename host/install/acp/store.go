package acp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/internal/sys/sandbox"
	"github.com/amux-dev/amux/pluginapi"
)

// Options say where agents are kept.
type Options struct {
	Dir     string   // <config>/agents
	Env     []string // for the package managers
	Version string   // of amux
	HTTP    *http.Client
	// Note is called with each command before it runs, and with what the user should
	// know; nil: nobody wants to.
	Note func(format string, args ...any)
}

// Store is a folder of installed agents.
type Store struct{ Options }

// New returns a Store. It touches no file.
func New(o Options) *Store {
	if o.HTTP == nil {
		o.HTTP = install.NewClient()
	}
	if o.Note == nil {
		o.Note = func(string, ...any) {}
	}
	return &Store{o}
}

// Load reads a registry.
func (s *Store) Load(ctx context.Context, source string) (*Registry, error) {
	return Load(ctx, s.HTTP, source, s.agent())
}

func (s *Store) agent() string { return "amux/" + s.Version }

// Request says which agent to install and how much may change.
type Request struct {
	Registry *Registry
	ID       string
	Name     string // "": the id
	Method   string // "": the first that this machine can
	Update   bool   // what the registry has now takes the place of what is pinned
	Scripts  bool   // install scripts of packages may run
	DryRun   bool
}

// Result is what was installed, or would be.
type Result struct {
	Installed
	Previous  string // version that was there
	Unchanged bool   // it was installed already
	// Newer is the version that the registry has of an agent that stays as it is.
	Newer string
}

// Add installs an agent, or installs again what is missing of a pinned one. On an error
// nothing has changed.
func (s *Store) Add(ctx context.Context, req Request) (*Result, error) {
	entry, err := req.Registry.Find(req.ID)
	if err != nil {
		return nil, err
	}
	way, err := s.choose(entry, req.Method)
	if err != nil {
		return nil, err
	}
	unlock, agents, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	next := Installed{
		Name: cmp.Or(req.Name, req.ID), ID: entry.ID, Registry: req.Registry.Source, Version: entry.Version,
		Title: entry.Name, Way: way, Scripts: req.Scripts,
	}
	result := &Result{Installed: next}
	current, pinned := Find(agents, next.Name)
	if pinned {
		if !req.Update && req.Method == "" {
			next.Scripts = next.Scripts || current.Scripts
			if i := slices.IndexFunc(entry.Ways, func(w Way) bool { return w.Method == current.Way.Method }); i >= 0 {
				next.Way = entry.Ways[i]
			}
		}
		stay, err := s.compare(current, next, req.Update)
		if err != nil {
			return nil, err
		}
		if stay {
			next = current
		}
		result.Installed, result.Previous = next, current.Version
		if stay && entry.Version != current.Version {
			result.Newer = entry.Version
		}
		if stay && current.exists(s.Dir) {
			result.Unchanged = true
			return result, nil
		}
	}
	if req.DryRun {
		return result, nil
	}
	same := pinned && !req.Update && current.Version == next.Version && reflect.DeepEqual(current.Way, next.Way)
	if err := s.install(ctx, &next, current, same); err != nil {
		return nil, err
	}
	result.Installed = next
	agents = slices.DeleteFunc(agents, func(a Installed) bool { return a.Name == next.Name })
	agents = append(agents, next)
	slices.SortFunc(agents, func(a, b Installed) int { return cmp.Compare(a.Name, b.Name) })
	if err := s.write(agents); err != nil {
		return nil, err
	}
	s.sweep(agents)
	return result, nil
}

// compare checks a pinned agent against what the registry has. stay means that the pinned
// one counts.
func (s *Store) compare(current, next Installed, update bool) (stay bool, err error) {
	way := "to take it on purpose: amux agents add acp:" + next.ID + " --update"
	if next.Name != next.ID {
		way += " --as " + next.Name
	}
	switch {
	case current.ID != next.ID:
		return false, pluginapi.Errorf(pluginapi.CodeConfig, "agent %s is acp:%s already", current.Name, current.ID).
			WithHint("choose another name with --as, or: amux agents remove %s", current.Name)
	case update:
		return false, nil
	case current.Registry != next.Registry:
		return false, pluginapi.Errorf(pluginapi.CodePluginChanged, "agent %s was added from %s, not from %s", current.Name, current.Registry, next.Registry).
			WithHint("%s", way)
	case current.Version != next.Version:
		return true, nil
	case !reflect.DeepEqual(current.Way, next.Way):
		return false, pluginapi.Errorf(pluginapi.CodePluginChanged, "the registry %s has changed what agent %s %s is", next.Registry, next.ID, next.Version).
			WithHint("%s", way)
	}
	return true, nil
}

// choose returns the way that this machine can go.
func (s *Store) choose(e Entry, method string) (Way, error) {
	if method != "" && !slices.Contains(Methods, method) {
		return Way{}, pluginapi.Errorf(pluginapi.CodeValidation, "invalid --method %q: expected %s", printable.Line(method), strings.Join(Methods, ", "))
	}
	var missing []string
	for _, w := range e.Ways {
		if method != "" && w.Method != method {
			continue
		}
		if lack := s.lacks(w); lack != "" {
			missing = append(missing, w.Method+" needs "+lack)
			continue
		}
		return w, nil
	}
	err := pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "agent %s %s has no distribution for %s", e.ID, e.Version, target())
	switch {
	case len(missing) > 0:
		err = pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "agent %s cannot be installed: %s", e.ID, strings.Join(missing, "; ")).
			WithHint("install that program, then try again")
	case method != "" && len(e.Ways) > 0:
		err = pluginapi.Errorf(pluginapi.CodeValidation, "agent %s has no distribution %s for %s", e.ID, method, target()).
			WithHint("it has: %s", strings.Join(e.Methods(), ", "))
	}
	return Way{}, err
}

// Methods are the methods of an agent for this platform, best first.
func (e Entry) Methods() []string {
	var methods []string
	for _, w := range e.Ways {
		methods = append(methods, w.Method)
	}
	return methods
}

// lacks names the program that a way needs and this machine has not; "" if there is none.
func (s *Store) lacks(w Way) string {
	switch {
	case w.Method == MethodNPX && s.look("npm") == "":
		return "npm"
	case w.Method == MethodUVX && s.look("uv") == "" && s.python() == "":
		return "uv or python3"
	}
	return ""
}

func (s *Store) look(name string) string { return command.Look(name, s.Env, s.Dir) }

func (s *Store) python() string { return cmp.Or(s.look("python3"), s.look("python")) }

// install installs an agent into a new folder. If same is set, it must be what current
// pins. The folder is gone after an error.
func (s *Store) install(ctx context.Context, next *Installed, current Installed, same bool) (err error) {
	if err := os.MkdirAll(s.path("store"), 0o700); err != nil {
		return install.WriteError(err)
	}
	// A virtual environment has its own path in it, so nothing is moved: until the lock
	// names the folder, it does not count.
	dir, err := os.MkdirTemp(s.path("store"), next.Name+"-"+next.Version+"-")
	if err != nil {
		return install.WriteError(err)
	}
	defer func() {
		if err != nil {
			removeTree(dir)
		}
	}()
	next.Dir = "store/" + filepath.Base(dir)
	pins := pinned{}
	if same {
		pins.integrity = current.Integrity
		if current.PackageLock != "" {
			if pins.lock, err = s.keptLock(current); err != nil {
				return err
			}
		}
	}
	var got outcome
	switch next.Way.Method {
	case MethodBinary:
		got, err = s.binary(ctx, dir, *next, pins)
	case MethodNPX:
		got, err = s.npm(ctx, dir, *next, pins)
	default:
		got, err = s.uv(ctx, dir, *next, pins)
	}
	if err != nil {
		return err
	}
	next.Integrity, next.Program = got.integrity, next.Dir+"/"+got.program
	if !next.exists(s.Dir) {
		return pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "agent %s %s has no program %s", next.ID, next.Version, got.program).
			WithHint("report it to the registry")
	}
	if len(got.lock) > 0 {
		next.PackageLock = sum(got.lock)
		if err := os.MkdirAll(s.path("locks"), 0o700); err != nil {
			return install.WriteError(err)
		}
		return install.ReplaceFile(s.lockOf(*next), got.lock)
	}
	return nil
}

// pinned are the hashes that an installation must have; empty at the first.
type pinned struct {
	integrity string
	lock      []byte
}

// outcome is what an installation has made.
type outcome struct {
	program   string // below its folder, with slashes
	integrity string
	lock      []byte // of the package manager
}

// lockOf is where the package manager's lock of an agent is kept. Its name has the hash,
// so that an update which fails does not touch that of the agent which stays.
func (s *Store) lockOf(a Installed) string {
	return filepath.Join(s.path("locks"), a.Name+"-"+a.PackageLock[:16])
}

func (s *Store) keptLock(a Installed) ([]byte, error) {
	if !hashRule.MatchString(a.PackageLock) {
		return nil, lockError(s.path(lockName), fmt.Errorf("agent %s: package_lock is not a hash", a.Name))
	}
	data, err := os.ReadFile(s.lockOf(a))
	if err == nil && sum(data) != a.PackageLock {
		err = fmt.Errorf("it is not the one that was pinned")
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodePluginChanged, "agent %s: its package lock %s is not used: %w", a.Name, s.lockOf(a), err).
			WithHint("to install what the registry has now: amux agents add acp:%s --update", a.ID)
	}
	return data, nil
}

func sum(data []byte) string {
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:])
}

// changed is the refusal of a package that is not the pinned one.
func changed(a Installed, want, got string) error {
	return pluginapi.Errorf(pluginapi.CodePluginChanged, "agent %s %s has changed: its hash is %s, not %s", a.ID, a.Version, printable.Line(got), want).
		WithHint("if you know why: amux agents add acp:%s --update", a.ID)
}

// Remove removes an agent and its pins.
func (s *Store) Remove(name string) error {
	unlock, agents, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, ok := Find(agents, name); !ok {
		return pluginapi.Errorf(pluginapi.CodeAgentNotFound, "no agent %q was added from a registry", printable.Line(name)).
			WithHint("amux agents list shows which ones were")
	}
	agents = slices.DeleteFunc(agents, func(a Installed) bool { return a.Name == name })
	if err := s.write(agents); err != nil {
		return err
	}
	s.sweep(agents)
	return nil
}

func (s *Store) path(name string) string { return filepath.Join(s.Dir, name) }

// lock waits for other writers and clears up what those that died have left.
func (s *Store) lock() (unlock func(), agents []Installed, err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, nil, install.WriteError(err)
	}
	l := flock.New(s.path(".lock"), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if ok, err := l.TryLockContext(ctx, 20*time.Millisecond); err != nil && ctx.Err() == nil {
		return nil, nil, install.WriteError(err)
	} else if !ok {
		return nil, nil, pluginapi.Errorf(pluginapi.CodeConfigLock, "another amux is installing agents in %s", s.Dir).
			WithHint("wait for it, then try again")
	}
	agents, err = Read(s.Dir)
	if err != nil {
		_ = l.Unlock()
		return nil, nil, err
	}
	s.sweep(agents)
	return func() { _ = l.Unlock() }, agents, nil
}

func (s *Store) write(agents []Installed) error {
	data, err := lockBytes(agents)
	if err != nil {
		return err
	}
	return install.ReplaceFile(s.path(lockName), data)
}

// sweep removes what no agent of the lock has.
func (s *Store) sweep(agents []Installed) {
	used := map[string]bool{}
	for _, a := range agents {
		used[filepath.Base(filepath.FromSlash(a.Dir))] = true
		if hashRule.MatchString(a.PackageLock) {
			used[filepath.Base(s.lockOf(a))] = true
		}
	}
	for _, folder := range []string{"store", "locks"} {
		entries, _ := os.ReadDir(s.path(folder))
		for _, e := range entries {
			if !used[e.Name()] {
				removeTree(filepath.Join(s.path(folder), e.Name()))
			}
		}
	}
	leftovers, _ := filepath.Glob(s.path("." + lockName + "-*")) // of a lock that was being replaced
	for _, path := range leftovers {
		_ = os.Remove(path)
	}
}

// removeTree removes a folder; what stays is swept by the next writer.
func removeTree(dir string) { _ = os.RemoveAll(dir) }

// installTime is how long a package manager may take.
const installTime = 15 * time.Minute

// run runs a package manager in dir and returns what it printed. Nothing of it is left
// when it has ended.
func (s *Store) run(ctx context.Context, dir string, argv ...string) ([]byte, error) {
	s.Note("running: %s", strings.Join(argv, " "))
	var out output
	c := command.Command{Env: s.Env, Cwd: dir, Time: installTime, Group: true}
	got := c.Run(ctx, argv, &out)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if out.full {
		return nil, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "%s prints more than %d MiB", argv[0], maxDocument>>20)
	}
	if got.ExitCode != 0 {
		why := cmp.Or(telling(got.Stderr), sandbox.Telling(out.kept), fmt.Sprintf("exit code %d, and it says nothing", got.ExitCode))
		return nil, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "%s failed: %s", filepath.Base(argv[0]), printable.Line(why)).
			WithHint("nothing was installed; check the network and the room on the disk, or try another way with --method")
	}
	return out.kept, nil
}

// telling is the line of stderr that says most. npm ends with where its log is.
func telling(stderr []byte) string {
	var kept []byte
	for line := range bytes.Lines(stderr) {
		line, _ = bytes.CutPrefix(line, []byte("npm error "))
		if !bytes.HasPrefix(line, []byte("A complete log of this run")) && !bytes.HasPrefix(line, []byte("code ")) {
			kept = append(kept, line...)
		}
	}
	return sandbox.Telling(kept)
}

// output keeps what a program prints, as far as maxDocument.
type output struct {
	kept []byte
	full bool
}

func (o *output) Write(b []byte) (int, error) {
	if len(o.kept)+len(b) > maxDocument {
		o.full = true
		return len(b), nil
	}
	o.kept = append(o.kept, b...)
	return len(b), nil
}

var _ io.Writer = (*output)(nil)
