package host

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/pluginapi"
)

// attempts start what a run still has to start, one after the other. A WaitGroup would
// not do: there may be a next one while somebody waits for the last.
type attempts struct {
	run    *hosted
	launch *launch         // of what is still to be started; nil if there is nothing
	life   context.Context // ends when this host lets the run go
	slot   *slot           // in the host's queue

	mu      sync.Mutex
	last    chan struct{} // closed when it is over
	queued  bool          // the run's turn has not come
	started int           // the last attempt that startAgain has started, or tried to
}

// isQueued reports whether the run waits for its turn.
func (a *attempts) isQueued() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.queued
}

func (a *attempts) Go(start func()) {
	over := make(chan struct{})
	a.mu.Lock()
	before := a.last
	a.last = over
	a.mu.Unlock()
	go func() {
		defer close(over)
		if before != nil {
			<-before
		}
		start()
	}()
}

// Wait waits for those that there are now.
func (a *attempts) Wait() {
	a.mu.Lock()
	last := a.last
	a.mu.Unlock()
	if last != nil {
		<-last
	}
}

// next says whether the run's agent is started again after a failure.
func (a *attempts) next(f engine.Failure) (next journal.Retry, ok bool) {
	if a.launch == nil || f.Attempt >= a.run.spec.retry().Attempts() {
		return next, false
	}
	delay, ok := a.run.spec.retry().Delay(f.Attempt, f.RetryAfter, a.run.h.edges.random())
	if !ok || a.run.spec.Timeout > 0 && time.Since(a.launch.began)+delay >= a.run.spec.Timeout {
		return next, false
	}
	next = journal.Retry{
		Attempt: f.Attempt + 1, MaxAttempts: a.run.spec.retry().Attempts(), DelayMS: delay.Milliseconds(), Code: f.Code, Msg: f.Msg,
	}
	if budget := a.run.spec.agentBudget(a.run.agent); budget > 0 {
		next.Budget = budget
		if f.Cost != nil {
			next.Budget -= f.Cost.USD
		}
		if next.Budget <= 0 {
			return next, false
		}
	}
	if f.Tooled {
		// What a tool has done is not done twice: only the session knows of it.
		resumable := f.Session != "" && !a.run.spec.NoSession && a.run.agent.GetCapabilities().GetResume()
		if !resumable || checkPrompt(engine.Continued(a.run.spec.Prompt)) != nil {
			return next, false
		}
		next.Resume = f.Session
	}
	return next, true
}

// startAgain makes the attempt that the journal has announced.
func (a *attempts) startAgain(retry *journal.Retry) {
	ctx := a.life
	select {
	case <-time.After(time.Duration(retry.DelayMS) * time.Millisecond):
	case <-a.run.shim.conn.Gone():
		return
	case <-ctx.Done():
		return
	case <-a.run.h.closing.Done(): // who closes the host ends the run
		return
	}
	a.mu.Lock()
	a.started = retry.Attempt
	a.mu.Unlock()
	a.startLate(ctx, retry)
}

// endUnstarted ends a run of a host that closes, if it waits for its turn or its next
// attempt.
func (a *attempts) endUnstarted() {
	a.Wait() // they start nothing any more, or have
	a.mu.Lock()
	waits := a.queued || a.started < a.run.engine.Status().Next
	a.mu.Unlock()
	if !waits || isClosed(a.run.done) {
		return
	}
	if a.run.shim.conn.Kill(shim.Stop{Reason: journal.ReasonHostGone, By: "host"}) == nil {
		<-a.run.done
	}
}

// startInTurn starts a queued run when its turn has come.
func (a *attempts) startInTurn(ctx context.Context) {
	select {
	case <-a.slot.ready:
	case <-a.run.shim.conn.Gone():
		return
	case <-ctx.Done():
		return
	case <-a.run.h.closing.Done(): // who closes the host ends the run
		return
	}
	if err := a.run.src.Append(journal.KindState, journal.Encode(itsTurn)); err != nil {
		a.cannotStart(1, err)
		return
	}
	a.mu.Lock()
	a.queued = false
	a.mu.Unlock()
	a.launch.began = time.Now()
	a.startLate(ctx, nil)
}

// startLate starts the agent of a run that is there already. If it cannot, that is
// how the run ends.
func (a *attempts) startLate(ctx context.Context, retry *journal.Retry) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-a.run.shim.conn.Gone(): // nobody is left to start it, or the run was ended meanwhile
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := a.launch.again(ctx, a.run, retry); err != nil && ctx.Err() == nil {
		a.cannotStart(a.launch.attempt, err)
	}
}

// cannotStart ends a run that has no process and gets none.
func (a *attempts) cannotStart(attempt int, err error) {
	if refused, ok := errors.AsType[*shim.RemoteError](err); ok {
		switch refused.Code {
		case pluginapi.CodeRunNotActive, pluginapi.CodeSpawn, pluginapi.CodePTYNotAvailable:
			return // why is in the journal: somebody asked for the end, or the shim could not start it
		}
		err = a.run.startError(err)
	}
	e := pluginapi.AsError(err)
	err = a.run.src.Append(journal.KindSpawnFailed, journal.Encode(journal.SpawnFailed{
		Spawn: attempt, Error: e.Error(), Code: string(e.Code), Hint: e.Hint,
	}))
	if err == nil || errors.Is(err, shim.ErrGone) {
		return // the engine finds out that the shim was killed
	}
	// The disk is full.
	record.AmendExit(a.run.dir.Path("exit"), journal.ReasonDiskFull)
	_ = a.run.shim.conn.Release()
}

// again plans and starts what is next of a run that lives.
func (l *launch) again(ctx context.Context, r *hosted, retry *journal.Retry) error {
	if first := l.options; retry != nil {
		l.attempt, l.options = retry.Attempt, engine.OptionsOf(first, retry)
		defer func() { l.options = first }()
	}
	if retry == nil {
		if err := l.prepareFolder(ctx); err != nil {
			return err
		}
		defer l.baseline.wait()
	}
	spawn, record, err := l.prepareSpawn(ctx, adapter.NewPatience(l.h.limits.Call))
	if err != nil {
		return err
	}
	if err := r.src.Append(journal.KindPlan, journal.Encode(record)); err != nil {
		return err
	}
	l.baseline.wait()
	if err := r.shim.conn.Spawn(spawn); err != nil {
		return err
	}
	if l.spec.Prompt != "" || !l.spec.Conversation {
		_ = r.firstPrompt(l.attempt, l.options.Prompt) // the agent may have ended already
	}
	return nil
}

func promptID(attempt int) string { return "prompt-" + strconv.Itoa(attempt) }
