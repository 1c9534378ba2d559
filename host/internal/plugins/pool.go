// Package plugins has the plugin processes of a host: one for each executable, started
// when the first run needs it and shared by all, and those that a run gets for itself
// when the shared one has failed it.
package plugins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/internal/rule"
	"github.com/amux-dev/amux/pluginapi"
)

// MaxMemory is more than any adapter needs: four times the longest line, for some runs at
// once.
const MaxMemory = 4 << 30

// Limits are how long a plugin may take, and what its process may hold.
type Limits struct {
	Start    time.Duration // up to its handshake
	Call     time.Duration // for a call
	Progress time.Duration // for an input
	Stall    time.Duration // for all processes of a run together, since the last progress
	Memory   int64         // bytes
}

// Options say how processes are started.
type Options struct {
	Start     func(context.Context, adapter.Options) (*adapter.Process, error) // as adapter.Connect
	Pinned    func(sha256 string) (path string, err error)                     // finds the copy of an executable
	Honest    func(registry.Verified)                                          // is told of one whose process was seen to be what its files say
	Folder    string                                                           // for their private folders
	Env       []string                                                         // of the caller
	AutoMTLS  bool
	Subreaper bool // this process adopts what they leave
	Logger    hclog.Logger
	Limits    *Limits
}

// Pool has the processes of one host. It is safe for concurrent use.
type Pool struct {
	Options

	mu     sync.Mutex
	shared map[string]*Begun // by name and hash
	all    map[*adapter.Process]*use

	closing context.Context // ends with close, and every start with it
	end     context.CancelFunc
	work    sync.WaitGroup // starts
	sweeps  joint
}

// New makes a pool. It starts nothing.
func New(o Options) *Pool {
	p := &Pool{Options: o, shared: map[string]*Begun{}, all: map[*adapter.Process]*use{}}
	p.closing, p.end = context.WithCancel(context.Background())
	return p
}

// ErrClosed is the error of a host that is closed.
func ErrClosed() error { return pluginapi.Errorf(pluginapi.CodeHostGone, "the host is closed") }

// use is what becomes of a process: it may be retired, and then lives as long as a
// conversation does that it holds.
type use struct {
	conversations int
	retired       bool
}

// Begun is a shared process, or the one that is being started.
type Begun struct {
	// Forked is closed when there is a process, which needs no more than time to be ready, or when there will be none.
	Forked  chan struct{}
	ready   chan struct{}
	process *adapter.Process
	err     error
}

