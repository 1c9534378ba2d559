package clitest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// unchanged is a run whose changes were not recorded.
type unchanged struct{}

func (unchanged) Changes() *host.Changes { return nil }

// screen is the terminal of a run, with what was printed on it; nil: it has none.
type screen struct{ Pieces []host.TerminalPiece }

func (s *screen) Terminal(context.Context, bool) iter.Seq2[host.TerminalPiece, error] {
	return func(yield func(host.TerminalPiece, error) bool) {
		if s.Pieces == nil {
			yield(host.TerminalPiece{}, pluginapi.Errorf(pluginapi.CodeCapability, "run %s has no terminal", RunID))
		}
		for _, p := range s.Pieces {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// Run plays events. A call goes on to the function that On has under its name, if any.
type Run struct {
	unchanged
	screen
	Judged   bool     // the host answers permission requests by its rules
	Rules    []string // would allow what is asked
	Editable bool     // the agent takes changed input
	mu       sync.Mutex
	more     *sync.Cond
	Log      []host.Event
	Over     bool
	calls    []string
	On       map[string]func(r *Run)
	Fail     map[string]error
	Result   host.Result
	Cut      error // in place of the end, which is not recorded
	watch    sync.Once
	// Watched is called when somebody begins to read the events.
	Watched func()
	Spec    host.RunSpec
}

// RunID is the id of the run.
const RunID = "01M7X9DSQ827BHWDSGN2DGXP98"

func NewRun(events ...pluginapi.Payload) *Run {
	r := &Run{On: map[string]func(*Run){}, Fail: map[string]error{}, Result: host.Result{RunID: RunID, State: code.StateCompleted}}
	r.more = sync.NewCond(&r.mu)
	r.Emit(events...)
	return r
}

// Finished returns a run whose events are all there.
func Finished(events ...pluginapi.Payload) *Run {
	r := NewRun(events...)
	r.Finish()
	return r
}

func (r *Run) Waits(string) bool { return !r.Judged }

// Questions are those of the events that no event has closed.
func (r *Run) Questions() (open []host.Question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.Log {
		var id struct {
			InteractionID string `json:"interaction_id"`
		}
		switch _ = json.Unmarshal(e.Raw, &id); e.Type {
		case code.EventApprovalRequest, code.EventInputRequired:
			q := host.Question{RunID: RunID, ID: id.InteractionID, Approval: e.Type == code.EventApprovalRequest, Asked: time.Unix(0, 0), Cwd: "/work", Event: e.Raw}
			if q.Approval {
				q.Rules, q.Editable = r.Rules, r.Editable
			}
			open = append(open, q)
		case code.EventApprovalGranted, code.EventApprovalDenied, code.EventInputAnswered:
			open = slices.DeleteFunc(open, func(q host.Question) bool { return q.ID == id.InteractionID })
		}
	}
	return open
}

func (r *Run) Emit(events ...pluginapi.Payload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range events {
		data, err := json.Marshal(p)
		if err != nil {
			panic(err)
		}
		raw := fmt.Sprintf(`{"type":%q,"run_id":%q,"seq":%d`, p.EventType(), RunID, len(r.Log)+1)
		if string(data) != "{}" {
			raw += "," + strings.TrimPrefix(string(data), "{")
		} else {
			raw += "}"
		}
		r.Log = append(r.Log, host.Event{Type: p.EventType(), RunID: RunID, Seq: uint64(len(r.Log) + 1), Raw: json.RawMessage(raw)})
	}
	r.more.Broadcast()
}

func (r *Run) Finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Over = true
	r.more.Broadcast()
}

func (r *Run) called(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	word, _, _ := strings.Cut(call, " ")
	r.mu.Lock()
	r.calls = append(r.calls, call)
	then, err := r.On[word], r.Fail[word]
	r.mu.Unlock()
	if then != nil && err == nil {
		then(r)
	}
	return err
}

func (r *Run) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.calls...)
}

func (r *Run) ID() string { return RunID }

