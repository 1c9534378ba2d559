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
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/test/agents"
)

// manners are what is done beside the lines that an agent writes.
var manners = []string{"", "leave setsid", "leave daemon", "ignore-term", "leave closed\nleave child", "err \\nwhat\\n"}

// Detached runs of agents that write numbered lines, whose server, plugins and
// keepers are killed at any moment: each run ends once. If its keeper lived, all
// lines are there, each once, in order; else it is lost and has a beginning without
// a gap. Nothing is left.
func TestDetachedRunsInChaos(t *testing.T) {
	runs, length := 24, 8*time.Second
	switch {
	case agents.Full():
		runs, length = 200, 5*time.Minute
	case testing.Short():
		runs, length = 8, 3*time.Second
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	s := agents.NewStage(t, "fake", "healthy")
	const pause = 40 * time.Millisecond
	told := agents.Serving{Options: s.Options()}
	lines := map[string]int{}
	for i := range runs {
		n := 1 + dice.IntN(int(length/pause))
		id := ulid.Make().String()
		lines[id] = n
		told.Specs = append(told.Specs, host.RunSpec{
			RunID: id, Agent: "fake", Detached: true, Grace: 50 * time.Millisecond, Timeout: length + 2*time.Minute,
			Prompt: fmt.Sprintf("%s\nticks %d %d", manners[i%len(manners)], n, pause.Milliseconds()),
		})
	}
	info := func(id string) (shim.Info, bool) {
		info, err := shim.ReadInfo(filepath.Join(s.Config, "runs", id))
		return info, err == nil
	}
	var server *exec.Cmd
	var ended chan error
	serve := func() {
		server = agents.ServeCommand(told)
		server.Stderr = os.Stderr
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		ended = make(chan error, 1)
		go func(cmd *exec.Cmd, ended chan error) { ended <- cmd.Wait() }(server, ended)
	}
	kill := func(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) } // of ours; it may have ended
	counts := map[string]int{}
	killed := map[string]bool{} // runs whose keeper was
	keeper := func() {
		id := told.Specs[dice.IntN(runs)].RunID
		keeper, ok := info(id)
		if p, alive := agents.ReadProcess(keeper.PID); ok && alive && fmt.Sprint(keeper.Start) == p.Start {
			killed[id] = true
			counts["keeper"]++
			kill(keeper.PID)
		}
	}
	serve()
	if !testing.Short() { // else servers are killed while they start runs
		agents.Eventually(t, 2*time.Minute, "most runs have begun", func() bool {
			made, _ := os.ReadDir(filepath.Join(s.Config, "runs"))
			return len(made) > runs*9/10
		})
	}
	since := time.Now()
	for time.Since(since) < length {
		time.Sleep(time.Duration(50+dice.IntN(400)) * time.Millisecond)
		switch what := dice.IntN(20); {
		case what < 9:
			kill(server.Process.Pid)
			counts["server"]++
			if what < 2 {
				keeper()
			}
			<-ended
			time.Sleep(time.Duration(dice.IntN(300)) * time.Millisecond)
			serve()
		case what < 12:
			_ = server.Process.Signal(syscall.SIGTERM) // which it does not catch
			<-ended
			counts["server"]++
			serve()
		case what < 17:
			for _, p := range agents.Plugins(server.Process.Pid, "fake") {
				kill(p.PID)
				counts["plugin"]++
			}
		case what < 18 || agents.Full():
			keeper()
		}
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the last server: %v", err)
		}
	case <-time.After(length + time.Minute):
		kill(server.Process.Pid)
		<-ended
		t.Error("the last server does not see the end of all runs")
	}
	t.Logf("killed: %v", counts)
	h := after(t, s)
	states := map[string]int{}
	for _, spec := range told.Specs {
		states[wantLines(t, h, s, spec.RunID, lines[spec.RunID], killed[spec.RunID])]++
	}
	t.Logf("ended: %v", states)
	if states["completed"] == 0 {
		t.Error("no run has come to its own end")
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
	end := r.Wait()
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
		t.Errorf("run %s ended %s, %v; its keeper was killed: %v", id, end.State, end.Err, killed)
	}
	if d := agents.Difference(string(replay(t, h, id)), string(got)); d != "" {
		t.Errorf("run %s, replay: %s", id, d)
	}
	return end.State
}
