//go:build linux

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/test/agents"
)

// hosted is a run in a process that hosts it, and all that belongs to it.
type hosted struct {
	t     *testing.T
	s     *agents.Stage
	id    string
	dir   string
	host  agents.Process
	keep  agents.Process
	all   map[int]agents.Process // by pid
	ended chan error
}

// startHosted starts a host whose run talks, leaves processes behind and then
// waits.
func startHosted(t *testing.T, s *agents.Stage, script string, subreaper bool) *hosted {
	t.Helper()
	o := s.Options()
	o.Subreaper = subreaper
	return startRun(t, s, o, host.RunSpec{Prompt: script})
}

// startRun starts a host of that run.
func startRun(t *testing.T, s *agents.Stage, o host.Options, spec host.RunSpec) *hosted {
	t.Helper()
	spec.Agent, spec.Timeout, spec.Grace = "fake", 2*time.Minute, matrixGrace
	spec.Prompt += "\nsay ready\nsleep 1000"
	cmd := agents.HostCommand(agents.Hosting{Options: o, Spec: spec})
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k := &hosted{t: t, s: s, all: map[int]agents.Process{}, ended: make(chan error, 1)}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e struct {
			RunID   string `json:"run_id"`
			Message string
			Delta   string
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		k.id = e.RunID
		var kind string
		var pid int
		if n, _ := fmt.Sscanf(e.Message, "pid %s %d", &kind, &pid); n == 2 && kind != "chain" { // that one is gone already
			k.note(pid)
		}
		if e.Delta == "ready\n" {
			break
		}
	}
	go func() {
		for lines.Scan() { // so that it never blocks
		}
		k.ended <- cmd.Wait()
	}()
	k.dir = filepath.Join(s.Config, "runs", k.id)
	k.host = k.note(cmd.Process.Pid)
	info, err := shim.ReadInfo(k.dir)
	if err != nil {
		t.Fatal(err)
	}
	k.keep = k.note(info.PID)
	for _, p := range agents.Processes() {
		if p.Parent == k.host.PID || strings.Contains(p.Environ, "AMUX_RUN_ID="+k.id) {
			k.all[p.PID] = p
		}
	}
	return k
}

// note remembers a process that must be gone in the end.
func (k *hosted) note(pid int) agents.Process {
	k.t.Helper()
	p, ok := agents.ReadProcess(pid)
	if !ok {
		k.t.Fatalf("process %d is not there", pid)
	}
	k.all[pid] = p
	return p
}

func (k *hosted) kill(victims ...agents.Process) {
	for _, p := range victims {
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
			k.t.Fatal(err)
		}
	}
}

// left is every process and file of the run that is still there.
func (k *hosted) left() []string {
	var left []string
	for _, p := range k.all {
		if p.Alive() {
			left = append(left, p.String())
		}
	}
	for _, p := range agents.OfRun(k.id) {
		left = append(left, p.String())
	}
	return append(left, k.s.Leftovers()...)
}

// waitGone waits until nothing is left and says how long that took.
func (k *hosted) waitGone(limit time.Duration) time.Duration {
	k.t.Helper()
	since := time.Now()
	for {
		left := k.left()
		if len(left) == 0 {
			return time.Since(since)
		}
		if time.Since(since) > limit {
			k.t.Errorf("run %s: left after %v:\n%s", k.id, limit, strings.Join(left, "\n"))
			return limit
		}
		time.Sleep(time.Millisecond)
	}
}

// wantEnd compares a recovered run with its journal.
func (k *hosted) wantEnd(h *host.Host, state, code string) {
	k.t.Helper()
	got, err := os.ReadFile(filepath.Join(k.dir, "events.jsonl"))
	if err != nil {
		k.t.Fatal(err)
	}
	same(k.t, "replay of "+k.id, replay(k.t, h, k.id), got)
	lines := bytes.Split(bytes.TrimSpace(got), []byte{'\n'})
	if n := bytes.Count(got, []byte(`{"type":"run_end"`)); n != 1 {
		k.t.Errorf("run %s ended %d times", k.id, n)
	}
	var end struct{ Type, State, Code string }
	if err := json.Unmarshal(lines[len(lines)-1], &end); err != nil || end.Type != "run_end" || end.State != state || end.Code != code {
		k.t.Errorf("run %s ends in %s", k.id, lines[len(lines)-1])
	}
	next := 1
	for i, line := range lines {
		var e struct{ Type, Delta string }
		_ = json.Unmarshal(line, &e)
		if e.Type == "text_delta" && strings.HasPrefix(e.Delta, "line ") {
			// The last words of the dead may be torn.
			torn := i > len(lines)-6
			if want := fmt.Sprintf("line %d\n", next); e.Delta != want && !torn {
				k.t.Fatalf("run %s: %q comes where %q should", k.id, e.Delta, want)
			}
			next++
		}
	}
	if next == 1 {
		k.t.Errorf("run %s: no line is left", k.id)
	}
}

// after is a host that comes later, with a runtime folder of its own.
func after(t *testing.T, s *agents.Stage) *host.Host {
	t.Helper()
	o := s.Options()
	o.RuntimeDir = s.Root + "/later"
	h, err := host.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	return h
}

const leaving = "lines 300\nleave child\nleave setsid\nleave daemon"

