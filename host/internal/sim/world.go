//go:build unix

package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// World is one simulated machine. It is made in a bubble of synctest.
type World struct {
	seed uint64
	root string
	// Trace, if not nil, gets every step.
	Trace func(string)

	mu        sync.Mutex
	faults    map[string]int
	sum       uint64
	procs     []*Proc
	names     map[string]int
	disk      map[string]*stored
	full      bool
	quiet     bool
	listeners map[string]*listener
	there     map[string]*Proc // shims at the other place, by run
	agents    []*Agent
	script    func(*Agent)
	// shaky: all runs are at the other place, and most links break while something is said.
	shaky bool
}

// New makes a world in an empty folder. script is what each agent does.
func New(seed uint64, folder string, script func(*Agent)) (*World, error) {
	w := &World{
		seed: seed, root: folder, faults: map[string]int{}, names: map[string]int{}, disk: map[string]*stored{},
		listeners: map[string]*listener{}, there: map[string]*Proc{}, script: script,
	}
	w.shaky = w.Rand("links").IntN(8) == 0
	return w, os.MkdirAll(w.Disk(), 0o700)
}

// Disk is the folder that all processes see.
func (w *World) Disk() string { return filepath.Join(w.root, "disk") }

// Rand returns numbers that belong to a name.
func (w *World) Rand(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(&source{pcg: rand.NewPCG(w.seed, h.Sum64())})
}

// source is a source of numbers for several goroutines. Which of them draws next is the
// order of virtual time.
type source struct {
	mu  sync.Mutex
	pcg *rand.PCG
}

func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}

// Count counts a fault that was injected.
func (w *World) Count(fault string) {
	w.mu.Lock()
	w.faults[fault]++
	w.mu.Unlock()
	w.note("fault", fault)
}

// Faults are how often each was injected.
func (w *World) Faults() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults
}

// note adds to the sum of the course of events. The order of what happens at the same
// moment makes no difference.
func (w *World) note(who, what string) {
	now := time.Now().UnixNano()
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %s", now, who, what)
	w.mu.Lock()
	w.sum += h.Sum64()
	w.mu.Unlock()
	if w.Trace != nil {
		w.Trace(fmt.Sprintf("%12.6f %-10s %s", float64(now-start)/1e9, who, what))
	}
}

const start = 946684800_000000000 // when the clock of a bubble begins

// Note is for what happens in the scenario.
func (w *World) Note(who, what string) { w.note(who, what) }

// Sum is of all that has happened: the same for the same course of events.
func (w *World) Sum() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sum
}

// Quiet ends all faults.
func (w *World) Quiet() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quiet, w.full = true, false
}

func (w *World) isQuiet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quiet
}

// Fill makes the disk full, or empty again.
func (w *World) Fill(full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.full = full && !w.quiet
}

// Proc is a process: of a host, a shim or a plugin.
type Proc struct {
	Name string
	Root string // where it sees the disk
	// Dead is closed when it is.
	Dead chan struct{}

	w       *World
	mu      sync.Mutex
	dead    bool
	died    time.Time
	steps   map[string]int
	latest  map[string]time.Time
	dieIn   string
	dieAt   int
	onDeath []func()
	dials   int
}

// Proc starts a process of a kind.
func (w *World) Proc(kind string) *Proc {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[kind]++
	p := &Proc{Name: fmt.Sprintf("%s%d", kind, w.names[kind]), Dead: make(chan struct{}), w: w, steps: map[string]int{}, latest: map[string]time.Time{}}
	p.Root = filepath.Join(w.root, p.Name)
	w.procs = append(w.procs, p)
	if err := os.Symlink("disk", p.Root); err != nil {
		panic(err) // the folder was empty
	}
	return p
}

// DieAt has the process die in a step of that kind: the next is number 1.
func (p *Proc) DieAt(step string, number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dieIn, p.dieAt = step, p.steps[step]+number
}

// Crash kills the process, unless the faults are over.
func (p *Proc) Crash() {
	if p.Alive() && !p.w.isQuiet() {
		p.w.Count("crash of a " + kindOf(p.Name))
		p.Kill()
	}
}

// Kill ends the process.
func (p *Proc) Kill() {
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return
	}
	p.dead, p.died = true, time.Now()
	hooks := p.onDeath
	p.mu.Unlock()
	p.w.note(p.Name, "dies")
	_ = os.Remove(p.Root)
	close(p.Dead)
	for _, f := range hooks {
		f()
	}
}

// Alive reports whether the process is.
func (p *Proc) Alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.dead
}

// OnDeath has f called when the process dies; at once if it is dead.
func (p *Proc) OnDeath(f func()) {
	p.mu.Lock()
	dead := p.dead
	if !dead {
		p.onDeath = append(p.onDeath, f)
	}
	p.mu.Unlock()
	if dead {
		f()
	}
}

// fate is what becomes of a process in a step.
type fate int

const (
	lives fate = iota
	dies       // in this step: the caller does a part of it, and then calls Kill
	isDead
)

func (p *Proc) step(what string) fate {
	quiet := p.w.isQuiet()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return isDead
	}
	p.steps[what]++
	p.w.note(p.Name, what)
	if what == p.dieIn && p.steps[what] == p.dieAt && !quiet {
		p.w.Count("crash of a " + kindOf(p.Name) + " in a step")
		return dies
	}
	return lives
}

// stepOnce is step for what may happen once or twice at the same moment, as chance has it
// when goroutines that are woken together share the work: it counts once.
func (p *Proc) stepOnce(what string) fate {
	now := time.Now()
	p.mu.Lock()
	again := p.latest[what].Equal(now) && !p.dead
	p.latest[what] = now
	p.mu.Unlock()
	if again {
		return lives
	}
	return p.step(what)
}

// lastStep is step for what a process may do at the moment of its death, before or behind
// that as chance has it: it is before.
func (p *Proc) lastStep(what string) fate {
	p.mu.Lock()
	last := p.dead && p.died.Equal(time.Now())
	p.mu.Unlock()
	if last {
		p.w.note(p.Name, what)
		return lives
	}
	return p.step(what)
}

func kindOf(name string) string {
	for i, c := range name {
		if c >= '0' && c <= '9' {
			return name[:i]
		}
	}
	return name
}

// Procs are those of a kind that live.
func (w *World) Procs(kind string) []*Proc {
	w.mu.Lock()
	all := slices.Clone(w.procs)
	w.mu.Unlock()
	return slices.DeleteFunc(all, func(p *Proc) bool { return kindOf(p.Name) != kind || !p.Alive() })
}

// End kills all that is left.
func (w *World) End() {
	w.mu.Lock()
	all, agents := slices.Clone(w.procs), slices.Clone(w.agents)
	w.mu.Unlock()
	for _, p := range all {
		p.Kill()
	}
	for _, a := range agents {
		a.kill()
	}
}

// latency is how long something takes that is usually quick.
func latency(r *rand.Rand) time.Duration {
	d := time.Duration(1 + r.Int64N(int64(100*time.Microsecond)))
	switch r.IntN(64) {
	case 0:
		d += time.Duration(r.Int64N(int64(300 * time.Millisecond)))
	case 1, 2, 3:
		d += time.Duration(r.Int64N(int64(5 * time.Millisecond)))
	}
	return d
}
