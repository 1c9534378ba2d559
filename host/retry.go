package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/amux-dev/amux/host/adapter"
	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/pluginapi"
)

// maxAttempts is more than anybody can mean.
const maxAttempts = 100

func (r *Retry) validate(conversation bool) error {
	switch {
	case r == nil:
		return nil
	case conversation:
		return invalid("retries are for runs of one prompt").WithHint("send the prompt of a conversation again, or leave out --retry")
	case r.MaxAttempts < 0 || r.MaxAttempts > maxAttempts:
		return invalid("%d attempts are not between 1 and %d", r.MaxAttempts, maxAttempts)
	case r.BaseDelay < 0 || r.MaxDelay < 0 || r.Jitter < 0 || r.Jitter > 1:
		return invalid("the delays of retries cannot be negative, nor their jitter outside of 0 to 1")
	}
	return nil
}

// attempts is how often the agent may be started.
func (r *Retry) attempts() int {
	switch {
	case r == nil:
		return 1
	case r.MaxAttempts == 0:
		return 3
	}
	return r.MaxAttempts
}

// delay is how long to wait behind attempt n, or behind a provider that has asked for
// a wait. ok is false if that is too long.
func (r *Retry) delay(n int, asked time.Duration) (delay time.Duration, ok bool) {
	base, longest, jitter := r.BaseDelay, r.MaxDelay, r.Jitter
	if base == 0 {
		base = time.Second
	}
	if longest == 0 {
		longest = 30 * time.Second
	}
	if jitter == 0 {
		jitter = 0.1
	}
	delay = base
	for ; n > 1 && delay < longest; n-- {
		delay *= 2
	}
	delay = min(delay, longest)
	delay += time.Duration(float64(delay) * jitter * (2*rand.Float64() - 1))
	return max(delay, asked), asked <= longest
}

// nextAttempt says whether the run's agent is started again after a failure.
func (r *Run) nextAttempt(f engine.Failure) (next journal.Retry, ok bool) {
	if r.launch == nil || f.Attempt >= r.spec.Retry.attempts() {
		return next, false
	}
	delay, ok := r.spec.Retry.delay(f.Attempt, f.RetryAfter)
	if !ok || r.spec.Timeout > 0 && time.Since(r.launch.began)+delay >= r.spec.Timeout {
		return next, false
	}
	next = journal.Retry{
		Attempt: f.Attempt + 1, MaxAttempts: r.spec.Retry.attempts(), DelayMS: delay.Milliseconds(), Code: f.Code, Msg: f.Msg,
	}
	if r.spec.MaxBudget > 0 {
		next.Budget = r.spec.MaxBudget
		if f.Cost != nil {
			next.Budget -= f.Cost.USD
		}
		if next.Budget <= 0 {
			return next, false
		}
	}
	if f.Tooled {
		// What a tool has done is not done twice: only the session knows of it.
		resumable := f.Session != "" && !r.spec.NoSession && r.agent.GetCapabilities().GetResume()
		if !resumable || checkPrompt(engine.Continued(r.spec.Prompt)) != nil {
			return next, false
		}
		next.Resume = f.Session
	}
	return next, true
}

// attempts start what a run still has to start, one after the other. A WaitGroup would
// not do: there may be a next one while somebody waits for the last.
type attempts struct {
	mu   sync.Mutex
	last chan struct{} // closed when it is over
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

// startAgain makes the attempt that the journal has announced.
func (r *Run) startAgain(ctx context.Context, retry *journal.Retry) {
	select {
	case <-time.After(time.Duration(retry.DelayMS) * time.Millisecond):
	case <-r.conn.Gone():
		return
	case <-ctx.Done():
		return
	case <-r.h.closing.Done(): // who closes the host ends the run
		return
	}
	r.mu.Lock()
	r.started = retry.Attempt
	r.mu.Unlock()
	r.startLate(ctx, retry)
}

// endUnstarted ends a run of a host that closes, if it waits for its turn or its next
// attempt.
func (r *Run) endUnstarted() {
	r.attempts.Wait() // they start nothing any more, or have
	r.mu.Lock()
	waits := r.queued || r.started < r.engine.Status().Next
	r.mu.Unlock()
	if !waits || isClosed(r.done) {
		return
	}
	if r.conn.Kill(shim.Stop{Reason: "host_gone", By: "host"}) == nil {
		<-r.done
	}
}

// startInTurn starts a queued run when its turn has come.
func (r *Run) startInTurn(ctx context.Context) {
	select {
	case <-r.place.ready:
	case <-r.conn.Gone():
		return
	case <-ctx.Done():
		return
	case <-r.h.closing.Done(): // who closes the host ends the run
		return
	}
	if err := r.src.append(journal.KindState, journal.Encode(itsTurn)); err != nil {
		r.cannotStart(1, err)
		return
	}
	r.mu.Lock()
	r.queued = false
	r.mu.Unlock()
	r.launch.began = time.Now()
	r.startLate(ctx, nil)
}

// startLate starts the agent of a run that is there already. If it cannot, that is
// how the run ends.
func (r *Run) startLate(ctx context.Context, retry *journal.Retry) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-r.conn.Gone(): // nobody is left to start it, or the run was ended meanwhile
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := r.launch.again(ctx, r, retry); err != nil && ctx.Err() == nil {
		r.cannotStart(r.launch.attempt, err)
	}
}

// cannotStart ends a run that has no process and gets none.
func (r *Run) cannotStart(attempt int, err error) {
	if refused, ok := errors.AsType[*shim.RemoteError](err); ok {
		switch pluginapi.Code(refused.Code) {
		case pluginapi.CodeRunNotActive, pluginapi.CodeSpawn, pluginapi.CodePTYNotAvailable:
			return // why is in the journal: somebody asked for the end, or the shim could not start it
		}
		err = r.commandError("start the agent", err)
	}
	e := pluginapi.AsError(err)
	if r.src.append(journal.KindSpawnFailed, journal.Encode(journal.SpawnFailed{
		Spawn: attempt, Error: e.Error(), Code: string(e.Code), Hint: e.Hint,
	})) == nil {
		return
	}
	// The disk is full, if the shim has not gone.
	amendExit(r.dir.Path("exit"), "disk_full")
	_ = r.conn.Release()
}

// again plans and starts what is next of a run that lives.
func (l *launch) again(ctx context.Context, r *Run, retry *journal.Retry) error {
	if first := l.options; retry != nil {
		l.attempt, l.options = retry.Attempt, engine.OptionsOf(first, retry)
		defer func() { l.options = first }()
	}
	plan, err := l.makePlan(ctx, adapter.NewPatience(l.h.limits.call))
	if err != nil {
		return err
	}
	spawn, record, err := l.prepareSpawn(plan)
	if err == nil && retry == nil { // it waited in the queue
		err = l.planned(ctx, record)
	}
	if err != nil {
		return err
	}
	if err := r.src.append(journal.KindPlan, journal.Encode(record)); err != nil {
		return err
	}
	if err := r.conn.Spawn(spawn); err != nil {
		return err
	}
	if l.spec.Prompt != "" || !l.spec.Conversation {
		_ = r.firstPrompt(l.attempt, l.options.Prompt) // the agent may have ended already
	}
	return nil
}

func promptID(attempt int) string { return "prompt-" + strconv.Itoa(attempt) }
