//go:build linux

package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// The agent is a direct child of its shim, in a session of its own, on three pipes
// and nothing else, in the folder and with the environment that were asked for. No
// other program is needed for it.
func TestProcessOfTheAgent(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	cwd := t.TempDir()
	given, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0) // as somebody leaves it open who starts amux
	must(t, err)
	defer syscall.Close(given)
	r := s.Start(h, host.RunSpec{
		Agent: "fake", Prompt: "say up\nwait", Workspace: host.Workspace{Cwd: cwd, Env: map[string]string{"GIVEN": "a=b", "BOTH": "mine"},
			Environ: []string{"PATH=/nowhere", "INHERITED=2", "BOTH=theirs"}},
	})
	until(t, r, "text_delta")
	_, after, _ := strings.Cut(string(firstEvents(t, r)), `"pid agent `)
	number, _, _ := strings.Cut(after, `"`)
	pid, err := strconv.Atoi(number)
	must(t, err)
	shim, err := shim.ReadInfo(r.Dir())
	must(t, err)
	dir := "/proc/" + number
	stat, err := os.ReadFile(dir + "/stat")
	must(t, err)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if parent, group, session := fields[1], fields[2], fields[3]; parent != strconv.Itoa(shim.PID) || group != number || session != number {
		t.Errorf("parent %s, group %s, session %s of %d; the shim is %d", parent, group, session, pid, shim.PID)
	}
	if at, err := os.Readlink(dir + "/cwd"); err != nil || at != cwd {
		t.Errorf("it is in %s, %v", at, err)
	}
	environ, err := os.ReadFile(dir + "/environ")
	must(t, err)
	variables := strings.Split(string(environ), "\x00")
	for _, want := range []string{"GIVEN=a=b", "BOTH=mine", "INHERITED=2", "PATH=/nowhere"} {
		if !slices.Contains(variables, want) {
			t.Errorf("it has no %s", want)
		}
	}
	files, err := os.ReadDir(dir + "/fd")
	must(t, err)
	pipes := 0
	for _, f := range files {
		target, _ := os.Readlink(filepath.Join(dir, "fd", f.Name()))
		switch {
		case strings.HasPrefix(target, "anon_inode:"), strings.HasPrefix(target, "/sys/fs/cgroup/"): // of its own runtime
		case len(f.Name()) == 1 && f.Name() <= "2" && strings.HasPrefix(target, "pipe:"):
			pipes++
		default:
			t.Errorf("descriptor %s is %s", f.Name(), target)
		}
	}
	if pipes != 3 {
		t.Errorf("%d pipes", pipes)
	}
	must(t, r.End(context.Background())) // a real end of file
	if end, _ := r.Wait(context.Background()); end.State != "completed" {
		t.Errorf("%s, %v", end.State, end.Err)
	}
}

// firstEvents are those that are there.
func firstEvents(t *testing.T, r *host.Run) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.Dir(), "events.jsonl"))
	must(t, err)
	return data
}