func (r *Run) Info() host.RunInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	info := host.RunInfo{ID: RunID, Agent: "alpha", State: code.StateCompleted, Prompt: "hi", Created: time.Unix(0, 0), Events: uint64(len(r.Log)), Spec: r.Spec, Conversation: r.Spec.Conversation}
	if r.Cut != nil {
		info.State, info.Code = code.StateFailed, pluginapi.CodeDiskFull
	} else if r.Over {
		info.End = &pluginapi.RunEnd{State: code.StateCompleted}
	}
	return info
}

func (r *Run) Events(ctx context.Context, from uint64) iter.Seq2[host.Event, error] {
	return func(yield func(host.Event, error) bool) {
		defer context.AfterFunc(ctx, func() { wake(r) })()
		if r.Watched != nil {
			r.watch.Do(r.Watched)
		}
		for i := int(from - 1); ; i++ {
			r.mu.Lock()
			for i >= len(r.Log) && !r.Over && ctx.Err() == nil {
				r.more.Wait()
			}
			if err := ctx.Err(); err != nil && !r.Over {
				r.mu.Unlock()
				yield(host.Event{}, err)
				return
			}
			if i >= len(r.Log) {
				r.mu.Unlock()
				if r.Cut != nil {
					yield(host.Event{}, r.Cut)
				}
				return
			}
			e := r.Log[i]
			r.mu.Unlock()
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (r *Run) CopyEvents(ctx context.Context, w io.Writer, from uint64) error {
	for e, err := range r.Events(ctx, from) {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n", e.Raw); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) Wait(ctx context.Context) (host.Result, error) {
	defer context.AfterFunc(ctx, func() { wake(r) })()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.Over {
		if err := ctx.Err(); err != nil {
			return host.Result{}, err
		}
		r.more.Wait()
	}
	if r.Result.Err != nil {
		return r.Result, r.Result.Err
	}
	return r.Result, nil
}

// wake wakes who waits for the end of a context.
func wake(r *Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.more.Broadcast()
}

func (r *Run) Send(_ context.Context, text string) error { return r.called("send %s", text) }
func (r *Run) Approve(_ context.Context, id string, in json.RawMessage) error {
	return r.called("approve %s%s", id, in)
}
func (r *Run) Allow(_ context.Context, id string, rules []string) error {
	return r.called("allow %s %s", id, strings.Join(rules, " "))
}
func (r *Run) Deny(_ context.Context, id, reason string) error {
	return r.called("deny %s: %s", id, reason)
}
func (r *Run) Answer(_ context.Context, id, text string) error {
	return r.called("answer %s: %s", id, text)
}
func (r *Run) SetModel(_ context.Context, m string) error { return r.called("model %s", m) }

// SetApprove is host.Run's.
func (r *Run) SetApprove(_ context.Context, m host.ApproveMode) error {
	return r.called("approve mode %s", m)
}
func (r *Run) Interrupt(context.Context) error          { return r.called("interrupt") }
func (r *Run) End(context.Context) error                { return r.called("end") }
func (r *Run) Stop(context.Context) error               { return r.called("stop") }
func (r *Run) Kill(context.Context) error               { return r.called("kill") }
func (r *Run) Pause(context.Context) error              { return r.called("pause") }
func (r *Run) Resume(context.Context) error             { return r.called("resume") }
func (r *Run) Signal(_ context.Context, n string) error { return r.called("signal %s", n) }
func (r *Run) Keys(_ context.Context, k []byte) error   { return r.called("keys %q", k) }
func (r *Run) Resize(_ context.Context, cols, rows int) error {
	return r.called("resize %d %d", cols, rows)
}
func (r *Run) Tail(n int, w io.Writer) error {
	fmt.Fprintf(w, "the last %d\n", n)
	return nil
}

func (r *Run) Lease(_ context.Context, _ string, steal bool) error {
	return r.called("lease %v", steal)
}

func (r *Run) GiveBack(context.Context, string) error { return r.called("give back") }
