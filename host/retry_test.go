//go:build linux

package host_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// soon is a policy whose attempts follow at once.
func soon(attempts int) *host.Retry {
	return &host.Retry{MaxAttempts: attempts, BaseDelay: time.Millisecond}
}

// someDay is a policy whose second attempt no test lives to see.
func someDay() *host.Retry {
	return &host.Retry{BaseDelay: time.Hour, MaxDelay: time.Hour}
}

// types are the types of events, in their order, that are among those wanted.
func types(events []byte, wanted ...string) string {
	var found []string
	for line := range bytes.Lines(events) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(string(line), `{"type":"`), `"`)
		for _, w := range wanted {
			if kind == w {
				found = append(found, kind)
			}
		}
	}
	return strings.Join(found, " ")
}

// What passes is tried again, as further attempts of the same run: one id, one
// journal, one end. What does not is told at once.
func TestRetry(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy", agents.Resumer, "healthy")
	h := s.Host()
	fails := func(code pluginapi.Code) string { return "do fail " + string(code) + "\nexit 1" }
	early := func(n int, script string) string {
		var lines []string
		for line := range strings.SplitSeq(script, "\n") {
			lines = append(lines, fmt.Sprintf("early %d %s", n, line))
		}
		return strings.Join(lines, "\n") + "\n"
	}
	const tool = `event tool_call_start {"tool_call_id":"t1","tool_name":"shell"}`
	for _, c := range []struct {
		name   string
		script string
		spec   host.RunSpec
		state  string
		code   pluginapi.Code
		tries  int // attempts
	}{
		{"overload", early(2, fails(pluginapi.CodeOverloaded)), host.RunSpec{}, "completed", "", 3},
		{"rate limit", early(1, fails(pluginapi.CodeRateLimited)), host.RunSpec{}, "completed", "", 2},
		{"network", early(1, fails(pluginapi.CodeNetwork)), host.RunSpec{}, "completed", "", 2},
		{"killed", early(1, "program kill -9 $PPID"), host.RunSpec{}, "completed", "", 2},
		{"first time lucky", "", host.RunSpec{}, "completed", "", 1},
		{"always", fails(pluginapi.CodeOverloaded), host.RunSpec{}, "failed", pluginapi.CodeOverloaded, 3},
		{"two in all", fails(pluginapi.CodeOverloaded), host.RunSpec{Retry: soon(2)}, "failed", pluginapi.CodeOverloaded, 2},
		{"one in all", fails(pluginapi.CodeOverloaded), host.RunSpec{Retry: soon(1)}, "failed", pluginapi.CodeOverloaded, 1},
		{"not asked for", fails(pluginapi.CodeOverloaded), host.RunSpec{Retry: &host.Retry{MaxAttempts: 1}}, "failed", pluginapi.CodeOverloaded, 1},
		{"refused key", fails(pluginapi.CodeAuth), host.RunSpec{}, "failed", pluginapi.CodeAuth, 1},
		{"too long", fails(pluginapi.CodeContextExceeded), host.RunSpec{}, "failed", pluginapi.CodeContextExceeded, 1},
		{"said to be of no use", "do outcomes\nexit 1", host.RunSpec{}, "failed", pluginapi.CodeOverloaded, 1},
		{"exit code", "exit 1", host.RunSpec{}, "failed", pluginapi.CodeAgentFailed, 1},
		{"answered", "say done\nend\ndo fail AGENT_CRASH\nexit 1", host.RunSpec{}, "failed", pluginapi.CodeAgentCrash, 1},
		{"asked to wait", early(1, "do fail RATE_LIMITED 50\nexit 1"), host.RunSpec{}, "completed", "", 2},
		{"asked to wait too long", "do fail RATE_LIMITED 3600000\nexit 1", host.RunSpec{}, "failed", pluginapi.CodeRateLimited, 1},
		{"no time left", fails(pluginapi.CodeOverloaded), host.RunSpec{Retry: someDay(), Limits: host.Limits{Timeout: time.Minute}}, "failed", pluginapi.CodeOverloaded, 1},
		{"too quiet", "sleep 100", host.RunSpec{Limits: host.Limits{IdleTimeout: 100 * time.Millisecond}}, "timed_out", pluginapi.CodeInactivityTimeout, 1},
		{"money left", early(1, "usage 1 2\n"+fails(pluginapi.CodeOverloaded)), host.RunSpec{}, "completed", "", 2},
		{"a tool, and no way to go on", tool + "\n" + fails(pluginapi.CodeOverloaded), host.RunSpec{}, "failed", pluginapi.CodeOverloaded, 1},
		{"a tool", early(2, tool+"\n"+fails(pluginapi.CodeOverloaded)), host.RunSpec{Agent: agents.Resumer}, "completed", "", 3},
		{"on a terminal", early(1, fails(pluginapi.CodeOverloaded)), host.RunSpec{PTY: true}, "completed", "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := c.spec
			if spec.Prompt = c.script + "\nlines 5"; spec.Agent == "" {
				spec.Agent = "fake"
			}
			if spec.Cwd = t.TempDir(); spec.Retry == nil {
				spec.Retry = soon(3)
			}
			r := s.Start(h, spec)
			got := events(t, r)
			end, _ := r.Wait(context.Background())
			if end.State != c.state || end.End.Code != c.code {
				t.Errorf("%s, %v", end.State, end.Err)
			}
			if crashed := end.End.Reason == "crash"; crashed != (c.code == pluginapi.CodeAgentCrash) {
				t.Errorf("the reason of %s is %s", c.code, end.End.Reason)
			}
			want := "user_message" + strings.Repeat(" session_end retry user_message", c.tries-1) + " session_end run_end"
			if order := types(got, "user_message", "retry", "session_end", "run_end"); order != want {
				t.Errorf("events in order: %s\nwant %s", order, want)
			}
			if n := bytes.Count(got, []byte(`{"type":"run_state"`)); n != 4 && n != 3 { // one that ends at once may never have been said to run
				t.Errorf("%d changes of state", n)
			}
			if d := agents.Difference(string(replay(t, h, r.ID())), string(got)); d != "" {
				t.Errorf("replay: %s", d)
			}
			agents.Comparable(t, got)
			if c.name == "a tool" {
				first := strings.Count(string(got), `"session_id":"`+end.End.SessionID+`"`)
				if first != 2*3+1 || !strings.Contains(string(got), "An error has cut off your work") {
					t.Errorf("it does not go on with the session it had: named %d times", first)
				}
			}
		})
	}
}

