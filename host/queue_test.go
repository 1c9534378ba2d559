//go:build linux

package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// limited is a host that lets so many runs go on.
func limited(t *testing.T, s *agents.Stage, runs int) *host.Host {
	t.Helper()
	o := s.Options()
	o.MaxRuns = runs
	h, err := host.New(o)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = h.Close(ctx)
	})
	return h
}

// held is a run that goes on until it is stopped.
func held(t *testing.T, s *agents.Stage, h *host.Host) *host.Run {
	t.Helper()
	r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say on\nwait"})
	until(t, r, "text_delta")
	return r
}

func wantState(t *testing.T, r *host.Run, state string) {
	t.Helper()
	agents.Eventually(t, time.Minute, "run is "+state, func() bool { return r.Info().State == state })
}

// Runs beyond the limit wait, begin in order when there is a place, and are told as
// any other: by their events, by a host of another process.
func TestQueue(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := limited(t, s, 2)
	other := next(t, s)
	const runs = 12
	var all []*host.Run
	for i := range runs {
		all = append(all, s.Start(h, host.RunSpec{Agent: "fake", Prompt: fmt.Sprintf("say number %d\nask go\nlines 10", i), Permissions: host.Permissions{Approve: host.ApproveAsk}}))
	}
	for i := 0; i < runs; i += 2 {
		for _, r := range all[i : i+2] {
			wantState(t, r, "waiting")
		}
		for _, r := range all[i+2:] {
			if state := open(t, other, r.ID()).Info().State; state != "queued" {
				t.Errorf("run %d is %s while two go on", i, state)
			}
			if len(agents.OfRun(r.ID())) > 1 {
				t.Errorf("a queued run has more than its shim: %v", agents.OfRun(r.ID()))
			}
		}
		must(t, all[i].Approve(context.Background(), "", nil))
		must(t, all[i+1].Approve(context.Background(), "", nil))
		for _, r := range all[i : i+2] {
			if end, _ := r.Wait(context.Background()); end.State != "completed" {
				t.Errorf("%s, %v", end.State, end.Err)
			}
		}
	}
	var earlier, last time.Time // when the runs before these two began, and the later of these
	for i, r := range all {
		if i%2 == 0 {
			earlier = last
		}
		got := events(t, r)
		if d := agents.Difference(string(replay(t, h, r.ID())), string(got)); d != "" {
			t.Errorf("replay: %s", d)
		}
		agents.Comparable(t, got)
		for e, err := range r.Events(context.Background(), 1) {
			must(t, err)
			var state pluginapi.RunState
			if e.Type == "run_state" && e.Decode(&state) == nil && state.To == "starting" {
				if state.From != "queued" || e.Time.Before(earlier) { // two begin at a time
					t.Errorf("it began at %v from %s, another of before it at %v", e.Time, state.From, earlier)
				}
				if e.Time.After(last) {
					last = e.Time
				}
			}
		}
	}
}

