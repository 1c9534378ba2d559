package host

import (
	"context"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/amux-dev/amux/host/adapter"
	"github.com/amux-dev/amux/host/registry"
)

// plugins are the plugin processes of one host: one for each executable, started
// when the first run needs it and shared by all.
type plugins struct {
	opts   Options
	socket string // folder for their private folders

	mu     sync.Mutex
	shared map[string]*slot // by hash
	all    map[*adapter.Process]bool
	closed bool
	thread chan func() // jobs for the thread that plugins die with; nil until needed
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
	s := p.shared[v.SHA256]
	if s != nil {
		select {
		case <-s.ready:
			if s.err != nil || isClosed(s.process.Dead()) {
				s = nil
			}
		default:
		}
	}
	if s == nil {
		s = &slot{ready: make(chan struct{})}
		p.shared[v.SHA256] = s
		go func() {
			// Not ctx: other runs wait for the same start.
			s.process, s.err = p.start(context.WithoutCancel(ctx), v)
			close(s.ready)
		}()
	}
	p.mu.Unlock()
	select {
	case <-s.ready:
		return s.process, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// start starts a process of its own, which the caller ends by drop.
func (p *plugins) start(ctx context.Context, v registry.Verified) (*adapter.Process, error) {
	process, err := adapter.Start(ctx, adapter.Options{
		Name: v.Plugin.Name, Path: v.Path, SocketDir: p.socket, Env: pluginEnv(p.opts.Env, v.Plugin.Manifest.Process.Env),
		AutoMTLS: p.opts.AutoMTLS, Logger: p.opts.Logger.Named("plugin"), Spawn: p.spawn,
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		process.Kill()
		return nil, context.Canceled
	}
	p.all[process] = true
	return process, nil
}

// drop ends a process that nobody shares.
func (p *plugins) drop(process *adapter.Process) {
	p.mu.Lock()
	delete(p.all, process)
	p.mu.Unlock()
	process.Kill()
}

// spawn starts a command from one thread that lives until close: on Linux a
// plugin dies with the thread that started it.
func (p *plugins) spawn(cmd *exec.Cmd) error {
	p.mu.Lock()
	if p.thread == nil && !p.closed {
		p.thread = make(chan func())
		go func(jobs <-chan func()) {
			runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
			for job := range jobs {
				job()
			}
		}(p.thread)
	}
	jobs := p.thread
	p.mu.Unlock()
	if jobs == nil {
		return context.Canceled
	}
	done := make(chan error, 1)
	jobs <- func() { done <- cmd.Start() }
	return <-done
}

// close ends all processes.
func (p *plugins) close() {
	p.mu.Lock()
	p.closed = true
	all := p.all
	p.all = nil
	thread := p.thread
	p.thread = nil
	p.mu.Unlock()
	var wg sync.WaitGroup
	for process := range all {
		wg.Go(process.Kill)
	}
	wg.Wait()
	if thread != nil {
		close(thread)
	}
}

// pluginEnv is the environment of a plugin process: what any program needs to
// run, and what its manifest declares.
func pluginEnv(env, declared []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.Contains(plainEnv, strings.ToUpper(name)) && !slices.ContainsFunc(declared, func(pattern string) bool {
			return glob(pattern, name)
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
