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
	"sync/atomic"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// terminals are two hosts of one user: what one hosts is remote to the other.
func terminals(t testing.TB) (here, there *host.Host, o host.Options) {
	t.Helper()
	runtime, err := os.MkdirTemp("", "rt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runtime) })
	o = host.Options{
		ConfigDir: t.TempDir(), RuntimeDir: runtime, TempDir: t.TempDir(),
		BundledDir: "../bin/plugins", ShimPath: "../bin/amux-shim",
	}
	var both [2]*host.Host
	for i := range both {
		h, err := host.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			_ = h.Close(ctx)
		})
		both[i] = h
	}
	return both[0], both[1], o
}

func start(t testing.TB, h *host.Host, spec host.RunSpec) *host.Run {
	t.Helper()
	spec.Agent, spec.Timeout, spec.Grace, spec.Cwd = "demo", time.Minute, 100*time.Millisecond, t.TempDir()
	r, err := h.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func open(t testing.TB, h *host.Host, ref string) *host.Run {
	t.Helper()
	r, err := h.Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// until waits for an event of a type.
func until(t testing.TB, r *host.Run, kind pluginapi.Type) host.Event {
	t.Helper()
	for e, err := range r.Events(context.Background(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == kind {
			return e
		}
	}
	t.Fatalf("no %s", kind)
	return host.Event{}
}

func TestRemoteFollows(t *testing.T) {
	t.Parallel()
	here, there, _ := terminals(t)
	local := start(t, here, host.RunSpec{Prompt: "[lines:20000][sleep:0.3][bigline:300000][lines:20000]"})
	remote := open(t, there, local.ID())
	var wg sync.WaitGroup
	copies := make([]bytes.Buffer, 4)
	for i := range copies {
		wg.Go(func() {
			from := uint64(1)
			if i == 3 {
				from = 15001
			}
			if err := remote.CopyEvents(context.Background(), &copies[i], from); err != nil {
				t.Error(err)
			}
		})
	}
	result, _ := remote.Wait(context.Background())
	wg.Wait()
	want, err := os.ReadFile(filepath.Join(local.Dir(), "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range copies {
		expect := want
		if i == 3 {
			expect = []byte(strings.Join(strings.SplitAfter(string(want), "\n")[15000:], ""))
		}
		if !bytes.Equal(copies[i].Bytes(), expect) {
			t.Errorf("copy %d: %d bytes, want %d", i, copies[i].Len(), len(expect))
		}
	}
	if got, _ := local.Wait(context.Background()); result.State != "completed" || result.End.Turns != got.End.Turns || result.Err != nil {
		t.Errorf("remote %+v, local %+v", result, got)
	}
	if info := remote.Info(); info.Events != uint64(bytes.Count(want, []byte("\n"))) || info.End == nil {
		t.Errorf("%+v", info)
	}
}

func TestRemoteControl(t *testing.T) {
	t.Parallel()
	here, there, _ := terminals(t)
	ctx := t.Context()
	local := start(t, here, host.RunSpec{Conversation: true, Name: "talk", Prompt: "[approve][ask:which?]", Permissions: host.Permissions{Approve: host.ApproveAsk}})
	remote := open(t, there, "talk")
	approval := until(t, remote, "approval_request")
	if err := remote.Answer(ctx, "", "no"); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("answer to an approval: %v", err)
	}
	if err := remote.Approve(ctx, "nonsense", nil); !errors.Is(err, pluginapi.CodeInteractionNotFound) {
		t.Errorf("unknown id: %v", err)
	}
	if err := remote.Approve(ctx, "", nil); err != nil {
		t.Error(err)
	}
	var request pluginapi.ApprovalRequest
	if err := approval.Decode(&request); err != nil {
		t.Fatal(err)
	}
	if err := remote.Deny(ctx, request.InteractionID, ""); !errors.Is(err, pluginapi.CodeAlreadyAnswered) {
		t.Errorf("second answer: %v", err)
	}
	until(t, remote, "input_required")
	if err := remote.Approve(ctx, "", nil); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("approval of a question: %v", err)
	}
	if err := remote.Answer(ctx, "", "this one"); err != nil {
		t.Error(err)
	}
	until(t, remote, "turn_end")
	if err := remote.Answer(ctx, "", "again"); !errors.Is(err, pluginapi.CodeNoPendingInteraction) {
		t.Errorf("nothing waits: %v", err)
	}
	if err := remote.Send(ctx, "[say:from afar]"); err != nil {
		t.Error(err)
	}
	if err := remote.End(ctx); err != nil {
		t.Error(err)
	}
	if got, _ := remote.Wait(context.Background()); got.State != "completed" || got.End.Turns != 2 {
		t.Errorf("%+v", got)
	}
	local.Wait(context.Background())
	for what, err := range map[string]error{
		"send": remote.Send(ctx, "more"), "approve": remote.Approve(ctx, "", nil), "pause": remote.Pause(ctx),
		"stop": remote.Stop(ctx), "interrupt": remote.Interrupt(ctx), "signal": remote.Signal(ctx, "usr1"),
	} {
		if !errors.Is(err, pluginapi.CodeRunNotActive) {
			t.Errorf("%s of an ended run: %v", what, err)
		}
	}
}

func TestRemoteSignal(t *testing.T) {
	t.Parallel()
	here, there, _ := terminals(t)
	start(t, here, host.RunSpec{Name: "s", Prompt: "[say:up][sleep:60]"})
	remote := open(t, there, "s")
	until(t, remote, "text_delta")
	if err := remote.Signal(t.Context(), "nosuch"); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("unknown signal: %v", err)
	}
	if err := remote.Signal(t.Context(), "quit"); err != nil {
		t.Error(err)
	}
	if got, _ := remote.Wait(context.Background()); got.State != "canceled" || got.End.Reason != "signal" || !errors.Is(got.Err, pluginapi.CodeAborted) {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]string{"term": "stopped", "kill": "killed", "hup": "signal"} {
		local := start(t, here, host.RunSpec{Prompt: "[say:up][sleep:60]"})
		remote := open(t, there, local.ID())
		until(t, remote, "text_delta")
		if err := remote.Signal(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, _ := remote.Wait(context.Background()); got.State != "canceled" || got.End.Reason != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestNamesAreUniqueAmongActiveRuns(t *testing.T) {
	t.Parallel()
	here, there, _ := terminals(t)
	spec := host.RunSpec{Agent: "demo", Name: "the-one", Prompt: "[say:up][sleep:60]"}
	var mu sync.Mutex
	var won []*host.Run
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			h := here
			if i%2 == 1 {
				h = there
			}
			r, err := h.Start(t.Context(), spec)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, r)
			} else if !errors.Is(err, pluginapi.CodeValidation) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d runs have the name", len(won))
	}
	if err := won[0].Kill(t.Context()); err != nil {
		t.Error(err)
	}
	won[0].Wait(context.Background())
	again := start(t, here, host.RunSpec{Name: "the-one", Prompt: "[say:hi]"})
	again.Wait(context.Background())
	if got := open(t, there, "the-one"); got.ID() != again.ID() {
		t.Error("the name is that of the older run")
	}
}

// However cancels, completion and deletion race, a run ends once, each caller
// gets one of the outcomes, and nothing active is deleted.
func TestRacesOfTheEnd(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	hosts := []*host.Host{patient(next(t, s)), patient(next(t, s))}
	cwd := t.TempDir()
	var mu sync.Mutex
	count := map[string]int{}
	add := func(what ...any) {
		mu.Lock()
		defer mu.Unlock()
		count[fmt.Sprint(what...)]++
	}
	var aim atomic.Int64 // what most likely hits the end: a moment as often too early as too late
	aim.Store(int64(10 * time.Millisecond))
	race := func() {
		r, err := hosts[0].Start(t.Context(), host.RunSpec{
			Agent: "fake", Prompt: "shell\nexec sleep 0.01", Workspace: host.Workspace{Cwd: cwd}, Limits: host.Limits{Timeout: time.Minute, Grace: 100 * time.Millisecond},
		})
		if err != nil {
			t.Error(err)
			return
		}
		var inner sync.WaitGroup
		var requested, deleted atomic.Int32
		moment := func() time.Duration { return time.Duration(float64(aim.Load()) * (0.8 + 0.4*rand.Float64())) }
		for i := range 3 {
			inner.Go(func() {
				time.Sleep(moment())
				outcome, err := hosts[i%2].Cancel(t.Context(), r.ID(), i == 2)
				switch outcome {
				case host.CancelRequested:
					requested.Add(1)
				case host.AlreadyFinished, host.NotFound:
				default:
					t.Errorf("cancel: %s, %v", outcome, err)
				}
			})
		}
		for i := range 2 {
			inner.Go(func() {
				time.Sleep(moment())
				for outcome := host.ActiveConflict; outcome == host.ActiveConflict; time.Sleep(5 * time.Millisecond) {
					var err error
					switch outcome, err = hosts[i%2].Delete(t.Context(), r.ID()); outcome {
					case host.Deleted:
						deleted.Add(1)
					case host.ActiveConflict, host.NotFound:
					default:
						t.Errorf("delete: %q, %v", outcome, err)
					}
					add("delete: ", outcome)
				}
			})
		}
		ends := 0
		var state string
		for e, err := range r.Events(context.Background(), 1) {
			if err != nil {
				t.Error(err)
			}
			if e.Type == "run_end" {
				var end pluginapi.RunEnd
				_ = e.Decode(&end)
				state = end.State
				ends++
			}
		}
		result, _ := r.Wait(context.Background())
		inner.Wait()
		if requested.Load() > 0 {
			aim.Add(aim.Load() / 20)
		} else {
			aim.Add(-aim.Load() / 20)
		}
		if ends != 1 || state != result.State || state != "completed" && state != "canceled" {
			t.Errorf("%d ends, %s, %+v", ends, state, result)
		}
		if (state == "canceled") != (requested.Load() > 0) {
			t.Errorf("%s, and %d were told that it will be canceled", state, requested.Load())
		}
		if deleted.Load() != 1 {
			t.Errorf("deleted %d times", deleted.Load())
		}
		add(state)
		if requested.Load() > 1 {
			add("canceled twice or more")
		}
	}
	slots := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for range agents.Rounds(t, races, 3000) {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			race()
		})
	}
	wg.Wait()
	t.Log(count)
	if rounds := count["canceled"] + count["completed"]; rounds >= 100 && (count["canceled"] == 0 || count["completed"] == 0) {
		t.Error("the cancels have come at too few moments")
	}
	for _, dir := range []string{"runs", "runs/active"} {
		entries, _ := os.ReadDir(filepath.Join(s.Config, dir))
		for _, e := range entries {
			if e.Name() != "active" {
				t.Errorf("left in %s: %s", dir, e.Name())
			}
		}
	}
}

