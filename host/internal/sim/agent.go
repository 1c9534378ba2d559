//go:build unix

package sim

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/shim"
)

const (
	firstPID = 1 << 30
	pipeSize = 64 << 10
)

// Agent is a process below a shim: an agent, or what one has left.
type Agent struct {
	Run   string
	Spawn int
	Rand  *rand.Rand
	// Stubborn ignores SIGTERM.
	Stubborn bool

	w      *World
	tree   *tree
	pid    int
	leader bool
	stdin  *input
	out    [2]*output

	mu      sync.Mutex
	alive   bool
	dead    chan struct{}
	running chan struct{} // closed unless it is stopped
	wrote   [2][]byte
	heard   []string
}

// Seeded is a source of numbers of the agent's own, beside Rand.
func (a *Agent) Seeded(what string) *rand.Rand {
	return a.w.Rand(fmt.Sprintf("%s of agent of %s, %d", what, a.Run, a.Spawn))
}

// killed unwinds the script of an agent that is dead.
type killed struct{}

// Agents are all that there were, in the order of their starts.
func (w *World) Agents() []*Agent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.agents
}

// Alive reports whether the process lives.
func (a *Agent) Alive() bool { return a.living() }

// Leader reports whether a shim has started it.
func (a *Agent) Leader() bool { return a.leader }

// Wrote is what a process has written to its stdout (0) or stderr (1).
func (a *Agent) Wrote(stream int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wrote[stream]
}

// Heard are the lines that it has read.
func (a *Agent) Heard() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heard
}

// start is shim.Edges.Start.
func (t *tree) start(spawn shim.Spawn) (shim.Agent, error) {
	fate := t.shim.lastStep("spawn")
	if fate == isDead {
		return shim.Agent{}, os.ErrClosed
	}
	w := t.shim.w
	a := w.agent(t, fmt.Sprintf("agent of %s, %d", t.run, spawn.Number))
	a.Run, a.Spawn, a.leader = t.run, spawn.Number, true
	a.stdin = &input{queue: newQueue[byte](), p: t.shim, rand: w.Rand(fmt.Sprintf("stdin of %s, %d", t.run, spawn.Number))}
	for i := range a.out {
		a.out[i] = &output{p: t.shim, rand: w.Rand(fmt.Sprintf("output %d of %s, %d", i, t.run, spawn.Number)), writers: 1, changed: make(chan struct{})}
	}
	t.child = a
	go func() {
		defer func() {
			if r := recover(); r != nil && r != (killed{}) {
				panic(r)
			}
		}()
		a.Sleep(latency(a.Rand))
		w.script(a)
		a.Exit(0)
	}()
	result := shim.Agent{PID: a.pid, Stdout: a.out[0], Stderr: a.out[1]}
	if spawn.Stdin {
		result.Stdin = a.stdin
	}
	if fate == dies { // and the agent lives
		t.shim.Kill()
	}
	return result, nil
}

func (w *World) agent(t *tree, name string) *Agent {
	a := &Agent{w: w, tree: t, Rand: w.Rand(name), alive: true, dead: make(chan struct{}), running: make(chan struct{})}
	close(a.running)
	w.mu.Lock()
	defer w.mu.Unlock()
	a.pid = firstPID + len(w.agents)
	w.agents = append(w.agents, a)
	return a
}

// Leave leaves a process behind that has stdout open.
func (a *Agent) Leave(stubborn bool) {
	a.check()
	b := a.w.agent(a.tree, fmt.Sprintf("child of %s, %d", a.Run, a.Spawn))
	b.Run, b.Spawn, b.Stubborn = a.Run, a.Spawn, stubborn
	b.out[0] = a.out[0]
	b.out[0].open(1)
}

// check unwinds a process that is dead, and holds one that is stopped.
func (a *Agent) check() {
	a.mu.Lock()
	running := a.running
	a.mu.Unlock()
	select {
	case <-a.dead:
		panic(killed{})
	case <-running:
	}
	select {
	case <-a.dead:
		panic(killed{})
	default:
	}
}

// Sleep does nothing for a while.
func (a *Agent) Sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.dead:
	}
	a.check()
}

// Print writes to stdout (0) or stderr (1). It waits while the pipe is full.
func (a *Agent) Print(stream int, data []byte) {
	for len(data) > 0 {
		a.Sleep(time.Duration(1 + a.Rand.Int64N(int64(20*time.Microsecond))))
		n, wait := a.out[stream].put(data, func(n int) {
			a.mu.Lock()
			a.wrote[stream] = append(a.wrote[stream], data[:n]...)
			a.mu.Unlock()
		})
		if data = data[n:]; wait != nil {
			select {
			case <-wait:
			case <-a.dead:
			}
			a.check()
		}
	}
}

// Line waits for a line of stdin, for at most that long. end says that none will come.
func (a *Agent) Line(wait time.Duration) (line string, end bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		a.check()
		line, there, end := a.stdin.line()
		if there {
			a.mu.Lock()
			a.heard = append(a.heard, line)
			a.mu.Unlock()
			return line, false
		}
		if end {
			return "", true
		}
		select {
		case <-a.stdin.queue.bell:
		case <-a.dead:
		case <-timer.C:
			return "", false
		}
	}
}