// A retry is told when it is decided, with what it is for and how long it takes; the
// deadline of the run is not moved by it.
func TestRetryIsTold(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	r := s.Start(h, host.RunSpec{
		Agent: "fake", Prompt: "early 1 sleep 0.5\nearly 1 do fail OVERLOADED\nearly 1 exit 1\nsleep 1000", Workspace: host.Workspace{Cwd: t.TempDir()},
		Retry: &host.Retry{BaseDelay: 100 * time.Millisecond}, Limits: host.Limits{Timeout: 2 * time.Second, Grace: time.Second},
	})
	e := until(t, r, "retry")
	var retry pluginapi.Retry
	must(t, e.Decode(&retry))
	if retry.Attempt != 2 || *retry.MaxAttempts != 3 || retry.Code != pluginapi.CodeOverloaded || retry.Reason != "told to fail" ||
		*retry.DelayMS < 89 || *retry.DelayMS > 111 {
		t.Errorf("%s", e.Raw)
	}
	end, _ := r.Wait(context.Background())
	if end.State != "timed_out" || end.End.DurationMS > 2900 {
		t.Errorf("%s after %d ms, %v", end.State, end.End.DurationMS, end.Err)
	}
}

// Between two attempts there is no process, and yet a run that can be ended: here and
// from elsewhere, twice, by the host's end. It answers nothing else.
func TestStopBetweenAttempts(t *testing.T) {
	t.Parallel()
	ways := map[string]func(t *testing.T, s *agents.Stage, h *host.Host, r *host.Run){
		"stop": func(t *testing.T, s *agents.Stage, h *host.Host, r *host.Run) { must(t, r.Stop(context.Background())) },
		"kill": func(t *testing.T, s *agents.Stage, h *host.Host, r *host.Run) { must(t, r.Kill(context.Background())) },
		"close": func(t *testing.T, s *agents.Stage, h *host.Host, r *host.Run) {
			must(t, h.Close(context.Background()))
		},
		"cancel": func(t *testing.T, s *agents.Stage, h *host.Host, r *host.Run) {
			other := next(t, s)
			for range 2 {
				if outcome, err := other.Cancel(context.Background(), r.ID(), false); outcome != host.CancelRequested && outcome != host.AlreadyFinished {
					t.Errorf("%s, %v", outcome, err)
				}
			}
		},
		"many at once": func(t *testing.T, s *agents.Stage, h *host.Host, r *host.Run) {
			if err := r.Pause(context.Background()); !errors.Is(err, pluginapi.CodeInvalidTransition) {
				t.Errorf("pause: %v", err)
			}
			if err := r.Approve(context.Background(), "x", nil); !errors.Is(err, pluginapi.CodeInvalidTransition) {
				t.Errorf("approve: %v", err)
			}
			var all sync.WaitGroup
			for i := range 10 {
				all.Go(func() {
					ask := r.Stop
					if i%2 > 0 {
						ask = r.Kill
					}
					if err := ask(context.Background()); err != nil && !errors.Is(err, pluginapi.CodeRunNotActive) {
						t.Errorf("%v", err)
					}
				})
			}
			all.Wait()
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := agents.NewStage(t, "fake", "healthy")
			h := s.Host()
			r, err := h.Start(context.Background(), host.RunSpec{Agent: "fake", Prompt: "do fail OVERLOADED\nexit 1", Retry: someDay()})
			must(t, err)
			until(t, r, "retry")
			way(t, s, h, r)
			end, _ := r.Wait(context.Background())
			if end.State != "canceled" || end.End.Code != pluginapi.CodeAborted || end.End.ExitCode != nil {
				t.Errorf("%s, %v, exit code %v", end.State, end.Err, end.End.ExitCode)
			}
			reader := next(t, s)
			if d := agents.Difference(string(replay(t, reader, r.ID())), string(events(t, r))); d != "" {
				t.Errorf("replay: %s", d)
			}
			must(t, h.Close(context.Background()))
			must(t, reader.Close(context.Background()))
			if left := s.Leftovers(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A stop comes at any moment of a run that fails and is started again: there is one
// end, and after it no attempt.
func TestStopAgainstRetry(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := patient(s.Host())
	var canceled, failed int
	var span time.Duration // of a run that nobody stops
	for round := range agents.Rounds(t, 40, 2000) {
		since := time.Now()
		r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "do fail OVERLOADED\nexit 1", Retry: soon(3), NoRecord: round > 1 && round%2 > 0})
		if round < 2 { // the first one also waits for its plugin
			r.Wait(context.Background())
			span = r.Info().Ended.Sub(since)
		}
		time.Sleep(rand.N(span))
		err := r.Stop(context.Background())
		if err != nil && !errors.Is(err, pluginapi.CodeRunNotActive) {
			t.Errorf("round %d: stop: %v", round, err)
		}
		got := events(t, r)
		switch end, _ := r.Wait(context.Background()); end.State {
		case "canceled":
			canceled++
		case "failed":
			failed++
			if round%2 == 0 { // it has a record
				span = r.Info().Ended.Sub(since) // the machine may have got faster
			}
			if end.End.Code != pluginapi.CodeOverloaded {
				t.Errorf("round %d: %v", round, end.Err)
			}
		default:
			t.Errorf("round %d: %s, %v", round, end.State, end.Err)
		}
		if n := bytes.Count(got, []byte(`{"type":"run_end"`)); n != 1 {
			t.Errorf("round %d: it ends %d times", round, n)
		}
		if round%2 == 0 {
			if d := agents.Difference(string(replay(t, h, r.ID())), string(got)); d != "" {
				t.Errorf("round %d, replay: %s", round, d)
			}
		}
	}
	t.Logf("%d canceled, %d failed", canceled, failed)
	if canceled == 0 {
		t.Error("no stop came in time")
	}
}

// The plugin dies before a retry, in the wait, and in the second attempt. The events
// are those of a run where it does not.
func TestPluginDiesAroundRetry(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "dying", "healthy", "calm", "healthy")
	h := s.Host()
	spec := host.RunSpec{
		Prompt:      "lines 50\nask one\nearly 1 do fail OVERLOADED\nearly 1 exit 1\nlines 50\nask two\nlines 50",
		Permissions: host.Permissions{Approve: host.ApproveAsk}, Retry: &host.Retry{BaseDelay: 300 * time.Millisecond, Jitter: 1e-9},
	}
	run := func(agent string, kill func()) []byte {
		spec.Agent, spec.Cwd = agent, t.TempDir()
		r := s.Start(h, spec)
		for e, err := range r.Events(context.Background(), 1) {
			must(t, err)
			switch e.Type {
			case "approval_request":
				kill()
				var ask pluginapi.ApprovalRequest
				must(t, e.Decode(&ask))
				must(t, r.Approve(context.Background(), ask.InteractionID, nil))
			case "retry":
				kill()
			}
		}
		if end, _ := r.Wait(context.Background()); end.State != "completed" {
			t.Errorf("%s: %s, %v", agent, end.State, end.Err)
		}
		got := events(t, r)
		if d := agents.Difference(string(replay(t, h, r.ID())), string(got)); d != "" {
			t.Errorf("%s, replay: %s", agent, d)
		}
		return got
	}
	deaths := 0
	got := run("dying", func() {
		for _, p := range agents.Plugins(os.Getpid(), "dying") {
			deaths++
			must(t, syscall.Kill(p.PID, syscall.SIGKILL))
		}
	})
	calm := strings.ReplaceAll(agents.Comparable(t, run("calm", func() {})), "calm", "dying")
	if d := agents.Difference(agents.Comparable(t, got), calm); d != "" {
		t.Errorf("events: %s", d)
	}
	if deaths < 3 {
		t.Errorf("it died %d times", deaths)
	}
}

// The host is killed between two attempts: nothing goes on that nobody started, and
// the next host says so. So for a detached run, whose environment has died with it.
func TestHostKilledBetweenAttempts(t *testing.T) {
	t.Parallel()
	for _, detached := range []bool{false, true} {
		t.Run(fmt.Sprintf("detached %v", detached), func(t *testing.T) {
			t.Parallel()
			s := agents.NewStage(t, "fake", "healthy")
			cmd := agents.HostCommand(agents.Hosting{Options: s.Options(), Spec: host.RunSpec{
				Agent: "fake", Prompt: "lines 20\nleave setsid\ndo fail OVERLOADED\nexit 1", Retry: someDay(), Detached: detached, Limits: host.Limits{Grace: 100 * time.Millisecond},
			}})
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			id := agents.ReadUntil(out, `"type":"retry"`)
			must(t, cmd.Process.Kill())
			_ = cmd.Wait()
			h := next(t, s)
			var r *host.Run
			agents.Eventually(t, time.Minute, "the run has ended", func() bool {
				adopted, err := h.Adopt(context.Background())
				must(t, err)
				for _, a := range adopted { // it was quicker than the shim
					a.Wait(context.Background())
				}
				must(t, h.Recover(context.Background()))
				r = open(t, h, id)
				return r.Info().End != nil
			})
			end, _ := r.Wait(context.Background())
			if end.State != "failed" || end.End.Code != pluginapi.CodeHostGone {
				t.Errorf("%s, %v", end.State, end.Err)
			}
			wantWhole(t, h, r, 20)
			must(t, h.Close(context.Background()))
			wantGone(t, s)
		})
	}
}

// wantGone wants that hosts that were killed or closed have left nothing.
func wantGone(t *testing.T, s *agents.Stage) {
	t.Helper()
	agents.Eventually(t, time.Minute, "nothing is left", func() bool { return len(ofStage(s))+len(s.Leftovers()) == 0 })
	if active, _ := os.ReadDir(s.Config + "/runs/active"); len(active) > 0 {
		t.Errorf("%d runs are marked active", len(active))
	}
}

// A host that takes up a run in its second attempt tells it as the first would have.
// It makes no further one: the environment is not its.
func TestAdoptSecondAttempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rest  string
		state string
	}{{"lines 20", "completed"}, {"do fail OVERLOADED\nexit 1", "failed"}} {
		t.Run(c.state, func(t *testing.T) {
			t.Parallel()
			s := agents.NewStage(t, "fake", "healthy")
			first := next(t, s)
			r := s.Start(first, host.RunSpec{
				Agent: "fake", Prompt: "early 1 do fail OVERLOADED\nearly 1 exit 1\nlines 20\nask go\n" + c.rest, Workspace: host.Workspace{Cwd: t.TempDir()},
				Detached: true, Permissions: host.Permissions{Approve: host.ApproveAsk}, Retry: soon(5),
			})
			endRun(t, s, r.ID())
			agents.Eventually(t, time.Minute, "the run waits", func() bool { return r.Info().State == "waiting" })
			must(t, first.Close(context.Background()))
			second := next(t, s)
			adopted, err := second.Adopt(context.Background())
			must(t, err)
			if len(adopted) != 1 {
				t.Fatalf("%d runs taken up", len(adopted))
			}
			r = adopted[0]
			agents.Eventually(t, time.Minute, "it is told", func() bool { return r.Approve(context.Background(), "", nil) == nil })
			end, _ := r.Wait(context.Background())
			if end.State != c.state {
				t.Errorf("%s, %v", end.State, end.Err)
			}
			got := events(t, r)
			if order := types(got, "retry", "run_end"); order != "retry run_end" {
				t.Errorf("%s", order)
			}
			if d := agents.Difference(string(replay(t, second, r.ID())), string(got)); d != "" {
				t.Errorf("replay: %s", d)
			}
		})
	}
}