// An id is safe, and one run's alone: of many that ask for it at once one gets it. A
// start that fails gives it back, so does a record that was deleted; what is not there
// is no error to stop.
func TestIDs(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy", "crashing", string(agents.PanicAtPlan))
	h := s.Host()
	ctx := context.Background()
	id := ulid.Make().String()
	for _, bad := range []string{"x", "../../etc", id + "/", strings.ToLower(id), id[1:], "8" + id[1:], id[:25] + "I"} {
		if _, err := h.Start(ctx, host.RunSpec{Agent: "fake", Prompt: "say hi", RunID: bad}); !errors.Is(err, pluginapi.CodeValidation) {
			t.Errorf("id %q: %v", bad, err)
		}
	}
	if outcome, _ := h.Cancel(ctx, id, false); outcome != host.NotFound {
		t.Errorf("cancel of what is not there: %s", outcome)
	}
	if _, err := h.Start(ctx, host.RunSpec{Agent: "crashing", Prompt: "say hi", RunID: id}); err == nil {
		t.Error("it was started")
	}
	for range 3 {
		var started atomic.Pointer[host.Run]
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				r, err := h.Start(ctx, host.RunSpec{Agent: "fake", Prompt: "say hi\nwait", RunID: id, Limits: host.Limits{Grace: 100 * time.Millisecond}})
				switch {
				case err == nil && !started.CompareAndSwap(nil, r):
					t.Error("two runs have one id")
				case err != nil && (!errors.Is(err, pluginapi.CodeValidation) || !strings.Contains(err.Error(), "exists already")):
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		r := started.Load()
		if r == nil {
			t.Fatal("nobody has got it")
		}
		if info := r.Info(); info.Ended != nil || info.End != nil {
			t.Errorf("it lives and is said to have ended: %+v", info)
		}
		must(t, r.Stop(ctx))
		r.Wait(context.Background())
		if info := r.Info(); info.Ended == nil || info.State != "canceled" {
			t.Errorf("it has ended and is said to live: %+v", info)
		}
		if outcome, err := h.Delete(ctx, id); outcome != host.Deleted {
			t.Errorf("delete: %s, %v", outcome, err)
		}
	}
}

// An agent that ends at once is supervised to its end, with all that it said.
func TestFastExit(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			r, err := h.Start(context.Background(), host.RunSpec{Agent: "fake", Prompt: "deaf\nlines 20\nout t the last\nexit 0", Limits: host.Limits{Timeout: time.Minute}})
			if err != nil {
				t.Error(err)
				return
			}
			got := events(t, r)
			if n := bytes.Count(got, []byte(`"delta":"line `)); n != 20 || !bytes.Contains(got, []byte(`"delta":"the last\n"`)) {
				t.Errorf("%d lines:\n%s", n, got)
			}
			if end, _ := r.Wait(context.Background()); end.State != "completed" {
				t.Errorf("%s, %v", end.State, end.Err)
			}
		})
	}
	wg.Wait()
}

// A run ends with the process that it was told to watch, also if there never was one;
// while that lives, the run can be stopped as any other.
func TestParent(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	self, _ := process.Start(os.Getpid())
	run := func(parent host.Parent) *host.Run {
		return s.Start(h, host.RunSpec{Agent: "fake", Prompt: "leave setsid\nwait", Parent: &parent})
	}
	for _, gone := range []host.Parent{{PID: 1 << 30, Start: 1}, {PID: os.Getpid(), Start: self + 1}} {
		if end, _ := run(gone).Wait(context.Background()); end.State != "canceled" || end.End.Reason != "parent_gone" {
			t.Errorf("%s, %v", end.State, end.Err)
		}
	}
	r := run(host.Parent{PID: os.Getpid(), Start: self})
	until(t, r, "session_start")
	must(t, r.Stop(context.Background()))
	if end, _ := r.Wait(context.Background()); end.State != "canceled" || end.End.Reason != "stopped" {
		t.Errorf("%s, %v", end.State, end.Err)
	}
	if left := agents.OfRun(r.ID()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// The record says whose a run is, when it was, and how and why it ended; each event
// has its id; and the end of one is not that of another.
func TestRecordOfARun(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	o := s.Options()
	o.ProjectDir = t.TempDir()
	h, err := host.New(o)
	must(t, err)
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	before := time.Now().Add(-time.Second)
	r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say hi\nwait", Name: "mine", Tags: []string{"a"}})
	other := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "lines 10\nask go\nlines 10", Permissions: host.Permissions{Approve: host.ApproveAsk}})
	wantState(t, other, "waiting")
	must(t, r.Stop(context.Background()))
	r.Wait(context.Background())
	must(t, other.Approve(context.Background(), "", nil))
	if end, _ := other.Wait(context.Background()); end.State != "completed" {
		t.Errorf("the other: %s, %v", end.State, end.Err)
	}
	info := r.Info()
	if info.Name != "mine" || info.Project != o.ProjectDir || len(info.Tags) != 1 || info.State != "canceled" || info.Reason != "stopped" ||
		info.Created.Before(before) || info.Ended == nil || info.Ended.Before(info.Created) || info.Ended.After(time.Now().Add(time.Second)) {
		t.Errorf("%+v", info)
	}
	from := ""
	for e, err := range r.Events(context.Background(), 1) {
		must(t, err)
		if e.RunID != r.ID() {
			t.Errorf("%s", e.Raw)
		}
		var state pluginapi.RunState
		if e.Type != "run_state" {
			continue
		}
		must(t, e.Decode(&state))
		if state.From != from {
			t.Errorf("from %q behind %q", state.From, from)
		}
		from = state.To
	}
	if from != "canceled" {
		t.Errorf("the last state that was told is %s", from)
	}
	var line struct {
		RunID string `json:"run_id"`
	}
	if left, err := os.ReadDir(o.ProjectDir); err != nil || len(left) > 0 {
		t.Errorf("the run has left %v in its project, %v", left, err)
	}
	index, err := os.ReadFile(filepath.Join(o.ConfigDir, "run-index.jsonl"))
	must(t, err)
	first, _, _ := bytes.Cut(index, []byte("\n"))
	if json.Unmarshal(first, &line) != nil || line.RunID != r.ID() {
		t.Errorf("index: %s", index)
	}
}

