//go:build linux && amd64

package chaos

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
)

const (
	// survivorBudget is for the time from the last grace to the end of all, where many
	// rounds are made: one slow round is the machine's.
	survivorBudget = 3 * time.Second
	survivorLimit  = time.Minute
	// survivorBegin is how long a shape may take to begin.
	survivorBegin = 30 * time.Second
)

// survivorEndings are the ways in which a run ends that has left a shape behind. Each
// returns when the run is over, and says when the last grace was.
var survivorEndings = []struct {
	name  string
	grace time.Duration
	// killed is of amux itself; nil: nothing is.
	killed func(k *hosted) []agents.Process
	spec   func(*host.RunSpec)
	script string
	act    func(*host.Run) error
}{
	{name: "stop", grace: matrixGrace, act: stop},
	{name: "kill", act: func(r *host.Run) error { return r.Kill(context.Background()) }},
	{name: "timeout", grace: matrixGrace, spec: func(s *host.RunSpec) { s.Timeout = survivorTimeout() }},
	{name: "exit", grace: leftoverGrace, script: "sleep 0.05\nexit 0"},
	{name: "host killed", killed: func(k *hosted) []agents.Process { return []agents.Process{k.host} }},
	{name: "shim killed", killed: func(k *hosted) []agents.Process { return []agents.Process{k.keep} }},
	{name: "plugin killed", grace: matrixGrace, killed: (*hosted).plugins},
}

// survivorTimeout is enough for a shape to begin before its run ends, also where every
// core is busy.
func survivorTimeout() time.Duration {
	if agents.Full() {
		return 1500 * time.Millisecond
	}
	return 400 * time.Millisecond
}

// survivorShapes are what is left behind, and how many rounds a cell has in the long
// version.
var survivorShapes = []struct {
	name   string
	rounds int
}{
	{"chain", 200}, {"headless", 200}, {"thread chain", 50}, {"brother chain", 50}, {"vfork chain", 50},
	{"setuid", 50}, {"undumpable", 50}, {"ptracer", 50}, {"idle chain", 50}, {"real-time chain", 5},
}

