//go:build unix

package sim

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/shim"
)

// listener is the address of a shim.
type listener struct {
	p      *Proc
	name   string
	conns  chan *conn
	closed chan struct{}
}

func (l *listener) Accept() (shim.Stream, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, os.ErrClosed
	}
}

func (l *listener) Close() error {
	l.p.w.mu.Lock()
	defer l.p.w.mu.Unlock()
	if l.p.w.listeners[l.name] == l {
		delete(l.p.w.listeners, l.name)
		close(l.closed)
	}
	return nil
}

// Launch starts the shim of a run, as shim.Launch does.
func (p *Proc) Launch(_, dir string, hello shim.Hello) (*shim.Launched, error) {
	if (p.w.shaky || p.w.Rand("place of "+hello.RunID).IntN(6) == 0) && p.begun(dir) {
		return p.launchAfar(dir, hello)
	}
	fate := p.lastStep("launch")
	if fate == isDead {
		return nil, os.ErrClosed
	}
	w := p.w
	child := w.Proc("shim")
	rel := strings.TrimPrefix(dir, p.Root)
	ours, theirs := connect("launch of "+hello.RunID, p, child)
	child.OnDeath(func() { _ = os.Remove(filepath.Join(w.Disk(), rel, "shim.json")) })
	w.serve(child, child.Root+rel, hello.RunID, false, theirs)
	if fate == dies { // and the shim lives
		p.Kill()
	}
	return shim.Greet(ours, hello, func() { <-child.Dead }, func() {})
}

// serve has a process be the shim of the run in dir, here or at the other place.
func (w *World) serve(child *Proc, dir, run string, there bool, launch shim.Stream) {
	tree := &tree{shim: child, run: run, there: there, deaths: make(chan death, 100)}
	pid := os.Getpid() // lives for as long as shim.json says so
	began, _ := process.Start(pid)
	go func() {
		_ = shim.Serve(shim.Config{
			Dir: dir, Tree: tree, Self: shim.Info{PID: pid, Start: began, BootID: process.BootID()},
			Edges: shim.Edges{Open: child.Open, Start: tree.start, Reap: tree.reap, Listen: child.listen},
		}, launch)
		child.Kill()
	}()
}

func (p *Proc) listen(path string) (shim.Listener, error) {
	l := &listener{p, filepath.Base(path), make(chan *conn, 16), make(chan struct{})}
	p.w.mu.Lock()
	p.w.listeners[l.name] = l
	p.w.mu.Unlock()
	p.OnDeath(func() { _ = l.Close() })
	return l, nil
}

// Dial is a shim.Dialer.
func (p *Proc) Dial(ctx context.Context, socket string) (io.ReadWriteCloser, error) {
	switch p.lastStep("dial") {
	case dies:
		p.Kill()
		return nil, os.ErrClosed
	case isDead:
		return nil, os.ErrClosed
	}
	p.w.mu.Lock()
	l := p.w.listeners[filepath.Base(socket)]
	p.w.mu.Unlock()
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	p.mu.Lock()
	p.dials++
	name := fmt.Sprintf("%s dials %s, %d", p.Name, l.name, p.dials)
	p.mu.Unlock()
	ours, theirs := connect(name, p, l.p)
	select {
	case l.conns <- theirs:
		return ours, nil
	default:
		return nil, syscall.EAGAIN
	}
}

// death is the end of a leader.
type death struct {
	pid    int
	status syscall.WaitStatus
}

// tree is a shim.Tree of simulated agents.
type tree struct {
	shim   *Proc
	run    string
	there  bool // at the other place
	deaths chan death
	child  *Agent // the last one
}

var _ shim.Tree = (*tree)(nil)

func (t *tree) Mark(string) {}

func (t *tree) all() []*Agent {
	t.shim.w.mu.Lock()
	defer t.shim.w.mu.Unlock()
	var all []*Agent
	for _, a := range t.shim.w.agents {
		if a.tree == t && a.living() {
			all = append(all, a)
		}
	}
	return all
}

func (t *tree) Signal(signals ...syscall.Signal) int {
	if !t.shim.Alive() {
		return 0
	}
	all := t.all()
	for _, a := range all {
		for _, s := range signals {
			a.signal(s)
		}
	}
	return len(all)
}

func (t *tree) Stop() (n int) {
	for _, a := range t.all() {
		if a.stop(true) {
			n++
		}
	}
	return n
}

func (t *tree) Continue() (n int) {
	for _, a := range t.all() {
		if a.stop(false) {
			n++
		}
	}
	return n
}

// Hunt kills what there is. A leader is reaped by Reap.
func (t *tree) Hunt(func(int, syscall.WaitStatus)) (gone, lost bool) {
	if !t.shim.Alive() {
		return true, false
	}
	all := t.all()
	for _, a := range all {
		a.kill()
	}
	return len(all) == 0, false
}

func (t *tree) Held() []string { return nil }

// Start is 1 for an agent. Of a host only the end is asked for.
func (t *tree) Start(pid int) uint64 {
	if pid >= firstPID {
		return 1
	}
	return 0
}

// reap tells of deaths. A shim that was killed is told that its agent is gone, so that
// its goroutines end.
func (t *tree) reap(done <-chan struct{}, ended func(int, syscall.WaitStatus)) {
	dead := t.shim.Dead
	for {
		select {
		case d := <-t.deaths:
			if !t.shim.Alive() {
				continue
			}
			time.Sleep(latency(t.shim.w.Rand(t.shim.Name + " reap")))
			ended(d.pid, d.status)
		case <-dead:
			dead = nil
			if t.child != nil {
				ended(t.child.pid, syscall.WaitStatus(syscall.SIGKILL))
			}
		case <-done:
			return
		}
	}
}

// Sweep kills what a run has left, on this machine.
func (w *World) Sweep(run string) { w.sweep(run, false) }

func (w *World) sweep(run string, there bool) {
	w.mu.Lock()
	all := append([]*Agent(nil), w.agents...)
	w.mu.Unlock()
	for _, a := range all {
		if a.tree.run == run && a.tree.there == there {
			a.kill()
		}
	}
}
