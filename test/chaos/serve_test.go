//go:build linux

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/test/agents"
)

// manners are what is done beside the lines that an agent writes.
var manners = []string{"", "leave setsid", "leave daemon", "ignore-term", "leave closed\nleave child", "err \\nwhat\\n"}

// tick is the pause behind each line.
const tick = 40 * time.Millisecond

// swarm are detached runs of agents that write numbered lines, and their server.
type swarm struct {
	t      *testing.T
	dice   *rand.Rand
	s      *agents.Stage
	told   agents.Serving
	lines  map[string]int  // that each run writes
	killed map[string]bool // runs whose shim was
	server *exec.Cmd
	ended  chan error
}

func newSwarm(t *testing.T, dice *rand.Rand, runs int, longest time.Duration) *swarm {
	w := &swarm{t: t, dice: dice, s: agents.NewStage(t, "fake", "healthy"), lines: map[string]int{}, killed: map[string]bool{}}
	w.told.Options = w.s.Options()
	for i := range runs {
		n := 1 + dice.IntN(int(longest/tick))
		id := ulid.Make().String()
		w.lines[id] = n
		w.told.Specs = append(w.told.Specs, host.RunSpec{
			RunID: id, Agent: "fake", Detached: true, Limits: host.Limits{Grace: 50 * time.Millisecond, Timeout: patience(longest)},
			Prompt: fmt.Sprintf("%s\nticks %d %d", manners[i%len(manners)], n, tick.Milliseconds()),
		})
	}
	return w
}

// patience is what a run may take whose agent writes for so long: beside all the others
// its pauses become longer.
func patience(longest time.Duration) time.Duration { return 3*longest + 2*time.Minute }

// serve starts a server.
func (w *swarm) serve() {
	w.t.Helper()
	w.server = agents.ServeCommand(w.told)
	w.server.Stderr = os.Stderr
	if err := w.server.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan error) { ended <- cmd.Wait() }(w.server, w.ended)
}

// killServer kills the server, which may have ended: its pid may be another's by then.
func (w *swarm) killServer() {
	_ = w.server.Process.Kill()
	<-w.ended
}

// killShim kills that of a run, if it lives.
func (w *swarm) killShim() int {
	id := w.told.Specs[w.dice.IntN(len(w.told.Specs))].RunID
	shim, err := shim.ReadInfo(filepath.Join(w.s.Config, "runs", id))
	if p, alive := agents.ReadProcess(shim.PID); err != nil || !alive || fmt.Sprint(shim.Start) != p.Start {
		return 0
	}
	w.killed[id] = true
	_ = syscall.Kill(shim.PID, syscall.SIGKILL) // it may have ended
	return 1
}

// killPlugins kills those of the server.
func (w *swarm) killPlugins() (n int) {
	for _, p := range agents.Plugins(w.server.Process.Pid, "fake") {
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
		n++
	}
	return n
}

// wait waits until the server has seen the end of all runs.
func (w *swarm) wait(limit time.Duration) {
	w.t.Helper()
	select {
	case err := <-w.ended:
		if err != nil {
			w.t.Errorf("the last server: %v", err)
		}
	case <-time.After(limit):
		w.killServer()
		w.t.Error("the last server does not see the end of all runs")
	}
}

// wantAll holds every run to what it should have, and wants that nothing is left.
func (w *swarm) wantAll() (states map[string]int) {
	t, s := w.t, w.s
	t.Helper()
	h := after(t, s)
	states = map[string]int{}
	for _, spec := range w.told.Specs {
		states[wantLines(t, h, s, spec.RunID, w.lines[spec.RunID], w.killed[spec.RunID])]++
	}
	if err := h.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for _, p := range agents.Processes() {
		if p.PID != os.Getpid() && p.State != "Z" && strings.Contains(p.Command+p.Environ, s.Root+"/") {
			t.Errorf("left: %s", p)
		}
	}
	left := s.Leftovers()
	if len(left) > 0 {
		// A plugin that was starting when its server was killed may leave its folder to
		// the next server, and after the last one to amux clean.
		t.Logf("left to amux clean: %v", left)
		if _, err := s.Host().Clean(context.Background(), false); err != nil {
			t.Error(err)
		}
		left = s.Leftovers()
	}
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if active, _ := os.ReadDir(filepath.Join(s.Config, "runs", "active")); len(active) > 0 {
		t.Errorf("%d runs are active", len(active))
	}
	return states
}