// A queued run can be stopped, from here and from elsewhere, and nothing else.
func TestStopQueued(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := limited(t, s, 1)
	other := next(t, s)
	first := held(t, s, h)
	queue := func(conversation bool) *host.Run {
		return s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say never", Conversation: conversation})
	}
	stopped, killed, canceled, twice, left := queue(true), queue(false), queue(false), queue(false), queue(false)
	for _, at := range []*host.Host{h, other} {
		r := open(t, at, stopped.ID())
		for what, err := range map[string]error{
			"send": r.Send(context.Background(), "more"), "pause": r.Pause(context.Background()), "end": r.End(context.Background()),
		} {
			if !errors.Is(err, pluginapi.CodeInvalidTransition) || !strings.Contains(err.Error(), "waits for its turn") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if outcome, err := other.Delete(context.Background(), stopped.ID()); outcome != host.ActiveConflict {
		t.Errorf("delete: %s, %v", outcome, err)
	}
	must(t, stopped.Stop(context.Background()))
	must(t, killed.Kill(context.Background()))
	for range 2 {
		if outcome, err := other.Cancel(context.Background(), canceled.ID(), false); outcome != host.CancelRequested && outcome != host.AlreadyFinished {
			t.Errorf("cancel: %s, %v", outcome, err)
		}
	}
	var both sync.WaitGroup
	for i := range 8 {
		both.Go(func() {
			at := []*host.Host{h, other}[i%2]
			if outcome, err := at.Cancel(context.Background(), twice.ID(), i%3 == 0); outcome != host.CancelRequested && outcome != host.AlreadyFinished {
				t.Errorf("cancel: %s, %v", outcome, err)
			}
		})
	}
	both.Wait()
	for _, r := range []*host.Run{stopped, killed, canceled, twice} {
		end, _ := r.Wait(context.Background())
		if end.State != "canceled" || end.End.Code != pluginapi.CodeAborted {
			t.Errorf("%s, %v", end.State, end.Err)
		}
		got := events(t, r)
		if want := "run_state aborted run_state run_end"; types(got, "run_state", "user_message", "aborted", "run_end") != want {
			t.Errorf("events: %s", got)
		}
		if d := agents.Difference(string(replay(t, h, r.ID())), string(got)); d != "" {
			t.Errorf("replay: %s", d)
		}
	}
	must(t, first.Stop(context.Background()))
	if end, _ := left.Wait(context.Background()); end.State != "completed" { // the stopped ones hold no place
		t.Errorf("%s, %v", end.State, end.Err)
	}
	queue(false).Wait(context.Background())
	held(t, s, h)
	last := queue(false)
	must(t, h.Close(context.Background()))
	if end, _ := last.Wait(context.Background()); end.State != "canceled" {
		t.Errorf("%s, %v after the host was closed", end.State, end.Err)
	}
	must(t, other.Close(context.Background()))
	wantGone(t, s)
}

// What goes wrong when the turn has come is the run's end, not that of others.
func TestQueuedRunFails(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy", "crashing", string(agents.PanicAtPlan))
	h := limited(t, s, 1)
	first := held(t, s, h)
	fails := s.Start(h, host.RunSpec{Agent: "crashing", Prompt: "say never"})
	cwd := t.TempDir()
	nowhere := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say never", Workspace: host.Workspace{Cwd: cwd}})
	killed := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say never"})
	tries := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "early 1 do fail OVERLOADED\nearly 1 exit 1", Workspace: host.Workspace{Cwd: t.TempDir()}, Retry: soon(2)})
	after := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "lines 3"})
	must(t, os.Remove(cwd))
	shim, err := shim.ReadInfo(filepath.Join(s.Config, "runs", killed.ID()))
	must(t, err)
	process, err := os.FindProcess(shim.PID)
	must(t, err)
	must(t, process.Kill())
	must(t, first.Stop(context.Background()))
	for _, c := range []struct {
		run   *host.Run
		state string
		code  pluginapi.Code
	}{{fails, "failed", pluginapi.CodePluginCrashed}, {nowhere, "failed", pluginapi.CodeSpawn}, {killed, "lost", pluginapi.CodeLost}, {tries, "completed", ""}, {after, "completed", ""}} {
		if end, _ := c.run.Wait(context.Background()); end.State != c.state || end.End.Code != c.code {
			t.Errorf("%s, %v; want %s %s", end.State, end.Err, c.state, c.code)
		}
		if d := agents.Difference(string(replay(t, h, c.run.ID())), string(events(t, c.run))); d != "" {
			t.Errorf("replay: %s", d)
		}
	}
}

