//go:build linux

package chaos

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
)

// death is one way in which processes of amux itself are killed.
type death struct {
	name   string
	strike func(k *hosted) []agents.Process
	// then makes somebody else end what is left, where that is how it ends, and says
	// since when. It returns a function that waits for what it has begun.
	then func(t *testing.T, s *agents.Stage, k *hosted) (since time.Time, wait func())
}

var deaths = []death{
	{"host", func(k *hosted) []agents.Process { return []agents.Process{k.host} }, nil},
	{serverDeath, func(k *hosted) []agents.Process { return []agents.Process{k.host} }, takenUp},
	{"shim", func(k *hosted) []agents.Process { return []agents.Process{k.keep} }, nil},
	{"plugin", func(k *hosted) []agents.Process { return k.plugins() }, stopped},
	{"host and plugin", func(k *hosted) []agents.Process { return append(k.plugins(), k.host) }, nil},
	{"host and shim", func(k *hosted) []agents.Process { return []agents.Process{k.keep, k.host} }, recovered},
}

// serverDeath is that of the host of a detached run.
const serverDeath = "serve"

func (k *hosted) plugins() []agents.Process { return agents.Plugins(k.host.PID, "fake") }

// stopped ends a run that goes on without its plugin's first process.
func stopped(t *testing.T, s *agents.Stage, k *hosted) (time.Time, func()) {
	h := after(t, s)
	r, err := h.Open(context.Background(), k.id)
	if err != nil {
		t.Fatal(err)
	}
	agents.Eventually(t, time.Minute, "the plugin is back", func() bool { return len(k.plugins()) > 0 })
	if end := r.Info().End; end != nil {
		t.Errorf("the run ended with its plugin: %+v", end)
	}
	since := time.Now()
	if err := r.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	return since, func() {}
}

// takenUp is the end of a detached run that has gone on without its server: the next
// one takes it up, and somebody stops it.
func takenUp(t *testing.T, s *agents.Stage, k *hosted) (time.Time, func()) {
	<-k.ended
	h := after(t, s)
	runs, err := h.Adopt(context.Background())
	if err != nil || len(runs) != 1 || runs[0].Info().End != nil || len(k.family()) == 0 {
		t.Fatalf("the run does not go on: %v, %v, %v", runs, err, k.family())
	}
	since := time.Now()
	if err := runs[0].Stop(context.Background()); err != nil {
		t.Error(err)
	}
	return since, func() {
		if end, _ := runs[0].Wait(context.Background()); end.State != "canceled" {
			t.Errorf("the run has ended %s, %v", end.State, end.Err)
		}
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// recovered is the next start of amux.
func recovered(t *testing.T, s *agents.Stage, k *hosted) (time.Time, func()) {
	<-k.ended
	agents.Eventually(t, time.Minute, "the shim is dead", func() bool { return !k.keep.Alive() })
	h := after(t, s)
	var swept sync.WaitGroup
	swept.Go(h.SweepOrphans)
	return time.Now(), swept.Wait
}

// Whatever of amux is killed, and whatever the agent has left behind: nothing
// survives, and it is quick.
func TestKillMatrixOfDeaths(t *testing.T) { deathMatrix(t, false) }

// The same for agents on a pseudo-terminal, whose other end dies with the shim.
func TestKillMatrixOfDeathsOnTerminal(t *testing.T) { deathMatrix(t, true) }

func deathMatrix(t *testing.T, terminal bool) {
	// Not beside other tests: it is about time.
	var (
		mu    sync.Mutex
		took  = map[string][]time.Duration{}
		cells = make(chan struct{}, 3)
		rows  []string
	)
	t.Run("cells", func(t *testing.T) {
		for _, d := range deaths {
			rows = append(rows, d.name)
			for _, kind := range kinds {
				cell := d.name + "/" + kind
				t.Run(cell, func(t *testing.T) {
					t.Parallel()
					s := agents.NewStage(t, "fake", "healthy")
					for round := range agents.Times(3, 100) {
						func() {
							cells <- struct{}{}
							defer func() { <-cells }()
							latency := d.round(t, s, kind, round, terminal)
							mu.Lock()
							defer mu.Unlock()
							took[cell] = append(took[cell], latency)
						}()
						if t.Failed() {
							return
						}
					}
				})
			}
		}
	})
	t.Log("\n" + latencies("from kill -9, or from the end of the last grace, to all gone", rows, took))
	// How long the next start takes to look through all processes is no latency of ours.
	for _, kind := range kinds {
		delete(took, "host and shim/"+kind)
	}
	checkMedian(t, took)
}

// round is one run of one cell.
func (d death) round(t *testing.T, s *agents.Stage, kind string, round int, terminal bool) time.Duration {
	t.Helper()
	o := s.Options()
	o.Subreaper = true
	k := startRun(t, s, o, host.RunSpec{Prompt: "lines 1\nleave " + kind, PTY: terminal, Detached: d.name == serverDeath})
	victims := d.strike(k)
	if len(victims) == 0 {
		t.Fatal("there is nobody to kill")
	}
	if round%2 == 1 {
		slices.Reverse(victims)
	}
	at := time.Now()
	for _, p := range victims {
		// A plugin may have followed its host already.
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
	wait := func() {}
	if d.then != nil {
		at, wait = d.then(t, s, k)
	}
	var family []agents.Process
	for _, p := range k.all {
		if p.PID != k.host.PID && p.Parent != k.host.PID {
			family = append(family, p)
		}
	}
	gone := func() bool { return !slices.ContainsFunc(family, agents.Process.Alive) }
	if kind == "chain" {
		gone = func() bool { return len(k.family()) == 0 }
	}
	last := at
	for deadline := time.Now().Add(time.Minute); !gone() && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		last = time.Now()
	}
	wait()
	if d.then == nil || d.name == "plugin" {
		select {
		case <-k.ended:
		case <-time.After(time.Minute):
			t.Errorf("%s/%s: the host does not end", d.name, kind)
			k.kill(k.host)
		}
	}
	var survivors []agents.Process
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // shim and plugins leave last
		survivors = k.family()
		for _, p := range k.all {
			if p.Alive() {
				survivors = append(survivors, p)
			}
		}
		if len(survivors) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, p := range survivors {
		t.Errorf("%s/%s: survived: %v", d.name, kind, p)
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
	// The next start of amux would look for what it has left, once more.
	h := after(t, s)
	if err := h.Recover(context.Background()); err != nil {
		t.Error(err)
	}
	if r, err := h.Open(context.Background(), k.id); err != nil || r.Info().End == nil {
		t.Errorf("%s/%s: the run has no end: %v", d.name, kind, err)
	}
	if err := h.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return last.Sub(at)
}

// family are the processes that carry the run's mark.
func (k *hosted) family() []agents.Process {
	return slices.DeleteFunc(agents.OfRun(k.id), func(p agents.Process) bool {
		return !strings.Contains(p.Environ, "AMUX_RUN_ID="+k.id)
	})
}