// Detached runs of agents that write numbered lines, whose server, plugins and
// shims are killed at any moment: each run ends once. If its shim lived, all
// lines are there, each once, in order; else it is lost and has a beginning without
// a gap. Nothing is left.
//
// Another server, which only loses plugins and shims, has short runs all the time,
// and needs no more memory at the end than at the beginning. The long version lasts
// five minutes, or what AMUX_CHAOS says: 1m.
func TestDetachedRunsInChaos(t *testing.T) {
	runs, steadyRuns, length := 24, 4, 8*time.Second
	switch {
	case agents.Full():
		runs, steadyRuns, length = 200, 12, 5*time.Minute
		if told, err := time.ParseDuration(os.Getenv("AMUX_CHAOS")); err == nil {
			length = told
		}
	case testing.Short():
		runs, length = 8, 3*time.Second
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	shaken := newSwarm(t, dice, runs, length)
	steady := newSwarm(t, dice, steadyRuns*int(length/time.Second), 2*time.Second)
	steady.told.AtOnce, steady.told.For = steadyRuns, length
	counts := map[string]int{}
	shaken.serve()
	if !testing.Short() { // else servers are killed while they start runs
		agents.Eventually(t, 2*time.Minute, "most runs have begun", func() bool {
			made, _ := os.ReadDir(filepath.Join(shaken.s.Config, "runs"))
			return len(made) > runs*9/10
		})
	}
	steady.serve()
	since := time.Now()
	var sizes []int // of the steady server, KiB, each time
	for time.Since(since) < length {
		time.Sleep(time.Duration(50+dice.IntN(400)) * time.Millisecond)
		switch what := dice.IntN(20); {
		case what < 9:
			if what < 2 {
				counts["shim"] += shaken.killShim()
			}
			shaken.killServer()
			counts["server"]++
			time.Sleep(time.Duration(dice.IntN(300)) * time.Millisecond)
			shaken.serve()
		case what < 12:
			_ = shaken.server.Process.Signal(syscall.SIGTERM) // which it does not catch
			<-shaken.ended
			counts["server"]++
			shaken.serve()
		case what < 17:
			counts["plugin"] += shaken.killPlugins()
			if what == 12 {
				counts["plugin"] += steady.killPlugins()
			}
		case what < 18 || agents.Full():
			counts["shim"] += shaken.killShim() + steady.killShim()
		}
		if size := resident(steady.server.Process.Pid, "VmRSS:"); size > 0 { // it leaves when time is over
			sizes = append(sizes, size)
		}
	}
	shaken.wait(patience(length) + time.Minute)
	steady.wait(time.Minute)
	t.Logf("killed: %v", counts)
	ended := shaken.wantAll()
	t.Logf("ended: %v", ended)
	if ended["completed"] == 0 {
		t.Error("no run has come to its own end")
	}
	ended = steady.wantAll()
	t.Logf("ended at the steady server: %v", ended)
	// What it has in the fifth of the time that is the first minute of five, and in the last.
	fifth := len(sizes) / 5
	first, last := median(sizes[:fifth]), median(sizes[len(sizes)-fifth:])
	t.Logf("the steady server has %d KiB at first and %d in the end, %.2f times as much", first, last, float64(last)/float64(first))
	if length >= 5*time.Minute && last > first*12/10 {
		t.Error("it has become more than 1.2 times as big")
	}
}

func median(sizes []int) int {
	sizes = slices.Sorted(slices.Values(sizes))
	if len(sizes) == 0 {
		return 0
	}
	return sizes[len(sizes)/2]
}

// wantLines holds one run to what it should have, and says how it ended.
func wantLines(t *testing.T, h *host.Host, s *agents.Stage, id string, n int, killed bool) (state string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(s.Config, "runs", id, "run.json")); err != nil {
		return "never begun" // not even marked, or swept
	}
	r, err := h.Open(context.Background(), id)
	if err != nil {
		t.Error(err)
		return "absent"
	}
	end, _ := r.Wait(context.Background())
	got, err := os.ReadFile(filepath.Join(r.Dir(), "events.jsonl"))
	if err != nil {
		t.Error(err)
		return "absent"
	}
	if ends := bytes.Count(got, []byte(`{"type":"run_end"`)); ends != 1 {
		t.Errorf("run %s has ended %d times", id, ends)
	}
	agents.Comparable(t, got) // numbered without gaps
	told := 0
	for _, delta := range deltas(t, got) {
		if strings.HasPrefix(delta, "line ") {
			if told++; delta != fmt.Sprintf("line %d\n", told) {
				t.Errorf("run %s: %q comes as the %dth", id, delta, told)
				break
			}
		}
	}
	var written []byte
	terminals := 0
	for _, rec := range records(t, r.Dir()) {
		switch rec.Kind {
		case journal.KindStdout:
			written = append(written, rec.Payload...)
		case journal.KindState:
			if bytes.Contains(rec.Payload, []byte(`"to":"`+end.State+`"`)) {
				terminals++
			}
		}
	}
	if terminals != 1 {
		t.Errorf("run %s: %d records say %s", id, terminals, end.State)
	}
	wrote := strings.Count(string(written), "t line ")
	whole := strings.Count(string(written), "\n")
	for i, line := range strings.Split(string(written), "\nt line ")[1:] {
		if number, _, over := strings.Cut(line, "\n"); over && number != fmt.Sprint(i+1) {
			t.Errorf("run %s: its journal has line %s as the %dth", id, number, i+1)
			break
		}
	}
	switch {
	case end.State == "completed":
		if told != n || wrote != n {
			t.Errorf("run %s has completed with %d lines in the journal and %d told, want %d", id, wrote, told, n)
		}
	case end.State == "failed" && end.End.Code == "HOST_GONE" && told == 0 && whole == 0:
		return "never begun" // its server was killed before the agent was there
	case killed && end.State == "lost":
		if told != wrote && told != wrote-1 { // the last one may be torn
			t.Errorf("run %s is lost with %d lines in the journal and %d told", id, wrote, told)
		}
	default:
		t.Errorf("run %s ended %s, %v; its shim was killed: %v; its journal:\n%s", id, end.State, end.Err, killed, diary(t, r.Dir()))
	}
	if d := agents.Difference(string(replay(t, h, id)), string(got)); d != "" {
		t.Errorf("run %s, replay: %s", id, d)
	}
	return end.State
}

// diary is what a journal has beside output, a record a line.
func diary(t *testing.T, dir string) string {
	t.Helper()
	var told strings.Builder
	outputs := 0
	for _, rec := range records(t, dir) {
		if rec.Kind == journal.KindStdout || rec.Kind == journal.KindStderr {
			outputs++
			continue
		}
		fmt.Fprintf(&told, "%s %v, %d of output before: %.300s\n", rec.Time.Format("15:04:05.000"), rec.Kind, outputs, rec.Payload)
		outputs = 0
	}
	return told.String()
}
