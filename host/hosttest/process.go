package hosttest

import (
	"context"
	"syscall"

	"sync"

	"github.com/amux-dev/amux/internal/shim"
)

// firstPID is more than any process has.
const firstPID = 1 << 30

// process is one process of an agent.
type process struct {
	tree  *tree
	spawn int
	ctx   context.Context // ends with it
	kill  context.CancelFunc

	stdin, stdout, stderr *pipe

	mu      sync.Mutex
	dead    bool
	running chan struct{} // closed unless it is paused
}

func (p *process) pid() int { return firstPID + p.spawn }

// die ends the process, once.
func (p *process) die(status syscall.WaitStatus) {
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return
	}
	p.dead = true
	p.mu.Unlock()
	p.kill()
	p.pause(false)
	p.stdout.end()
	p.stderr.end()
	p.stdin.shut()
	p.tree.deaths <- death{p.pid(), status}
}

// pause stops or continues the process, and reports whether that is a change.
func (p *process) pause(on bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	paused := false
	select {
	case <-p.running:
	default:
		paused = true
	}
	switch {
	case paused == on || on && p.dead:
		return false
	case on:
		p.running = make(chan struct{})
	default:
		close(p.running)
	}
	return true
}

// hold waits while the process is paused.
func (p *process) hold() {
	p.mu.Lock()
	running := p.running
	p.mu.Unlock()
	<-running
}

func (p *process) living() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.dead
}

// death is the end of a process.
type death struct {
	pid    int
	status syscall.WaitStatus
}

// tree is the processes of a run, of which one lives at a time.
type tree struct {
	machine *Machine
	deaths  chan death

	mu   sync.Mutex
	last *process
}

var _ shim.Tree = (*tree)(nil)

// maxSpawns is more than a run starts.
const maxSpawns = 1000

func newTree(m *Machine) *tree { return &tree{machine: m, deaths: make(chan death, maxSpawns)} }

// start is shim.Edges.Start.
func (t *tree) start(spawn shim.Spawn) (shim.Agent, error) {
	p := &process{
		tree: t, spawn: spawn.Number, running: make(chan struct{}),
		stdin: newPipe(), stdout: newPipe(), stderr: newPipe(),
	}
	p.ctx, p.kill = context.WithCancel(context.Background())
	close(p.running)
	t.mu.Lock()
	t.last = p
	t.mu.Unlock()
	script := t.machine.script(spawn.Args)
	t.machine.work.Go(func() {
		defer p.die(signaled(syscall.SIGKILL)) // of a script that t.FailNow has ended
		a := &Agent{p: p, cwd: spawn.Cwd, env: spawn.Env}
		script(a)
		a.finish()
	})
	return shim.Agent{PID: p.pid(), Stdin: writer{p.stdin}, Stdout: reader{p.stdout}, Stderr: reader{p.stderr}}, nil
}

// reap is shim.Edges.Reap.
func (t *tree) reap(done <-chan struct{}, ended func(int, syscall.WaitStatus)) {
	for {
		select {
		case d := <-t.deaths:
			ended(d.pid, d.status)
		case <-done:
			return
		}
	}
}

// living is the process that lives, or nil.
func (t *tree) living() *process {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || !t.last.living() {
		return nil
	}
	return t.last
}

// Mark is part of shim.Tree, as are those that follow.
func (t *tree) Mark(string) {}

func (t *tree) Signal(signals ...syscall.Signal) int {
	p := t.living()
	if p == nil {
		return 0
	}
	for _, s := range signals {
		switch s {
		case syscall.SIGTERM, syscall.SIGKILL, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
			p.die(signaled(s))
		}
	}
	return 1
}

func (t *tree) Stop() int { return t.pause(true) }

func (t *tree) Continue() int { return t.pause(false) }

func (t *tree) pause(on bool) int {
	if p := t.living(); p != nil && p.pause(on) {
		return 1
	}
	return 0
}

func (t *tree) Hunt(func(int, syscall.WaitStatus)) (gone, lost bool) {
	t.Signal(syscall.SIGKILL)
	return true, false
}

func (t *tree) Held() []string { return nil }

func (t *tree) Start(pid int) uint64 {
	if p := t.living(); p != nil && p.pid() == pid {
		return 1
	}
	return 0
}