// Each attempt gets the values of the environment, and they are nowhere on disk.
func TestRetryKeepsSecrets(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	const secret = "not-for-the-disk-4711"
	r := s.Start(h, host.RunSpec{
		Agent: "fake", Prompt: "program printenv TOKEN | tr -d '\\n' | sha256sum\nearly 1 do fail OVERLOADED\nearly 1 exit 1",
		Workspace: host.Workspace{Cwd: t.TempDir(), Env: map[string]string{"TOKEN": secret}}, Retry: soon(2),
	})
	got := events(t, r)
	if n := bytes.Count(got, fmt.Appendf(nil, "%x", sha256.Sum256([]byte(secret)))); n != 2 {
		t.Errorf("%d attempts had the variable", n)
	}
	must(t, filepath.WalkDir(s.Root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.HasPrefix(path, s.Plugins) {
			return nil
		}
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s has it", path)
		}
		return nil
	}))
}

func TestRetryIsValidated(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	for _, spec := range []host.RunSpec{
		{Retry: &host.Retry{MaxAttempts: -1}}, {Retry: &host.Retry{MaxAttempts: 101}}, {Retry: &host.Retry{BaseDelay: -1}},
		{Retry: &host.Retry{MaxDelay: -1}}, {Retry: &host.Retry{Jitter: 2}}, {Retry: soon(3), Conversation: true},
	} {
		spec.Agent, spec.Prompt = "fake", "say hi"
		if _, err := h.Start(context.Background(), spec); !errors.Is(err, pluginapi.CodeValidation) {
			t.Errorf("%+v: %v", spec.Retry, err)
		}
	}
}