// Of hosts that want a run one gets it, whenever its own leaves; of two who answer it
// one is heard; and in the end its events are whole.
func TestTwoHostsForOneRun(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	const many, rivals = 40, 3
	const script = "shell\nread -r prompt; echo hello; echo turn; while i=$((i+1)); echo t line $i; echo ask q$i; read -r answer; do case $answer in *denied) echo end; exit; esac; done"
	each := func(what func(i int)) {
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() { what(i) })
		}
		all.Wait()
	}
	owners, reader := []*host.Host{patient(next(t, s))}, next(t, s)
	runs := map[string]*host.Run{}
	for range many {
		r := s.Start(owners[0], host.RunSpec{Agent: "fake", Prompt: script, Permissions: host.Permissions{Approve: host.ApproveAsk}, Detached: true, Limits: host.Limits{Timeout: 20 * time.Minute}})
		endRun(t, s, r.ID())
		runs[r.ID()] = r
	}
	ids := slices.Sorted(maps.Keys(runs))
	asked := 0
	// answered returns when the newest question of a run is answered, here or elsewhere.
	answered := func(r *host.Run, answer func(*host.Run, string) error) (err error) {
		question := fmt.Sprint("q", asked)
		for since := time.Now(); time.Since(since) < time.Minute; time.Sleep(time.Millisecond) {
			err = answer(r, question)
			if !errors.Is(err, pluginapi.CodeInteractionNotFound) && !errors.Is(err, pluginapi.CodeHostGone) {
				break // else it is not asked yet, or was asked of a host that has left
			}
		}
		return err
	}
	approve := func(r *host.Run, question string) error { return r.Approve(context.Background(), question, nil) }
	for round := range agents.Rounds(t, races/many, 100) {
		asked++
		each(func(i int) {
			answers := make(chan error, 2)
			for _, at := range []*host.Run{runs[ids[i]], open(t, reader, ids[i])} {
				go func() { answers <- answered(at, approve) }()
			}
			first, second := <-answers, <-answers
			if first != nil {
				first, second = second, first
			}
			if first != nil || !errors.Is(second, pluginapi.CodeAlreadyAnswered) {
				t.Errorf("round %d: of two answers one counts, and the other comes too late: %v; %v", round, first, second)
			}
		})
		var news []*host.Host
		for range rivals {
			news = append(news, patient(next(t, s)))
		}
		var all sync.WaitGroup
		for _, h := range owners {
			all.Go(func() { must(t, h.Close(context.Background())) })
		}
		var mu sync.Mutex
		taken, takers := map[string]*host.Run{}, 0
		for i, h := range news {
			all.Go(func() {
				agents.Eventually(t, time.Minute, "each has a host again", func() bool {
					if i == 0 {
						if err := h.Recover(context.Background()); err != nil { // ends none of them
							t.Errorf("round %d: %v", round, err)
						}
					}
					got, err := h.Adopt(context.Background())
					if err != nil {
						t.Errorf("round %d: %v", round, err)
					}
					mu.Lock()
					defer mu.Unlock()
					for _, r := range got {
						taken[r.ID()] = r
						takers++
					}
					return len(taken) == many
				})
			})
		}
		all.Wait()
		if takers != many {
			t.Fatalf("round %d: %d runs were taken up %d times", round, many, takers)
		}
		owners, runs = news, taken
	}
	asked++
	each(func(i int) {
		r := runs[ids[i]]
		must(t, answered(r, func(r *host.Run, question string) error { return r.Deny(context.Background(), question, "") }))
		if end, _ := r.Wait(context.Background()); end.State != "completed" {
			t.Errorf("%s, %v", end.State, end.Err)
		}
		wantWhole(t, reader, r, asked)
	})
	t.Logf("%d times a run had another host, and an answer", many*(asked-1))
	for _, h := range append(owners, reader) {
		must(t, h.Close(context.Background()))
	}
	wantGone(t, s)
}