// However a run ends, none of these survives it. That is shown by the end of a pipe that
// every one of them holds, and not by a look at /proc.
func TestNothingSurvives(t *testing.T) {
	if os.Getenv("AMUX_TEST_ALONE") == "" && !agents.Full() {
		t.Skip("its processes take processors and pids from the tests beside it: make chaos-minute")
	}
	s := agents.NewStage(t, "fake", "healthy")
	if agents.Full() {
		keepBusy(t, s)
	}
	h := s.Host()
	took := map[string][]time.Duration{}
	for _, e := range survivorEndings {
		for _, shape := range survivorShapes {
			cell := e.name + "/" + shape.name
			t.Run(strings.ReplaceAll(cell, " ", "-"), func(t *testing.T) {
				if shape.name == "real-time chain" && !agents.Full() {
					t.Skip("it takes all processors from the machine: make chaos")
				}
				rounds, late := agents.Times(1, shape.rounds), 0
				for round := 0; len(took[cell]) < rounds; round++ {
					nest := agents.NewNest(t, s.Root, shape.name)
					func() {
						defer nest.Close()
						spec := host.RunSpec{Agent: "fake", Prompt: nest.Command() + "\nsay ready\n", Limits: host.Limits{Grace: matrixGrace}}
						if e.spec != nil {
							e.spec(&spec)
						}
						var last time.Time
						begun := true
						if e.killed != nil {
							last = killedRound(t, s, spec, nest, e.killed, e.grace, round)
						} else {
							spec.Prompt += e.script
							if e.script == "" {
								spec.Prompt += "sleep 1000"
							}
							last, begun = endedRound(t, s, h, spec, nest, e.act, e.grace)
						}
						gone, all := nest.Gone(survivorLimit)
						if !all {
							t.Errorf("round %d: alive %v after the last grace:\n%s", round, time.Since(last).Round(time.Millisecond), nest.Holders())
						}
						if begun {
							took[cell] = append(took[cell], max(gone.Sub(last), 0))
						} else if late++; late > rounds/10+1 { // or else once more: the machine is busy
							t.Errorf("round %d: the shape has not begun before the timeout, for the %dth time", round, late)
						}
					}()
					if t.Failed() {
						return
					}
				}
				slices.Sort(took[cell])
				t.Logf("%s ms after the last grace, %d rounds", medianMax(took[cell]), len(took[cell]))
			})
		}
	}
	t.Log("\n" + survivorTable(took))
	for cell, all := range took {
		slices.Sort(all)
		if len(all) >= 50 && all[len(all)/2] > survivorBudget {
			t.Errorf("%s: a median of %v from the last grace to the end of all; the budget is %v", cell, all[len(all)/2], survivorBudget)
		}
	}
	if err := h.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// endedRound is a run whose end amux sees to: when it says so, nothing may be left.
func endedRound(t *testing.T, s *agents.Stage, h *host.Host, spec host.RunSpec, nest *agents.Nest, act func(*host.Run) error, grace time.Duration) (last time.Time, begun bool) {
	t.Helper()
	r := s.Start(h, spec)
	limit := survivorBegin
	if spec.Timeout > 0 {
		limit = 2 * spec.Timeout
	}
	late := nest.Begin(limit)
	if act != nil {
		if err := act(r); err != nil {
			t.Error(err)
		}
	}
	end, _ := r.Wait(context.Background())
	if late != nil && spec.Timeout == 0 {
		t.Fatalf("%s: %v", nest.Program, late)
	}
	if !nest.Empty() {
		t.Errorf("the run ended %s before its processes:\n%s", end.State, nest.Holders())
	}
	asked, _ := killTimes(t, r.Dir())
	return asked.Add(grace), late == nil
}

// killedRound is a run of which some process of amux is killed.
func killedRound(t *testing.T, s *agents.Stage, spec host.RunSpec, nest *agents.Nest, killed func(*hosted) []agents.Process, grace time.Duration, round int) time.Time {
	t.Helper()
	o := s.Options()
	o.Subreaper = round%4 != 3 // as amux does, and as a program with the library
	k := startRun(t, s, o, spec)
	nest.Wait(t)
	last := time.Now()
	k.kill(killed(k)...)
	if grace > 0 {
		last, _ = stopped(t, s, k)
		last = last.Add(grace)
	}
	select {
	case <-k.ended:
	case <-time.After(time.Minute):
		t.Errorf("the host does not end:\n%s", nest.Holders())
		k.kill(k.host)
	}
	return last
}

// keepBusy gives every core something else to do.
func keepBusy(t *testing.T, s *agents.Stage) {
	nest := agents.NewNest(t, s.Root, "spin")
	t.Cleanup(nest.Close)
	for range runtime.NumCPU() {
		p := nest.Start(t)
		t.Cleanup(func() { _ = p.Kill(); _, _ = p.Wait() })
	}
}

// survivorTable is how long it took, and how often it was tried.
func survivorTable(took map[string][]time.Duration) string {
	var table strings.Builder
	fmt.Fprintf(&table, "from the last grace to the end of the last process, ms: median (max) × rounds; budget %v\n%-16s", survivorBudget, "")
	for _, e := range survivorEndings {
		fmt.Fprintf(&table, "%22s", e.name)
	}
	rounds := 0
	for _, shape := range survivorShapes {
		fmt.Fprintf(&table, "\n%-16s", shape.name)
		for _, e := range survivorEndings {
			cell := took[e.name+"/"+shape.name]
			slices.Sort(cell)
			rounds += len(cell)
			fmt.Fprintf(&table, "%22s", fmt.Sprintf("%s×%d", medianMax(cell), len(cell)))
		}
	}
	fmt.Fprintf(&table, "\n%d rounds", rounds)
	return table.String()
}
