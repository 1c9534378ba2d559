package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/host/internal/plugins"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/internal/spawn"
	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/internal/eventlog"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
)

// hosted is a run that this process hosts: it reads the run's journal, makes its events
// and decides what the run does.
type hosted struct {
	*recorded
	self      *Run
	log       *eventlog.Log
	src       *record.Live
	engine    *engine.Engine
	shim      shimLink
	plugin    plugins.Service
	attempts  attempts
	inherited *inherited  // of a run that another process has begun; nil for one of this
	disk      record.Disk // how the record gets there
	budgets   *budgets
	letGo     context.CancelFunc
	ended     func()         // takes the tree of the end, once
	ending    sync.WaitGroup // on that
	done      chan struct{}  // closed when the run has ended, or is let go

	mu      sync.Mutex
	prompts int
	result  Result
}

// inherited is what an adopted run brings with it.
type inherited struct {
	fault *journal.Fault // that the other process had found; nil for none
	// What its agent lacks, and the attempt of that agent; nil for nothing.
	prompt  *journal.Input
	attempt int
}

// shimLink is the connection to a run's shim.
type shimLink struct {
	conn   *shim.Conn
	exited <-chan struct{} // closed when its process is gone; nil: info tells which that is
	forget func()          // leaves the process to itself; nil for one of another host
	info   shim.Info
}

// wait waits until the shim's process is gone, whose connection is.
func (s *shimLink) wait() {
	if s.exited != nil {
		<-s.exited
	} else {
		record.WaitGone(context.Background(), s.info)
	}
}

// release lets the shim go, if it has not, and waits for that.
func (s *shimLink) release() {
	if !s.conn.Left() {
		_ = s.conn.Release()
		<-s.conn.Gone()
	}
	s.wait()
}

// partTime is how long a run at another place has to finish what it asks of it, when its host
// leaves it.
const partTime = time.Second

// begin makes a run one of this host's.
func (r *hosted) begin(ctx context.Context) {
	ctx, r.letGo = context.WithCancel(ctx)
	if r.spec.On != "" {
		// What is asked of a place that cannot be reached waits for it.
		context.AfterFunc(ctx, func() { time.AfterFunc(partTime, func() { r.shim.conn.Close() }) })
	}
	r.attachDisk()
	r.attempts.life = ctx
	r.ended = sync.OnceFunc(r.takeEnd)
	r.h.runs.add(r)
	if r.attempts.isQueued() && r.inherited == nil {
		r.attempts.Go(func() { r.attempts.startInTurn(ctx) })
	}
	go r.main(ctx)
}

// syncMode is that of a run.
func syncMode(meta store.Meta, o Options) SyncMode {
	var spec struct{ Sync SyncMode }
	_ = json.Unmarshal(meta.Spec, &spec) // then it is the default
	return SyncMode(cmp.Or(string(spec.Sync), cmp.Or(string(o.Sync), string(SyncEnd))))
}

// attachDisk has the events of the run tell when it is time for the disk.
func (r *hosted) attachDisk() {
	mode := syncMode(r.meta, r.h.opts)
	if mode == SyncOff || r.spec.NoRecord {
		return
	}
	r.disk.Dir, r.disk.Open = r.dir.Dir, r.h.edges.open
	r.disk.Sync = func() error { return errors.Join(r.src.Sync(), r.log.Sync()) }
	if syncing := r.h.syncing; syncing != nil {
		r.disk.Sync = func() error { return syncing(r.self) }
	}
	if mode == SyncAlways {
		r.log.Before = r.disk.Now
		return
	}
	r.log.Durable = r.disk.Want
}