// Get returns the shared process of a plugin, starting it if there is none.
func (p *Pool) Get(ctx context.Context, v registry.Verified) (*adapter.Process, error) {
	begun, err := p.Begin(v)
	if err != nil {
		return nil, err
	}
	process, err := begun.Wait(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.Check(ctx, process, v); err != nil {
		return nil, err
	}
	return process, nil
}

// Begin begins a Get, and leaves out the check that the process is what its files say: who has asked it
// something makes nothing of the answer before Check.
func (p *Pool) Begin(v registry.Verified) (*Begun, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Err() != nil {
		return nil, ErrClosed()
	}
	key := v.Plugin.Name + " " + v.SHA256
	s := p.shared[key]
	var dead *adapter.Process
	if s != nil && isClosed(s.ready) {
		switch {
		case s.err != nil:
			s = nil
		case isClosed(s.process.Dead()):
			s, dead = nil, s.process
		}
	}
	if s == nil {
		s = &Begun{Forked: make(chan struct{}), ready: make(chan struct{})}
		p.shared[key] = s
		p.work.Go(func() {
			if dead != nil {
				p.drop(dead) // clears up what it has left
			}
			forked := sync.OnceFunc(func() { close(s.Forked) })
			// No caller's context: other runs wait for the same start.
			s.process, s.err = p.start(p.closing, v, forked)
			forked()
			close(s.ready)
		})
	}
	return s, nil
}

// Wait waits until the process can be asked.
func (b *Begun) Wait(ctx context.Context) (*adapter.Process, error) {
	select {
	case <-b.ready:
		return b.process, b.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Check waits until the process has said what it is, and wants that to be what its files say. One that
// fails is not given to anybody again.
func (p *Pool) Check(ctx context.Context, process *adapter.Process, v registry.Verified) error {
	said, err := process.Described(ctx)
	if err == nil {
		err = honest(said, v.Plugin)
	}
	switch {
	case err == nil && !v.Honest:
		p.Honest(v)
	case err != nil && ctx.Err() == nil:
		p.retire(process)
	}
	return err
}

// start starts a process of its own, which the caller ends by drop. forked is called when there is one.
func (p *Pool) start(ctx context.Context, v registry.Verified, forked func()) (*adapter.Process, error) {
	var known *pluginapi.Description
	if v.Honest {
		known = v.Plugin.Description
	}
	process, err := p.Start(ctx, adapter.Options{
		Name: v.Plugin.Name, Path: v.Path, SocketDir: p.Folder, Env: Env(p.Env, v.Plugin.Manifest.Process.Env),
		AutoMTLS: p.AutoMTLS, StartTime: p.Limits.Start, CallTime: p.Limits.Call, Memory: p.Limits.Memory,
		Logger: p.Logger.Named("plugin"), Description: known,
		Starting: func(start func() (int, error)) error {
			err := p.starting(start)
			forked()
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	closed := p.closing.Err() != nil
	if !closed {
		p.all[process] = &use{}
	}
	p.mu.Unlock()
	if closed {
		process.Kill()
		return nil, ErrClosed()
	}
	return process, nil
}

// honest wants that a process is what its files say. What its agents can do is taken
// from the files alone.
func honest(said *pluginapi.Description, p registry.Plugin) error {
	agents := func(d *pluginapi.Description) (ids []string) {
		for _, a := range d.GetAgents() {
			ids = append(ids, a.Id)
		}
		slices.Sort(ids)
		return ids
	}
	if p.Description == nil { // the copy that a run has begun with, whose files may be gone
		return nil
	}
	lie := ""
	switch is, files := agents(said), agents(p.Description); {
	case said.GetVersion() != p.Description.GetVersion():
		lie = fmt.Sprintf("version %q, and describe.json %q", said.GetVersion(), p.Description.GetVersion())
	case !slices.Equal(is, files):
		lie = fmt.Sprintf("agents %q, and describe.json %q", is, files)
	default:
		return nil
	}
	return pluginapi.Errorf(pluginapi.CodePluginInvalid, "plugin %s says that it has %.200s", p.Name, lie).
		WithHint("reinstall the plugin; its author makes describe.json again: amux plugin package")
}

func (p *Pool) count(process *adapter.Process, by int) {
	p.mu.Lock()
	u := p.all[process]
	over := false
	if u != nil {
		u.conversations += by
		over = u.retired && u.conversations == 0
	}
	p.mu.Unlock()
	if over {
		p.drop(process)
	}
}

// retire keeps a process that hangs in some run from being given to another. Those
// it serves well it goes on serving.
func (p *Pool) retire(process *adapter.Process) {
	p.mu.Lock()
	for key, s := range p.shared {
		if isClosed(s.ready) && s.process == process {
			delete(p.shared, key)
		}
	}
	if u := p.all[process]; u != nil {
		u.retired = true
	}
	p.mu.Unlock()
	p.count(process, 0)
}

// Hangs retires a process that has given no answer to a call.
func (p *Pool) Hangs(ctx context.Context, process *adapter.Process, err error) {
	if ctx.Err() == nil && errors.Is(err, adapter.ErrDied) {
		p.retire(process)
	}
}

// drop ends a process that nobody shares.
func (p *Pool) drop(ended *adapter.Process) {
	p.mu.Lock()
	delete(p.all, ended)
	p.mu.Unlock()
	ended.Kill()
	p.sweep()
}

// sweep kills what plugins that have ended left outside their sessions.
func (p *Pool) sweep() {
	if p.Subreaper {
		p.sweeps.do(func() { process.Sweep("", true) })
	}
}

// starting starts a child that is known to be ours.
func (p *Pool) starting(start func() (int, error)) error {
	if p.closing.Err() != nil {
		return ErrClosed()
	}
	return process.Starting(start)
}

// Close ends all processes, also those that are being started.
func (p *Pool) Close() {
	p.mu.Lock()
	p.end()
	all := p.all
	p.all = nil
	p.mu.Unlock()
	var wg sync.WaitGroup
	for process := range all {
		wg.Go(process.Kill)
	}
	wg.Wait()
	p.work.Wait()
	p.sweep()
}

// Env is the environment of a plugin process: what any program needs to
// run, and what its manifest declares.
func Env(env, declared []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.Contains(plainEnv, strings.ToUpper(name)) && !slices.ContainsFunc(declared, func(pattern string) bool {
			return rule.Glob(pattern, name)
		})
	})
}

var plainEnv = []string{
	"PATH", "HOME", "TMPDIR", "TMP", "TEMP", "LANG", "LC_ALL", "TZ",
	"SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "COMSPEC", "PATHEXT",
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
