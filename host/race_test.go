//go:build linux

package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// ofStage are the live processes that belong to a host on that stage.
func ofStage(s *agents.Stage) []string {
	var found []string
	for _, p := range agents.Processes() {
		if p.PID != os.Getpid() && p.State != "Z" && strings.Contains(p.Command+"\x00"+p.Environ, s.Root+"/") {
			found = append(found, p.String())
		}
	}
	return found
}

// ours are the goroutines that are in the host's code, without this one and tests
// that wait for their turn.
func ours() []string { return goroutines("/amux/host.", "/amux/host/", "go-plugin") }

func goroutines(in ...string) []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var found []string
	for goroutine := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(goroutine, "testing.(*T).Parallel(") || strings.Contains(goroutine, "host_test.goroutines(") {
			continue
		}
		if slices.ContainsFunc(in, func(code string) bool { return strings.Contains(functions(goroutine), code) }) {
			found = append(found, goroutine)
		}
	}
	return found
}

// functions are the lines of a stack that name functions. Those that name files are
// the others: a checkout may lie anywhere.
func functions(stack string) string {
	var names strings.Builder
	for line := range strings.Lines(stack) {
		if !strings.HasPrefix(line, "\t") {
			names.WriteString(line)
		}
	}
	return names.String()
}

func openFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	var files []string
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			files = append(files, target)
		}
	}
	return files
}

// wantNothing wants that nothing is left of hosts that have been closed.
func wantNothing(t *testing.T, s *agents.Stage) {
	t.Helper()
	if left := ofStage(s); len(left) > 0 {
		t.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
	}
	if left := s.Leftovers(); len(left) > 0 {
		t.Errorf("files are left:\n%s", strings.Join(left, "\n"))
	}
	// A thread ends a moment after the plugin that was started from it.
	agents.Eventually(t, time.Minute, "the threads of plugins are over", func() bool {
		return len(goroutines("/amux/internal/sys/sandbox")) == 0
	})
	if left := ours(); len(left) > 0 {
		t.Errorf("%d goroutines are left, the first:\n%s", len(left), left[0])
	}
	if active, _ := os.ReadDir(s.Config + "/runs/active"); len(active) > 0 {
		t.Errorf("%d runs are marked active", len(active))
	}
}

// Runs come and go, many at once; in the end there is nothing but their records.
// It is not parallel: other tests have goroutines and files too.
func TestNothingLeaks(t *testing.T) {
	s := agents.NewStage(t, "fake", "healthy")
	warm := s.Host()
	s.Start(warm, host.RunSpec{Agent: "fake", Prompt: "say hi"}).Wait(context.Background())
	must(t, warm.Close(context.Background()))
	runtime.GC()
	before := openFiles(t)
	h := s.Host()
	const runs, atOnce = 200, 50
	var wg sync.WaitGroup
	places := make(chan bool, atOnce)
	for i := range runs {
		places <- true
		wg.Go(func() {
			defer func() { <-places }()
			spec := host.RunSpec{Agent: "fake", Prompt: "lines 10\nask go\nleave setsid\nlines 10", Permissions: host.Permissions{Approve: host.ApproveAuto}, NoRecord: i%2 == 0, Limits: host.Limits{Grace: 100 * time.Millisecond}}
			r, err := h.Start(context.Background(), spec)
			if err != nil {
				t.Error(err)
				return
			}
			if i%5 == 0 {
				for e, err := range r.Events(context.Background(), 1) {
					if err != nil || e.Seq == 12 { // one that leaves early
						break
					}
				}
			}
			if end, _ := r.Wait(context.Background()); end.State != "completed" {
				t.Errorf("%s, %v", end.State, end.Err)
			}
		})
	}
	wg.Wait()
	must(t, h.Close(context.Background()))
	wantNothing(t, s)
	runtime.GC() // a run's event log stays open for as long as somebody may read it
	now := openFiles(t)
	for since := time.Now(); len(now) > len(before)+2 && time.Since(since) < 5*time.Second; now = openFiles(t) {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	if len(now) > len(before)+2 {
		t.Errorf("%d files are open, %d were: %v", len(now), len(before), now)
	}
	records, err := os.ReadDir(s.Config + "/runs")
	must(t, err)
	if n := len(records) - 1; n != runs/2+1 { // the folder of active ones; the first run
		t.Errorf("%d records", n)
	}
}

// Close comes at any moment of a start.
func TestCloseDuringStart(t *testing.T) {
	s := agents.NewStage(t, "fake", "healthy")
	for i := range 24 {
		h := s.Host()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				r, err := h.Start(context.Background(), host.RunSpec{Agent: "fake", Prompt: "leave daemon\nwait", Limits: host.Limits{Grace: 50 * time.Millisecond}})
				if err != nil {
					if !errors.Is(err, pluginapi.CodeHostGone) {
						t.Errorf("round %d: %v", i, err)
					}
					return
				}
				if end, _ := r.Wait(context.Background()); end.State != "canceled" {
					t.Errorf("round %d: %s, %v", i, end.State, end.Err)
				}
			})
		}
		time.Sleep(time.Duration(i) * 4 * time.Millisecond)
		must(t, h.Close(context.Background()))
		if left := ofStage(s); len(left) > 0 {
			t.Errorf("round %d: processes are left:\n%s", i, strings.Join(left, "\n"))
		}
		wg.Wait()
		if t.Failed() {
			return
		}
	}
	wantNothing(t, s)
}