// newEngine makes the engine of a run whose last recorded state is state.
func (r *hosted) newEngine(state string) *engine.Engine {
	r.budgets = newBudgets(&r.h.archive, r.id(), &r.spec)
	policy := &engine.Policy{
		Conversation: r.spec.Conversation, Unattended: r.spec.Unattended, AnswerTime: r.h.limits.answer,
		Judge: r.spec.judge(r.env()).Answer, Preview: previewOf(r.spec.here()), Retry: r.attempts.next,
		Used: r.noteUsage, Overspent: r.budgets.overspent(), Grace: cmp.Or(r.spec.Grace, spawn.DefaultGrace),
		Interrupts: r.agent.GetCapabilities().GetInterrupt(),
	}
	config := engine.Config{
		Journal: r.src, Log: r.log, Limits: r.h.limits.engine(), State: state,
		Start:       &pb.Start{Agent: r.spec.adapter(), Options: r.spec.recorded(r.agent)},
		CheckAnswer: r.h.opts.answerCheck(r.spec.JSONSchema), Effects: effects{r}, Policy: policy,
		Budgeted: r.spec.MaxCost > 0 || len(r.spec.Budgets) > 0,
	}
	if i := r.inherited; i != nil {
		policy.Adopted, policy.Unprompted, policy.Attempt = true, i.prompt, i.attempt
		config.Logged = logged(r.log)
	}
	if r.spec.OnEvent != nil {
		config.OnEvent = func(line []byte) {
			if event, err := parseEvent(line); err == nil {
				r.spec.OnEvent(event)
			}
		}
	}
	return engine.New(config)
}

// noteUsage keeps what the run has used for whoever asks.
func (r *hosted) noteUsage(used engine.Usage) {
	r.budgets.look()
	if err := record.WriteUsage(r.dir, used); err != nil {
		r.h.log.Named("run").Debug("usage is not written", "run_id", r.id(), "error", err)
	}
}

// ---- what a Run asks ----

func (r *hosted) events(from uint64) cursor { return r.log.From(from) }