// The host is killed while its agent has left processes in sessions of their own:
// nothing of the run outlives it, and the next host tells the end.
func TestHostKilled(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	var took []time.Duration
	var runs []*hosted
	for range agents.Times(15, 100) {
		k := startHosted(t, s, leaving, false)
		k.kill(k.host)
		took = append(took, k.waitGone(time.Second))
		runs = append(runs, k)
		<-k.ended
		if t.Failed() {
			return
		}
	}
	slices.Sort(took)
	t.Logf("all gone after %v (median), %v (slowest of %d)", took[len(took)/2], took[len(took)-1], len(took))
	h := after(t, s)
	if err := h.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, k := range runs {
		k.wantEnd(h, "failed", "HOST_GONE")
	}
	if active, _ := os.ReadDir(filepath.Join(s.Config, "runs", "active")); len(active) > 0 {
		t.Errorf("%d runs are still active", len(active))
	}
}

// The host is killed in the middle of a flood: what the journal has is told.
func TestHostKilledInAFlood(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	for range agents.Times(3, 20) {
		k := startHosted(t, s, "say ready\nlines 300000", false)
		k.kill(k.host)
		k.waitGone(2 * time.Second)
		<-k.ended
		h := after(t, s)
		if err := h.Recover(context.Background()); err != nil {
			t.Fatal(err)
		}
		k.wantEnd(h, "failed", "HOST_GONE")
	}
}

// The shim is killed: the host kills the processes, and the run is lost.
func TestShimKilled(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	for i := range agents.Times(4, 30) {
		k := startHosted(t, s, leaving, i%2 == 1)
		k.kill(k.keep)
		agents.Eventually(t, time.Minute, "the host ends", func() bool { return !k.host.Alive() })
		<-k.ended
		k.waitGone(time.Second)
		k.wantEnd(after(t, s), "lost", "LOST")
		if exit, err := os.ReadDir(filepath.Join(s.Config, "runs", "active")); err == nil && len(exit) > 0 {
			t.Errorf("the run is still active")
		}
	}
}

// Host and shim are killed together: the next host's sweep finds what they
// have left.
func TestHostAndShimKilled(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	for i := range agents.Times(4, 30) {
		k := startHosted(t, s, leaving, false)
		if i%2 == 0 {
			k.kill(k.keep, k.host)
		} else {
			k.kill(k.host, k.keep)
		}
		<-k.ended
		o := s.Options() // with the runtime folder of the dead
		h, err := host.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Recover(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		k.waitGone(time.Second)
		// Whoever was killed first: the shim may have come to record the end.
		end, err := os.ReadFile(filepath.Join(k.dir, "events.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(end, []byte(`"code":"HOST_GONE"`)) {
			k.wantEnd(after(t, s), "failed", "HOST_GONE")
		} else {
			k.wantEnd(after(t, s), "lost", "LOST")
		}
	}
}

// The host is killed at any moment of a start: nothing that it had begun outlives
// it, and the next host clears up.
func TestHostKilledWhileStarting(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	mine := func() []string {
		var left []string
		for _, p := range agents.Processes() {
			if p.PID != os.Getpid() && p.State != "Z" && strings.Contains(p.Command+p.Environ, s.Root+"/") {
				left = append(left, p.String())
			}
		}
		return left
	}
	rounds := agents.Times(12, 150)
	for i := range rounds {
		cmd := agents.HostCommand(agents.Hosting{Options: s.Options(), Spec: host.RunSpec{Agent: "fake", Prompt: leaving + "\nsleep 1000"}})
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// From before its main function to long after the agent's.
		time.Sleep(time.Duration(i) * 120 * time.Millisecond / time.Duration(rounds))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		since := time.Now()
		var left []string
		for left = mine(); len(left) > 0 && time.Since(since) < time.Second; left = mine() {
			time.Sleep(time.Millisecond)
		}
		if len(left) > 0 {
			t.Fatalf("round %d: left after a second:\n%s", i, strings.Join(left, "\n"))
		}
	}
	h, err := host.New(s.Options())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Recover(context.Background()); err != nil {
		t.Error(err)
	}
	infos, err := h.Runs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		if info.End == nil {
			t.Errorf("run %s has no end: %s", info.ID, info.State)
		}
	}
	if err := h.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if left := s.Leftovers(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// The plugin is gone as well, or no good any more, when the next host tells the
// end: the run ends all the same, with the events that it has.
func TestRecoverWithoutPlugin(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*agents.Stage) error{
		"gone": func(s *agents.Stage) error {
			return errors.Join(os.RemoveAll(s.Plugins), os.RemoveAll(s.Config+"/plugins"))
		},
		"replaced": func(s *agents.Stage) error {
			return errors.Join(agents.Install(s.Plugins, "fake", agents.PanicAtPlan), os.RemoveAll(s.Config+"/plugins"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := agents.NewStage(t, "fake", "healthy")
			k := startHosted(t, s, leaving, false)
			k.kill(k.host)
			k.waitGone(time.Second)
			<-k.ended
			before, err := os.ReadFile(filepath.Join(k.dir, "events.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(s); err != nil {
				t.Fatal(err)
			}
			h := after(t, s)
			for range 2 {
				if err := h.Recover(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(filepath.Join(k.dir, "events.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(got, before) {
				t.Error("events were changed")
			}
			agents.Comparable(t, got) // numbered without gaps
			if n := bytes.Count(got, []byte(`{"type":"run_end"`)); n != 1 || !bytes.Contains(got, []byte(`"code":"PLUGIN_CHANGED"`)) {
				t.Errorf("it ends %d times: %s", n, got[max(0, len(got)-500):])
			}
		})
	}
}
