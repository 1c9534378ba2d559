package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/amux-dev/amux/host/adapter"
	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/host/rule"
	"github.com/amux-dev/amux/pluginapi"
)

// plugins are the plugin processes of one host: one for each executable, started
// when the first run needs it and shared by all.
type plugins struct {
	opts   Options
	edges  *edges
	socket string // folder for their private folders
	limits *limits

	mu     sync.Mutex
	shared map[string]*slot // by name and hash
	all    map[*adapter.Process]*use

	closing context.Context // ends with close, and every start with it
	end     context.CancelFunc
	work    sync.WaitGroup // starts
}

// use is what becomes of a process: it may be retired, and then lives as long as a
// conversation does that it holds.
type use struct {
	conversations int
	retired       bool
}

// slot is a shared process, or the one that is being started.
type slot struct {
	ready   chan struct{}
	process *adapter.Process
	err     error
}

// get returns the shared process of a plugin, starting it if there is none.
func (p *plugins) get(ctx context.Context, v registry.Verified) (*adapter.Process, error) {
	p.mu.Lock()
	if p.closing.Err() != nil {
		p.mu.Unlock()
		return nil, errClosed()
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
		s = &slot{ready: make(chan struct{})}
		p.shared[key] = s
		p.work.Go(func() {
			if dead != nil {
				p.drop(dead) // clears up what it has left
			}
			// Not ctx: other runs wait for the same start.
			s.process, s.err = p.start(p.closing, v)
			close(s.ready)
		})
	}
	p.mu.Unlock()
	select {
	case <-s.ready:
		if s.err != nil {
			return nil, s.err
		}
		if err := honest(s.process.Description, v.Plugin); err != nil {
			p.retire(s.process)
			return nil, err
		}
		return s.process, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// start starts a process of its own, which the caller ends by drop.
func (p *plugins) start(ctx context.Context, v registry.Verified) (*adapter.Process, error) {
	process, err := p.edges.plugin(ctx, adapter.Options{
		Name: v.Plugin.Name, Path: v.Path, SocketDir: p.socket, Env: pluginEnv(p.opts.Env, v.Plugin.Manifest.Process.Env),
		AutoMTLS: p.opts.AutoMTLS, StartTime: p.limits.start, CallTime: p.limits.call, Memory: p.limits.memory,
		Logger: p.opts.Logger.Named("plugin"), Starting: p.starting,
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
		return nil, errClosed()
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

// converse opens a conversation with a process. When it is over, done is called.
func (p *plugins) converse(ctx context.Context, process *adapter.Process) (_ *adapter.Conversation, done func(), err error) {
	p.count(process, 1)
	ctx, cancel := context.WithCancel(ctx)
	done = sync.OnceFunc(func() {
		cancel()
		p.count(process, -1)
	})
	conv, err := process.Converse(ctx)
	if err != nil {
		done()
		return nil, nil, err
	}
	return conv, done, nil
}

func (p *plugins) count(process *adapter.Process, by int) {
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
func (p *plugins) retire(process *adapter.Process) {
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

// hangs retires a process that has given no answer to a call.
func (p *plugins) hangs(ctx context.Context, process *adapter.Process, err error) {
	if ctx.Err() == nil && errors.Is(err, adapter.ErrDied) {
		p.retire(process)
	}
}

// drop ends a process that nobody shares.
func (p *plugins) drop(ended *adapter.Process) {
	p.mu.Lock()
	delete(p.all, ended)
	p.mu.Unlock()
	ended.Kill()
	p.sweep()
}

// sweep kills what plugins that have ended left outside their sessions.
func (p *plugins) sweep() {
	if p.opts.Subreaper {
		process.Sweep("", true)
	}
}

// starting starts a child that is known to be ours.
func (p *plugins) starting(start func() (int, error)) error {
	if p.closing.Err() != nil {
		return errClosed()
	}
	return process.Starting(start)
}

// close ends all processes, also those that are being started.
func (p *plugins) close() {
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

// pluginEnv is the environment of a plugin process: what any program needs to
// run, and what its manifest declares.
func pluginEnv(env, declared []string) []string {
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