// Stops come while a queued run gets its turn, at whatever moment: each run has one
// end, and the place is free after it.
func TestStopAgainstTurn(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h, other := patient(limited(t, s, 1)), patient(next(t, s))
	count := map[string]int{}
	var span time.Duration // from the start of the one to its end, behind the other
	for round := range agents.Rounds(t, 60, 2000) {
		since := time.Now()
		first := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say hi", NoRecord: true})
		r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "lines 20"})
		if round < 2 { // the first one also waits for its plugin
			r.Wait(context.Background())
			span = r.Info().Ended.Sub(since)
		}
		moment := rand.N(span)
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				time.Sleep(moment + time.Duration(rand.Int64N(int64(10*time.Millisecond))))
				at := []*host.Host{h, other}[i%2]
				if outcome, err := at.Cancel(context.Background(), r.ID(), i == 0); outcome != host.CancelRequested && outcome != host.AlreadyFinished {
					t.Errorf("round %d: %s, %v", round, outcome, err)
				}
			})
		}
		got := events(t, r)
		all.Wait()
		end, _ := r.Wait(context.Background())
		if end.State != "completed" && (end.State != "canceled" || end.End.Code != pluginapi.CodeAborted) {
			t.Errorf("round %d: %s, %v", round, end.State, end.Err)
		}
		if n := bytes.Count(got, []byte(`{"type":"run_end"`)); n != 1 {
			t.Errorf("round %d: it ends %d times", round, n)
		}
		if d := agents.Difference(string(replay(t, h, r.ID())), string(got)); d != "" {
			t.Errorf("round %d, replay: %s", round, d)
		}
		if end.State == "completed" {
			span = r.Info().Ended.Sub(since) // the machine may have got faster
		}
		count[fmt.Sprint(end.State, " ", bytes.Count(got, []byte(`{"type":"run_state"`)))]++
		first.Wait(context.Background())
	}
	t.Log(count) // by end and number of states
	if len(count) < 2 {
		t.Error("the stops have come at too few moments")
	}
}

// A run that is being started can be stopped from elsewhere, too; who starts it is
// told.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy", "slow", string(agents.HangAtPlan))
	h := s.Host()
	other := next(t, s)
	id := ulid.Make().String()
	started := make(chan error, 1)
	go func() {
		_, err := h.Start(context.Background(), host.RunSpec{Agent: "slow", Prompt: "say hi", RunID: id})
		started <- err
	}()
	agents.Eventually(t, time.Minute, "it can be stopped", func() bool {
		outcome, _ := other.Cancel(context.Background(), id, false)
		return outcome == host.CancelRequested
	})
	if err := <-started; err == nil {
		t.Error("it was started")
	}
	must(t, h.Close(context.Background()))
	must(t, other.Close(context.Background()))
	wantGone(t, s)
}

// The host is killed with runs in its queue: none of them is begun, each has its end.
func TestHostKilledWithQueue(t *testing.T) {
	t.Parallel()
	for _, detached := range []bool{false, true} {
		t.Run(fmt.Sprintf("detached %v", detached), func(t *testing.T) {
			t.Parallel()
			s := agents.NewStage(t, "fake", "healthy")
			o := s.Options()
			o.MaxRuns = 2
			serving := agents.Serving{Options: o}
			for range 8 {
				serving.Specs = append(serving.Specs, host.RunSpec{
					Agent: "fake", Prompt: "lines 20\nwait", RunID: ulid.Make().String(), Detached: detached, Limits: host.Limits{Grace: 100 * time.Millisecond},
				})
			}
			server := agents.ServeCommand(serving)
			must(t, server.Start())
			reader := next(t, s)
			states := func() map[string]int {
				count := map[string]int{}
				infos, err := reader.Runs(context.Background())
				must(t, err)
				for _, info := range infos {
					count[info.State]++
				}
				return count
			}
			agents.Eventually(t, time.Minute, "two go on, six wait", func() bool {
				now := states()
				return now["running"] == 2 && now["queued"] == 6
			})
			must(t, server.Process.Kill())
			_ = server.Wait()
			h := next(t, s)
			running := 0
			agents.Eventually(t, time.Minute, "what was queued has ended", func() bool {
				adopted, err := h.Adopt(context.Background())
				must(t, err)
				running += len(adopted)
				must(t, h.Recover(context.Background()))
				now := states()
				return now["queued"] == 0 && now["canceled"] == 6 && now["failed"]+now["running"] == 2
			})
			for _, spec := range serving.Specs {
				r := open(t, h, spec.RunID)
				if r.Info().State == "running" {
					must(t, r.Stop(context.Background()))
				}
				end, _ := r.Wait(context.Background())
				got, err := os.ReadFile(filepath.Join(r.Dir(), "events.jsonl"))
				must(t, err)
				if bytes.Contains(got, []byte("user_message")) {
					continue // one that had begun
				}
				if end.State != "canceled" || end.End.Code != pluginapi.CodeHostGone {
					t.Errorf("%s, %v", end.State, end.Err)
				}
				if d := agents.Difference(string(replay(t, h, r.ID())), string(got)); d != "" {
					t.Errorf("replay: %s", d)
				}
			}
			must(t, h.Close(context.Background()))
			must(t, reader.Close(context.Background()))
			wantGone(t, s)
		})
	}
}