// A start whose context ends is given up, at whatever moment.
func TestStartGivenUp(t *testing.T) {
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	for i := range 16 {
		ctx, cancel := context.WithCancel(context.Background())
		if i == 0 {
			cancel()
		}
		stop := time.AfterFunc(time.Duration(i)*3*time.Millisecond, cancel)
		r, err := h.Start(ctx, host.RunSpec{Agent: "fake", Prompt: "say hi"})
		switch {
		case err == nil:
			if end, _ := r.Wait(context.Background()); end.State != "completed" {
				t.Errorf("round %d: %s, %v", i, end.State, end.Err)
			}
		case !errors.Is(err, context.Canceled):
			t.Errorf("round %d: %v", i, err)
		}
		stop.Stop()
		cancel()
	}
	must(t, h.Close(context.Background()))
	wantNothing(t, s)
}

// patient is a host that waits for its plugins however busy the machine is.
func patient(h *host.Host) *host.Host {
	h.Limit(time.Minute, 64<<20)
	return h
}

// Stop comes when the run ends by itself, twice, and from everywhere.
func TestStopAgainstCompletion(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := patient(s.Host())
	var wg sync.WaitGroup
	places := make(chan bool, 30)
	for i := range agents.Rounds(t, 30, 3000) {
		places <- true
		wg.Go(func() {
			defer func() { <-places }()
			r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "lines 100", Limits: host.Limits{Grace: 50 * time.Millisecond}})
			var stops sync.WaitGroup
			for range 1 + i%3 {
				stops.Go(func() {
					time.Sleep(time.Duration(rand.Int64N(int64(60 * time.Millisecond))))
					if err := r.Stop(context.Background()); err != nil && !errors.Is(err, pluginapi.CodeRunNotActive) {
						t.Errorf("stop: %v", err)
					}
				})
			}
			stops.Wait()
			end, _ := r.Wait(context.Background())
			switch end.State {
			case "completed":
				if end.Err != nil {
					t.Error(end.Err)
				}
			case "canceled":
				if !errors.Is(end.Err, pluginapi.CodeAborted) {
					t.Error(end.Err)
				}
			default:
				t.Errorf("%s, %v", end.State, end.Err)
			}
			if err := r.Stop(context.Background()); !errors.Is(err, pluginapi.CodeRunNotActive) {
				t.Errorf("stop of what has ended: %v", err)
			}
			if d := agents.Difference(string(replay(t, h, r.ID())), string(events(t, r))); d != "" {
				t.Errorf("replay: %s", d)
			}
		})
	}
	wg.Wait()
}

// Of two answers one counts.
func TestApprovedTwice(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := patient(s.Host())
	const questions = 100
	script := ""
	for i := range questions {
		script += fmt.Sprintf("ask q%d\n", i)
	}
	for range agents.Rounds(t, races/questions, 50) {
		approvedTwice(t, s.Start(h, host.RunSpec{Agent: "fake", Prompt: script, Permissions: host.Permissions{Approve: host.ApproveAsk}, Limits: host.Limits{Timeout: 10 * time.Minute}}), questions)
	}
}

