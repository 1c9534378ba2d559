//go:build linux

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
)

// killer ends plugin processes of this test's own hosts.
type killer struct {
	t    *testing.T
	name string

	mu   sync.Mutex
	last int
}

// kill ends the plugin processes that are there now, and says how many.
func (k *killer) kill() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	killed := 0
	for _, p := range agents.Plugins(os.Getpid(), k.name) {
		if syscall.Kill(p.PID, syscall.SIGKILL) == nil {
			killed++
			k.last = p.PID
		}
	}
	return killed
}

// killNext waits for the process that takes the place of the last, and ends it
// after a while. It reports false if there is none before the run has ended.
func (k *killer) killNext(after time.Duration, ended <-chan struct{}) bool {
	over := false
	pid := 0
	agents.Eventually(k.t, 10*time.Second, "a new plugin process", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, p := range agents.Plugins(os.Getpid(), k.name) {
			if p.PID != k.last {
				k.last, pid = p.PID, p.PID
				return true
			}
		}
		select {
		case <-ended:
			over = true
		default:
		}
		return over
	})
	if over {
		return false
	}
	time.Sleep(after)
	return syscall.Kill(pid, syscall.SIGKILL) == nil
}

// watcher is a consumer that is attached from the first event on.
type watcher struct {
	r    *host.Run
	all  bytes.Buffer
	seen atomic.Int64
	done chan error
}

func watch(r *host.Run) *watcher {
	w := &watcher{r: r, done: make(chan error, 1)}
	go func() { w.done <- r.CopyEvents(context.Background(), w, 1) }()
	return w
}

func (w *watcher) Write(b []byte) (int, error) {
	w.seen.Add(int64(bytes.Count(b, []byte{'\n'})))
	return w.all.Write(b)
}

func (w *watcher) wait(t *testing.T, n int64) {
	t.Helper()
	agents.Eventually(t, time.Minute, fmt.Sprintf("event %d", n), func() bool {
		if w.seen.Load() >= n {
			return true
		}
		if end := w.r.Info().End; end != nil {
			t.Fatalf("the run ended before event %d: %s %s", n, end.State, end.Message)
		}
		return false
	})
}

const longRun = 100_000

// script talks a lot, asks twice and takes prompts, so that there is something to
// be done twice.
func longScript() (script string, asks []int64) {
	return fmt.Sprintf("lines %d\nask one\nlines %d\nask two\nlines %d\nusage 3 4", longRun*3/10, longRun*3/10, longRun*4/10),
		[]int64{longRun * 3 / 10, longRun * 6 / 10}
}

func undisturbed(t *testing.T) string {
	t.Helper()
	s := agents.NewStage(t, "calm", "healthy")
	script, _ := longScript()
	r := s.Start(s.Host(), host.RunSpec{Agent: "calm", Prompt: script, Permissions: host.Permissions{Approve: host.ApproveAuto}})
	got := events(t, r)
	if end, _ := r.Wait(context.Background()); end.State != "completed" {
		t.Fatalf("%+v", end)
	}
	return agents.Comparable(t, got)
}

// check compares a disturbed run with its replay and the undisturbed one.
func check(t *testing.T, h *host.Host, r *host.Run, w *watcher, calm, name string) {
	t.Helper()
	end, _ := r.Wait(context.Background())
	if end.State != "completed" {
		t.Errorf("%s, %v", end.State, end.Err)
	}
	if err := <-w.done; err != nil {
		t.Error(err)
	}
	same(t, "replay", replay(t, h, r.ID()), w.all.Bytes())
	got := agents.Comparable(t, w.all.Bytes())
	calm = strings.ReplaceAll(calm, `"agent":"calm"`, `"agent":"`+name+`"`)
	// The state waiting depends on how the run is approved.
	if d := agents.Difference(withoutWaiting(got), withoutWaiting(calm)); d != "" {
		t.Errorf("undisturbed: %s", d)
	}
	for _, answer := range []string{"got reply one granted", "got reply two granted", "got prompt"} {
		if n := strings.Count(got, answer); n != 1 {
			t.Errorf("the agent was told %q %d times", answer, n)
		}
	}
}