func TestDeleteOfAnActiveRunConflicts(t *testing.T) {
	t.Parallel()
	here, there, _ := terminals(t)
	r := start(t, here, host.RunSpec{Prompt: "[say:up][sleep:60]"})
	for _, h := range []*host.Host{here, there} {
		if outcome, err := h.Delete(t.Context(), r.ID()); outcome != host.ActiveConflict || !errors.Is(err, pluginapi.CodeInvalidTransition) {
			t.Errorf("%s, %v", outcome, err)
		}
	}
	if outcome, err := there.Cancel(t.Context(), r.ID(), false); outcome != host.CancelRequested {
		t.Errorf("%s, %v", outcome, err)
	}
	if got, _ := open(t, there, r.ID()).Wait(context.Background()); got.State != "canceled" {
		t.Errorf("%+v", got)
	}
	for _, want := range []host.Outcome{host.Deleted, host.NotFound, host.NotFound} {
		if outcome, err := there.Delete(t.Context(), r.ID()); outcome != want {
			t.Errorf("%s, %v, want %s", outcome, err, want)
		}
	}
	if outcome, _ := there.Cancel(t.Context(), r.ID(), false); outcome != host.NotFound {
		t.Errorf("cancel of what is deleted: %s", outcome)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	here, there, _ := terminals(t)
	r := start(t, here, host.RunSpec{Prompt: "[raw:one][stderr:two][sleep:0.3][raw:three][crash]"})
	r.Wait(context.Background())
	recorded := open(t, there, r.ID())
	for _, test := range []struct {
		n    int
		want string
	}{
		{0, ""}, {1, `{"type":"text","text":"in the middle of`},
		{2, "three\n{\"type\":\"text\",\"text\":\"in the middle of"},
	} {
		var got bytes.Buffer
		if err := recorded.Tail(test.n, &got); err != nil || got.String() != test.want {
			t.Errorf("%d: %q, %v", test.n, got.String(), err)
		}
	}
	var all bytes.Buffer
	if err := recorded.Tail(1000, &all); err != nil || !strings.Contains(all.String(), "two\n") || !strings.HasSuffix(all.String(), "middle of") {
		t.Errorf("%q, %v", all.String(), err)
	}
}

// Every terminal knows whether a question is for people.
func TestWaits(t *testing.T) {
	t.Parallel()
	here, there, _ := terminals(t)
	for rule, want := range map[string]bool{"write_file": false, "edit_file": true} {
		local := start(t, here, host.RunSpec{Prompt: "[approve]", Permissions: host.Permissions{Approve: host.ApproveAsk, AllowRules: []string{rule}}})
		remote := open(t, there, local.ID())
		var request pluginapi.ApprovalRequest
		if err := until(t, remote, code.EventApprovalRequest).Decode(&request); err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]*host.Run{"here": local, "there": remote} {
			if got := r.Waits(request.InteractionID); got != want {
				t.Errorf("%s, rule %s: %v", name, rule, got)
			}
			if r.Waits("another") {
				t.Errorf("%s: a question waits that nobody asked", name)
			}
		}
		if want {
			if err := remote.Approve(t.Context(), request.InteractionID, nil); err != nil {
				t.Error(err)
			}
		}
		if end, _ := local.Wait(context.Background()); end.State != code.StateCompleted {
			t.Errorf("rule %s: %s, %v", rule, end.State, end.Err)
		}
	}
}