// Exit ends the process.
func (a *Agent) Exit(code int) {
	a.check()
	a.end(syscall.WaitStatus(code << 8))
	panic(killed{})
}

// Crash ends the process by a signal.
func (a *Agent) Crash(s syscall.Signal) {
	a.check()
	a.end(syscall.WaitStatus(s))
	panic(killed{})
}

func (a *Agent) living() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.alive
}

func (a *Agent) kill() { a.end(syscall.WaitStatus(syscall.SIGKILL)) }

func (a *Agent) end(status syscall.WaitStatus) {
	a.mu.Lock()
	if !a.alive {
		a.mu.Unlock()
		return
	}
	a.alive = false
	close(a.dead)
	a.mu.Unlock()
	a.w.note(fmt.Sprint(a.pid), "ends")
	for _, o := range a.out {
		if o != nil {
			o.open(-1)
		}
	}
	if a.leader {
		select {
		case a.tree.deaths <- death{a.pid, status}:
		default:
		}
	}
}

func (a *Agent) signal(s syscall.Signal) {
	switch s {
	case syscall.SIGKILL:
		a.kill()
	case syscall.SIGCONT:
		a.stop(false)
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
		if !a.Stubborn {
			time.AfterFunc(time.Duration(1+a.Rand.Int64N(int64(time.Millisecond))), func() { a.end(syscall.WaitStatus(s)) })
		}
	}
}

// stop stops or continues the process, and reports whether that is a change.
func (a *Agent) stop(on bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	stopped := false
	select {
	case <-a.running:
	default:
		stopped = true
	}
	switch {
	case stopped == on:
		return false
	case on:
		a.running = make(chan struct{})
	default:
		close(a.running)
	}
	return true
}

// input is the shim's end of an agent's stdin.
type input struct {
	*queue[byte]
	p     *Proc
	rand  *rand.Rand
	begun []byte
}

// Write sends to the agent.
func (i *input) Write(b []byte) (int, error) {
	switch i.p.step("write stdin") {
	case dies:
		i.p.Kill()
		return 0, syscall.EPIPE
	case isDead:
		return 0, syscall.EPIPE
	}
	i.push(latency(i.rand), bytes.Clone(b)...)
	return len(b), nil
}

func (i *input) Close() error {
	i.close(latency(i.rand))
	return nil
}

// line takes a line that has come.
func (i *input) line() (line string, there, end bool) {
	data, end := i.take(1 << 30)
	i.begun = append(i.begun, data...)
	if n := bytes.IndexByte(i.begun, '\n'); n >= 0 {
		line, i.begun = string(i.begun[:n]), i.begun[n+1:]
		return line, true, false
	}
	return "", false, end
}

// output is a pipe from an agent to its shim.
type output struct {
	p    *Proc
	rand *rand.Rand

	mu       sync.Mutex
	buf      []byte
	writers  int
	changed  chan struct{} // closed and replaced at every change
	deadline time.Time
	closed   bool
}

func (o *output) change() {
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *output) open(by int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writers += by
	o.change()
}

// put writes what there is room for. wait is closed when more may be tried.
func (o *output) put(data []byte, took func(n int)) (n int, wait <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || !o.p.Alive() {
		return len(data), nil // nobody reads: the agent goes on as if it were heard
	}
	n = min(len(data), pipeSize-len(o.buf))
	if n == 0 {
		return 0, o.changed
	}
	o.buf = append(o.buf, data[:n]...)
	took(n)
	o.change()
	return n, nil
}

func (o *output) Read(b []byte) (int, error) {
	for {
		o.mu.Lock()
		if !o.p.Alive() || o.closed {
			o.mu.Unlock()
			return 0, os.ErrClosed
		}
		if len(o.buf) > 0 {
			n := min(len(b), len(o.buf))
			if n > 1 && o.rand.IntN(4) == 0 {
				n = 1 + o.rand.IntN(n-1)
				o.p.w.Count("short read of output")
			}
			copy(b, o.buf[:n])
			o.buf = o.buf[n:]
			o.change()
			o.mu.Unlock()
			time.Sleep(time.Duration(1 + o.rand.Int64N(int64(20*time.Microsecond))))
			return n, nil
		}
		if o.writers == 0 {
			o.mu.Unlock()
			return 0, io.EOF
		}
		deadline, changed := o.deadline, o.changed
		o.mu.Unlock()
		var late <-chan time.Time
		if !deadline.IsZero() {
			if !time.Now().Before(deadline) {
				return 0, os.ErrDeadlineExceeded
			}
			late = time.After(time.Until(deadline))
		}
		select {
		case <-changed:
		case <-late:
		case <-o.p.Dead:
		}
	}
}

func (o *output) SetReadDeadline(t time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deadline = t
	o.change()
	return nil
}

func (o *output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.change()
	return nil
}