func withoutWaiting(events string) string {
	var kept strings.Builder
	for line := range strings.Lines(events) {
		if !strings.Contains(line, `"waiting"`) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// A plugin is killed at random points of one run of 100,000 lines; some of those
// that take its place are killed while they are fed the journal again.
func TestPluginKilledAtRandom(t *testing.T) {
	t.Parallel()
	calm := undisturbed(t)
	kills := agents.Times(25, 200)
	var points []uint64
	for range kills {
		points = append(points, 3+rand.Uint64N(longRun))
	}
	slices.Sort(points)
	s := agents.NewStage(t, "shaken", "healthy")
	h := s.Host()
	script, _ := longScript()
	k := &killer{t: t, name: "shaken"}
	killed, tried, again := 0, uint64(0), make(chan bool, kills)
	r := s.Start(h, host.RunSpec{Agent: "shaken", Prompt: script, Permissions: host.Permissions{Approve: host.ApproveAuto}, OnEvent: func(e host.Event) {
		// It is called before the event is seen by anybody, and delays the run.
		if killed == kills || e.Seq < points[killed] || e.Seq < tried+100 {
			return
		}
		tried = e.Seq
		if k.kill() > 0 {
			killed++
			again <- killed%3 == 0
		}
	}})
	w := watch(r)
	ended := make(chan struct{})
	go func() { r.Wait(context.Background()); close(ended) }()
	inReplay := 0
	for over := false; !over; {
		select {
		case next := <-again:
			if next && k.killNext(time.Duration(rand.Int64N(int64(150*time.Millisecond))), ended) {
				inReplay++
			}
		case <-ended:
			over = true
		}
	}
	check(t, h, r, w, calm, "shaken")
	t.Logf("killed %d times, and %d times its successor", killed, inReplay)
	if killed+inReplay < 20 {
		t.Errorf("only %d plugins were killed", killed+inReplay)
	}
}

// Somebody kills a plugin and, one after the other, those that take its place, before
// any of them gets further: none of the run's inputs is to blame, and it goes on.
func TestPluginKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	const successors = 9
	for _, after := range []time.Duration{0, 20 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprintf("hunted%d", after.Milliseconds())
			s := agents.NewStage(t, name, "healthy")
			h := s.Host()
			r := s.Start(h, host.RunSpec{Agent: name, Prompt: "lines 2000\nask go\nlines 10", Permissions: host.Permissions{Approve: host.ApproveAsk}})
			w := watch(r)
			agents.Eventually(t, time.Minute, "the run waits", func() bool { return r.Info().State == "waiting" })
			k := &killer{t: t, name: name}
			if k.kill() == 0 {
				t.Fatal("there is no plugin to kill")
			}
			for range successors {
				k.killNext(after, nil)
			}
			if err := r.Approve(context.Background(), "go", nil); err != nil {
				t.Fatal(err)
			}
			if end, _ := r.Wait(context.Background()); end.State != "completed" {
				t.Errorf("%s, %v", end.State, end.Err)
			}
			if err := <-w.done; err != nil {
				t.Error(err)
			}
			same(t, "replay", replay(t, h, r.ID()), w.all.Bytes())
			if n := strings.Count(w.all.String(), `"delta":"line `); n != 2010 {
				t.Errorf("it told %d lines", n)
			}
		})
	}
}

// A plugin is killed while an approval waits, and the answer reaches the agent
// once.
func TestPluginKilledWithApprovalPending(t *testing.T) {
	t.Parallel()
	calm := undisturbed(t)
	s := agents.NewStage(t, "asking", "healthy")
	h := s.Host()
	script, asks := longScript()
	r := s.Start(h, host.RunSpec{Agent: "asking", Prompt: script, Permissions: host.Permissions{Approve: host.ApproveAsk}})
	w := watch(r)
	k := &killer{t: t, name: "asking"}
	for i, id := range []string{"one", "two"} {
		w.wait(t, asks[i]+5)
		agents.Eventually(t, time.Minute, "the run waits", func() bool { return r.Info().State == "waiting" })
		if k.kill() == 0 {
			t.Fatal("there is no plugin to kill")
		}
		if i == 1 {
			k.killNext(0, nil)
		}
		if err := r.Approve(context.Background(), id, nil); err != nil {
			t.Fatal(err)
		}
		if err := r.Approve(context.Background(), id, nil); err == nil {
			t.Error("a second answer was taken")
		}
	}
	check(t, h, r, w, calm, "asking")
}

// Prompts of a conversation reach the agent once, whatever becomes of the plugin
// in between.
func TestPluginKilledBetweenPrompts(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "chatty", "healthy")
	h := s.Host()
	r := s.Start(h, host.RunSpec{Agent: "chatty", Prompt: "say first", Conversation: true})
	w := watch(r)
	k := &killer{t: t, name: "chatty"}
	const prompts = 20
	for i := range prompts {
		if err := r.Send(context.Background(), fmt.Sprintf("say prompt %d\nlines 50", i)); err != nil {
			t.Fatal(err)
		}
		if rand.IntN(2) == 0 {
			w.wait(t, int64(i*50))
		}
		k.kill()
	}
	if err := r.End(context.Background()); err != nil {
		t.Fatal(err)
	}
	if end, _ := r.Wait(context.Background()); end.State != "completed" || end.End.Turns != prompts+1 {
		t.Errorf("%s, %v, %d turns", end.State, end.Err, end.End.Turns)
	}
	<-w.done
	same(t, "replay", replay(t, h, r.ID()), w.all.Bytes())
	for i := range prompts {
		said := fmt.Sprintf(`{"type":"text_delta","run_id":%q,`, r.ID())
		if !strings.Contains(w.all.String(), said) || strings.Count(w.all.String(), fmt.Sprintf(`"delta":"prompt %d\n"`, i)) != 1 {
			t.Errorf("prompt %d was not answered once", i)
		}
	}
	if n := strings.Count(w.all.String(), `"got prompt`); n != prompts+1 {
		t.Errorf("the agent got %d prompts", n)
	}
}