func approvedTwice(t *testing.T, r *host.Run, questions int) {
	t.Helper()
	asked, won := 0, 0
	for e, err := range r.Events(context.Background(), 1) {
		must(t, err)
		if e.Type != "approval_request" {
			continue
		}
		var request pluginapi.ApprovalRequest
		must(t, e.Decode(&request))
		id := request.InteractionID
		if asked%2 == 0 {
			id = "" // the one that waits: the next one, if the other answer was quicker
		}
		asked++
		results := make(chan error, 2)
		go func() { results <- r.Approve(context.Background(), id, nil) }()
		go func() { results <- r.Deny(context.Background(), request.InteractionID, "no") }()
		for range 2 {
			switch err := <-results; {
			case err == nil:
				won++
			case errors.Is(err, pluginapi.CodeAlreadyAnswered), id == "" && errors.Is(err, pluginapi.CodeNoPendingInteraction):
			default:
				t.Errorf("answer to %s: %v", request.InteractionID, err)
			}
		}
	}
	if won != asked {
		t.Errorf("%d answers to %d questions counted", won, asked)
	}
	answered := map[string]int{}
	for e, err := range r.Events(context.Background(), 1) {
		must(t, err)
		if e.Type == "approval_granted" || e.Type == "approval_denied" {
			var answer struct {
				InteractionID string `json:"interaction_id"`
			}
			must(t, json.Unmarshal(e.Raw, &answer))
			answered[answer.InteractionID]++
		}
	}
	for id, n := range answered {
		if n != 1 || len(answered) != questions {
			t.Errorf("%s: %d answers; %d of %d questions were answered", id, n, len(answered), questions)
		}
	}
	if end, _ := r.Wait(context.Background()); end.State != "completed" || asked != questions {
		t.Errorf("%s, %v after %d questions", end.State, end.Err, asked)
	}
}

// An answer to what was not asked yet is refused, and keeps nobody from answering.
func TestAnswerBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	r := s.Start(s.Host(), host.RunSpec{Agent: "fake", Prompt: "ask one\nask two", Permissions: host.Permissions{Approve: host.ApproveAsk}})
	for e, err := range r.Events(context.Background(), 1) {
		must(t, err)
		if e.Type != "approval_request" {
			continue
		}
		var request pluginapi.ApprovalRequest
		must(t, e.Decode(&request))
		if request.InteractionID == "one" {
			if err := r.Approve(context.Background(), "two", nil); !errors.Is(err, pluginapi.CodeInteractionNotFound) {
				t.Errorf("answer to what was not asked: %v", err)
			}
		}
		must(t, r.Approve(context.Background(), request.InteractionID, nil))
	}
	if end, _ := r.Wait(context.Background()); end.State != "completed" || strings.Count(string(events(t, r)), `{"type":"approval_granted"`) != 2 {
		t.Errorf("%s, %v", end.State, end.Err)
	}
}

// A question that is asked while another waits is denied in its own time.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	h.LimitAnswers(500 * time.Millisecond)
	script := "event approval_request {\"interaction_id\":\"first\",\"action\":\"shell\"}\nsleep 0.3\nask second\nsay done"
	r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: script, Permissions: host.Permissions{Approve: host.ApproveAsk}})
	var asked, denied time.Time
	for e, err := range r.Events(context.Background(), 1) {
		must(t, err)
		switch e.Type {
		case "approval_request":
			asked = e.Time
		case "approval_denied":
			denied = e.Time
			if !strings.Contains(string(e.Raw), "nobody answered within 500ms") {
				t.Errorf("%s", e.Raw)
			}
		}
	}
	if end, _ := r.Wait(context.Background()); end.State != "completed" || denied.Sub(asked) < 490*time.Millisecond {
		t.Errorf("%s, %v; denied after %v", end.State, end.Err, denied.Sub(asked))
	}
}

// Of prompts that are sent while the end is, each is answered or refused.
func TestSendAgainstEnd(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := patient(s.Host())
	prompts := 0
	for round := range agents.Rounds(t, 20, 1000) {
		r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say first", Conversation: true})
		ended := make(chan error, 1)
		var refused error
		sent := 0
		for refused == nil && sent < 10_000 {
			if sent == round%50 {
				go func() { ended <- r.End(context.Background()) }()
			}
			if refused = r.Send(context.Background(), "say more"); refused == nil {
				sent++
			}
		}
		must(t, <-ended)
		e := pluginapi.AsError(refused)
		if e == nil || e.Code != pluginapi.CodeRunNotActive && (e.Code != pluginapi.CodeStdinNotAvailable || !strings.Contains(e.Hint, "--resume")) {
			t.Errorf("refused with %v", refused)
		}
		if end, _ := r.Wait(context.Background()); end.State != "completed" || end.End.Turns != sent+1 {
			t.Errorf("%s, %v; %d turns for %d prompts", end.State, end.Err, end.End.Turns, sent+1)
		}
		prompts += sent
	}
	t.Logf("%d prompts", prompts)
}