func (r *hosted) wait(ctx context.Context) (Result, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		if !r.over() {
			return Result{}, ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result, nil
}

func (r *hosted) over() bool { return isClosed(r.done) }

func (r *hosted) command(what string, do func(*shim.Conn) error) error {
	if r.over() {
		return r.notActive()
	}
	err := do(r.shim.conn)
	if isRefusal(err) && what != code.InputStop && what != code.InputKill {
		if err := r.unstarted(); err != nil {
			return err
		}
	}
	return r.commandError(what, err)
}

// unstarted is an error while the run waits for its turn or its next attempt.
func (r *hosted) unstarted() error {
	switch {
	case r.over():
	case r.attempts.isQueued():
		return r.notYet("its turn")
	case r.engine.Status().Next > 0:
		return r.notYet("its next attempt")
	}
	return nil
}

func (r *hosted) waits(question string) bool {
	return slices.Contains(r.engine.Status().Waiting, question)
}

func (r *hosted) question(kind, id string) (string, error) {
	waiting := r.engine.Status().Waiting
	if id != "" && !slices.Contains(waiting, id) {
		// The events may know of it already. An answer to what was never asked is
		// not recorded: it would keep others from answering when it is.
		if err := r.unstarted(); err != nil {
			return "", err
		}
		return record.Question(r.dir, kind, id)
	}
	if id != "" {
		return id, nil
	}
	switch len(waiting) {
	case 0:
		return "", pluginapi.Errorf(pluginapi.CodeNoPendingInteraction, "run %s waits for no answer", r.id())
	case 1:
		return waiting[0], nil
	}
	return "", invalid("run %s waits for %d answers", r.id(), len(waiting)).WithHint("name one by its interaction id")
}

func (r *hosted) promptID() string {
	if r.inherited != nil {
		return newPromptID()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prompts++
	return "prompt-" + strconv.Itoa(r.prompts+1)
}

// ---- the run's own goroutine ----

// main makes the run's events until it has ended. A plugin that dies or hangs gets
// another chance in a process of the run's own, which is fed the journal again, for as
// long as that helps. A run that has waited for nothing when a process died that it shares is not
// the cause, and shares the next: a thousand quiet runs are no reason for a thousand processes.
func (r *hosted) main(ctx context.Context) {
	defer r.letGo()
	if r.inherited != nil && r.inherited.fault != nil {
		r.endFaulty(ctx)
		return
	}
	var suspect plugins.Suspect
	var past plugins.Lives
	own := false
	for attempt := 1; ; attempt++ {
		since := time.Now()
		reading, err := r.plugin.Converse(ctx, own)
		took := time.Since(since)
		if err == nil {
			if suspect.Single {
				reading.After, reading.UpTo = suspect.From, suspect.To
			}
			if attempt > 1 || r.inherited != nil {
				reading.Behind = r.src.Committed()
			}
			reading.Progress = past.Left(r.h.limits.Limits)
			err = r.engine.Run(ctx, reading)
		}
		if err == nil {
			r.finish(r.engine)
			return
		}
		if ctx.Err() != nil {
			r.part()
			return
		}
		broken, ok := errors.AsType[*engine.Broken](err)
		if !ok {
			broken = &engine.Broken{Cause: err, Done: r.engine.Answered()}
		}
		if broken.Further {
			past = plugins.Lives{}
		}
		if pluginapi.AsError(broken.Cause).Code == pluginapi.CodeDiskFull {
			r.abandon(broken.Cause, r.engine) // the journal has the rest; the next start of amux tells it
			return
		}
		if errors.Is(broken.Cause, engine.ErrHung) {
			r.plugin.Hangs()
		}
		r.h.log.Named("run").Debug("conversation failed", "run_id", r.id(), "attempt", attempt, "error", err)
		if !own && past.Shares(broken, time.Since(since)) {
			r.plugin.Shared = nil
			continue
		}
		own = true
		// A typed error of the SDK is the adapter's own word; to ask again would
		// give it again.
		took += broken.Stalled
		slow := broken.Stalled > r.h.limits.Progress/4
		if !past.Again(ctx, broken.Cause, took, r.h.limits.Limits) || !suspect.Again(broken, slow) {
			r.fault(ctx, broken)
			return
		}
	}
}

// answerTime is how long a question waits for people before it is denied.
const answerTime = 10 * time.Minute

// fault ends a run whose adapter cannot go on, and tells the rest without it.
func (r *hosted) fault(ctx context.Context, broken *engine.Broken) {
	record := faultOf(broken, r.plugin.Verified.Plugin.Name)
	if held := r.plugin.Memory(); errors.Is(broken.Cause, engine.ErrHung) && held > r.h.limits.Memory/8 {
		// It is more than slow, and would have reached its limit.
		record.Msg += fmt.Sprintf("; it holds %d MiB of memory", held>>20)
		record.Hint = adapter.Hoarding
	}
	record.Done, record.Behind = r.engine.Answered(), !r.engine.CaughtUp()
	_ = r.src.AppendLate(journal.KindFault, journal.Encode(record)) // without it the end is told all the same
	if r.shim.conn.Kill(shim.Stop{Reason: journal.ReasonFault, By: "host"}) != nil {
		// The agent has ended already.
		r.h.log.Named("run").Debug("nothing to kill", "run_id", r.id())
	}
	r.last(ctx, r.engine, r.engine.Finish(ctx, &record))
}

// faultOf says why the adapter of a run cannot go on.
func faultOf(broken *engine.Broken, plugin string) journal.Fault {
	e := pluginapi.AsError(broken.Cause)
	if e.Code == pluginapi.CodeInternal {
		e = pluginapi.Errorf(pluginapi.CodePluginCrashed, "%w", broken.Cause)
	}
	msg := e.Error()
	if e.Code == pluginapi.CodePluginCrashed {
		if !strings.Contains(msg, "plugin "+plugin) {
			msg = "plugin " + plugin + " " + msg
		}
		if !strings.Contains(msg, "input") && broken.Sent > broken.Done {
			msg += " at input " + strconv.FormatUint(broken.Done+1, 10)
		}
	}
	return journal.Fault{Code: string(e.Code), Msg: msg, Hint: cmp.Or(e.Hint, e.Code.Info().Hint)}
}

// last is what follows the reading that tells the end.
func (r *hosted) last(ctx context.Context, e *engine.Engine, err error) {
	switch {
	case err == nil:
		r.finish(e)
	case ctx.Err() != nil:
		r.part()
	default:
		r.abandon(err, e)
	}
}

// endFaulty ends an adopted run whose adapter had failed the host before.
func (r *hosted) endFaulty(ctx context.Context) {
	_ = r.shim.conn.Kill(shim.Stop{Reason: journal.ReasonFault, By: "host"}) // it may have been done
	e, err := r.h.teller.retell(ctx, r.meta, nil, r.src, r.log, effects{r})
	if err != nil && ctx.Err() == nil && pluginapi.AsError(err).Code != pluginapi.CodeDiskFull {
		err = e.Finish(ctx, nil) // the fault is in the journal
	}
	r.last(ctx, e, err)
}

// part lets a detached run go on without this host.
func (r *hosted) part() {
	r.log.Rollback()
	r.log.Finish()
	r.disk.Finish()
	if r.shim.forget != nil {
		r.shim.forget()
	}
	r.shim.conn.Close()
	r.attempts.Wait()
	r.attempts.slot.leave()
	r.src.Close()
	r.plugin.End()
	r.end(r.failed(r.engine.Status().State, code.ReasonHostGone, r.hostGone()))
}

// failed is the result of a run whose end is not told.
func (r *hosted) failed(state, reason string, e *pluginapi.Error) Result {
	return Result{RunID: r.id(), State: state, Err: e, End: pluginapi.RunEnd{
		State: state, Reason: reason, Code: e.Code, Message: e.Error(),
	}}
}

// finish takes the result and clears up.
func (r *hosted) finish(e *engine.Engine) {
	told := e.Summary()
	r.clear(&told, Result{RunID: r.id(), State: told.State, Text: told.Text})
}

// abandon ends a run whose events cannot be made any more: only the result tells.
// The run has failed, also for whoever makes the rest of its events later, unless
// the journal has another end already. told may be nil.
func (r *hosted) abandon(err error, told *engine.Engine) {
	e := pluginapi.AsError(err)
	reason := journal.ReasonAbandoned
	if e.Code == pluginapi.CodeDiskFull {
		reason = journal.ReasonDiskFull
	}
	_ = r.shim.conn.Kill(shim.Stop{Reason: reason, By: "host"}) // it may have ended
	_ = r.shim.conn.Release()
	<-r.shim.conn.Gone()
	r.shim.wait()
	state := engine.Failed
	if told != nil && engine.Terminal(told.Summary().State) {
		state = told.Summary().State
	}
	if state == engine.Failed {
		record.AmendExit(r.dir.Path("exit"), reason)
	}
	r.clear(nil, r.failed(state, string(reason), e))
}

// clear clears up behind a run of which nothing is left. told is nil if its events have no
// end.
func (r *hosted) clear(told *engine.Summary, result Result) {
	r.attempts.Wait()
	r.attempts.slot.leave()
	r.log.Finish()
	r.disk.Finish()
	if told != nil {
		r.readEnd(&result)
	}
	r.ended()
	_ = os.RemoveAll(r.meta.TempDir)
	_ = os.Remove(folders.Socket(r.h.opts.RuntimeDir, r.id())) // a shim that was killed leaves it
	if told != nil && !told.Ended.IsZero() {
		r.h.archive.Index(r.meta, result.End, told.Ended, told.Usage.Models)
		r.dir.MarkEnded()
	}
	r.shim.conn.Close()
	r.src.Close()
	r.plugin.End()
	if r.spec.NoRecord {
		_ = r.dir.Remove()
	}
	r.end(result)
}

// end gives the result to whoever waits for it.
func (r *hosted) end(result Result) {
	r.mu.Lock()
	r.result = result
	r.mu.Unlock()
	r.ending.Wait()
	r.dir.Unlock()
	r.h.runs.remove(r)
	close(r.done)
}

// readEnd takes the end of the result from the run's last event.
func (r *hosted) readEnd(result *Result) {
	var last []byte
	_ = r.log.From(r.log.Count()).Lines(context.Background(), func(line []byte) bool {
		last = append(last[:0], line...)
		return true
	})
	if json.Unmarshal(last, &result.End) == nil && result.End.Code != "" {
		code := result.End.Code
		result.Err = &pluginapi.Error{Code: code, Msg: result.End.Message, Hint: cmp.Or(result.End.Hint, code.Info().Hint)}
	}
}

// effects is what the engine of a live run has done: by its shim, and at the end by this
// process.
type effects struct{ r *hosted }

var _ engine.Effects = effects{}

func (e effects) Write(id engine.EffectID, data []byte) {
	e.done(e.r.shim.conn.Write(shim.EffectID(id), data))
}

func (e effects) CloseStdin(id engine.EffectID) { e.done(e.r.shim.conn.CloseStdin(shim.EffectID(id))) }

func (e effects) SetTimer(id engine.EffectID, name string, after time.Duration) {
	e.done(e.r.shim.conn.SetTimer(shim.EffectID(id), name, after))
}

func (e effects) Signal(id engine.EffectID, name string) {
	e.done(e.r.shim.conn.Signal(shim.EffectID(id), name))
}

// done is what became of an effect.
func (e effects) done(err error) {
	if refused, ok := errors.AsType[*shim.RemoteError](err); ok && refused.Code == pluginapi.CodeStdinNotAvailable {
		// What the agent was to be told is lost: the run cannot go on as if it
		// had been.
		e.Kill(journal.ReasonStdinFull)
	}
	if err != nil {
		// An agent that has exited takes no more input.
		e.r.h.log.Named("run").Debug("effect failed", "run_id", e.r.id(), "error", err)
	}
}

func (e effects) Input(in journal.Input) { _ = input(e.r, in) } // it may have been answered already

func (e effects) AnswerWithin(question string, after time.Duration) {
	_ = e.r.shim.conn.SetLimit(shim.Limit{Kind: "answer", ID: question, After: after})
}

func (e effects) AwaitPrompt(waits bool) {
	limit := shim.Limit{Kind: "answer", ID: shim.NextPrompt}
	if waits {
		limit.After = shim.Forever
	}
	_ = e.r.shim.conn.SetLimit(limit) // of an agent that has ended no clock runs
}

func (e effects) EndWithin(after time.Duration) {
	_ = e.r.shim.conn.SetLimit(shim.Limit{Kind: "budget", After: after}) // it may have ended
}

func (e effects) StartAttempt(retry *journal.Retry) {
	e.r.attempts.Go(func() { e.r.attempts.startAgain(retry) })
}

func (e effects) Kill(reason journal.EndReason) {
	_ = e.r.shim.conn.Kill(shim.Stop{Reason: reason, By: "host"}) // it may have ended
}

func (e effects) Append(kind journal.Kind, record []byte) error { return e.r.src.Append(kind, record) }

// Settle lets the shim go. If that has left without a word, what it left running is
// killed.
func (e effects) Settle(lost bool) (engine.Settled, error) {
	r := e.r
	r.shim.release()
	r.attempts.Wait() // they record nothing any more
	settled := engine.Settled{Heard: true}
	if lost {
		r.h.edges.sweep(r.meta)
		if exit, ok := record.ReadExit(r.dir.Path("exit")); ok {
			settled.Exit = &exit
		}
		settled.Started = r.inherited == nil // no host has died, but the shim
	}
	r.ending.Go(r.ended) // beside the last events
	return settled, r.src.TakeOver()
}

// liveRuns are the runs that a host hosts now, by id. The zero value has none.
type liveRuns struct{ byID sync.Map }

func (l *liveRuns) add(r *hosted) { l.byID.Store(r.id(), r) }

func (l *liveRuns) remove(r *hosted) { l.byID.Delete(r.id()) }

// get returns a run, or nil if this host has no such run.
func (l *liveRuns) get(id string) *hosted {
	r, _ := l.byID.Load(id)
	run, _ := r.(*hosted)
	return run
}

func (l *liveRuns) has(id string) bool { return l.get(id) != nil }

func (l *liveRuns) all() (runs []*hosted) {
	l.byID.Range(func(_, r any) bool {
		runs = append(runs, r.(*hosted))
		return true
	})
	return runs
}