// The host is closed with detached runs in its queue and between attempts: these end
// then, and not when somebody looks; that with an agent goes on.
func TestCloseWithQueue(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := limited(t, s, 2)
	detached := func(prompt string) *host.Run {
		r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: prompt, Detached: true, Retry: someDay(), Limits: host.Limits{Timeout: 2 * time.Hour}})
		endRun(t, s, r.ID())
		return r
	}
	goesOn := detached("say on\nwait")
	until(t, goesOn, "text_delta")
	between := detached("lines 20\ndo fail OVERLOADED\nexit 1")
	until(t, between, "retry")
	queued := detached("say hi")
	must(t, h.Close(context.Background()))
	if active, err := os.ReadDir(s.Config + "/runs/active"); err != nil || len(active) != 1 || active[0].Name() != goesOn.ID() {
		t.Errorf("active: %v, %v", active, err)
	}
	for r, want := range map[*host.Run]string{between: "failed", queued: "canceled"} {
		if end, _ := r.Wait(context.Background()); end.State != want || end.End.Code != pluginapi.CodeHostGone {
			t.Errorf("%s, %v, want %s", end.State, end.Err, want)
		}
		if got := firstEvents(t, r); !bytes.Contains(got, []byte(`{"type":"run_end"`)) {
			t.Errorf("its end is not told: %s", got)
		}
	}
	later := next(t, s)
	adopted, err := later.Adopt(context.Background())
	must(t, err)
	if len(adopted) != 1 || adopted[0].ID() != goesOn.ID() {
		t.Fatalf("%d runs go on", len(adopted))
	}
	must(t, adopted[0].Stop(context.Background()))
	adopted[0].Wait(context.Background())
	for _, r := range []*host.Run{between, queued} {
		if d := agents.Difference(string(replay(t, later, r.ID())), string(firstEvents(t, r))); d != "" {
			t.Errorf("replay: %s", d)
		}
	}
	must(t, later.Close(context.Background()))
	wantGone(t, s)
}

// Hosts that share a queue count together; a run that is taken up needs no place.
func TestSharedQueue(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	o := s.Options()
	o.Queue = host.NewQueue(1)
	var hosts [2]*host.Host
	for i := range hosts {
		h, err := host.New(o)
		must(t, err)
		t.Cleanup(func() { _ = h.Close(context.Background()) })
		hosts[i] = h
	}
	first := held(t, s, hosts[0])
	second := s.Start(hosts[1], host.RunSpec{Agent: "fake", Prompt: "say hi", Detached: true})
	wantState(t, second, "queued")
	must(t, first.Stop(context.Background()))
	if end, _ := second.Wait(context.Background()); end.State != "completed" {
		t.Errorf("%s, %v", end.State, end.Err)
	}
	if _, err := host.New(host.Options{MaxRuns: -1}); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("%v", err)
	}
}