// Of answers that are given at once, in two terminals, one wins.
func TestTheFirstAnswerWins(t *testing.T) {
	t.Parallel()
	here, there, _ := terminals(t)
	ctx := t.Context()
	local := start(t, here, host.RunSpec{Conversation: true, Prompt: "[approve]", Permissions: host.Permissions{Approve: host.ApproveAsk}})
	remote := open(t, there, local.ID())
	rounds, round := 100, 0
	for e, err := range remote.Events(context.Background(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "turn_end":
			if round++; round == rounds {
				err = remote.End(ctx)
			} else {
				err = remote.Send(ctx, "[approve]")
			}
			if err != nil {
				t.Fatal(err)
			}
		case "approval_request":
			var request pluginapi.ApprovalRequest
			if err := e.Decode(&request); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			var mu sync.Mutex
			won := 0
			for i := range 4 {
				wg.Go(func() {
					r := []*host.Run{local, remote}[i%2]
					var err error
					if i < 2 {
						err = r.Approve(ctx, request.InteractionID, nil)
					} else {
						err = r.Deny(ctx, request.InteractionID, "no")
					}
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						won++
					} else if !errors.Is(err, pluginapi.CodeAlreadyAnswered) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if won != 1 {
				t.Errorf("%d answers won", won)
			}
		}
	}
	if got, _ := local.Wait(context.Background()); got.State != "completed" || got.End.Turns != rounds {
		t.Errorf("%+v", got)
	}
}
