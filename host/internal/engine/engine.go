package engine

import (
	"context"
	"sync"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Config is what an engine works with.
type Config struct {
	Journal Journal
	Log     Log
	// Clock is the system's if nil.
	Clock  Clock
	Limits Limits
	// Start is what the adapter is told at the start of each attempt, without what the
	// attempt's plan says.
	Start *pb.Start
	// CheckAnswer says why the answer of a completed run is not one that was asked for;
	// nil takes any. The same answer always has the same result.
	CheckAnswer func(answer string) error
	// Budgeted says that a limit of money which the agent keeps itself is one of amux.
	Budgeted bool
	// OnEvent sees each new event before consumers do; nil for nobody.
	OnEvent func(line []byte)
	// Effects carries out what is wanted. Nil: the journal has its last record, or
	// nobody will write one.
	Effects Effects
	// Policy makes the run live: the adapter's effects are carried out, and the engine
	// decides what the host does. Nil: what is over is not done again.
	Policy *Policy
	// State is the state that was recorded last.
	State string
	// Fault was recorded: the adapter hears nothing after the input Fault.Done, unless that
	// is behind the log.
	Fault *journal.Fault
	// Logged gives the events that the log has, for an end that the adapter has no part in.
	// Nil: none.
	Logged func(yield func(t pluginapi.Type, line []byte))
}

// Limits bound what an adapter may take.
type Limits struct {
	Progress time.Duration // for an input
	Volume   int           // bytes of outputs for an input, besides what a long line gives
	Stdin    int           // bytes of one write to the agent's stdin
}

// Engine makes the events of one run.
type Engine struct {
	cfg     Config
	decider *decider // nil without a policy
	status  statusBoard
	last    *pass  // that ran last
	best    *pass  // that got furthest, for what it has learned
	had     uint64 // events that an earlier engine has made
}

// New returns an engine that has done nothing yet.
func New(cfg Config) *Engine {
	if cfg.Clock == nil {
		cfg.Clock = systemClock{}
	}
	e := &Engine{cfg: cfg, had: cfg.Log.Count()}
	e.status.set(Status{State: cfg.State})
	if cfg.Policy != nil {
		e.decider = &decider{policy: cfg.Policy, effects: cfg.Effects, status: &e.status, announced: cfg.State}
	}
	return e
}

// Reading is one reading of the journal, from its first record.
type Reading struct {
	// Conversation is with a process that has heard nothing yet. Nil: the run's adapter
	// hears nothing.
	Conversation Conversation
	// Leave ends the conversation. It may be called more than once; nil does nothing.
	Leave func()
	// Behind is the size of the journal whose records an earlier reading, or an earlier
	// host, has dealt with.
	Behind int64
	// Progress is how long the plugin may hold an input; that of Limits if 0.
	Progress time.Duration
	// After and UpTo are inputs of which plugins have died: those between, and UpTo, are
	// sent one by one.
	After, UpTo uint64
}

// Broken is the error of a reading whose conversation is of no use any more.
type Broken struct {
	Cause error
	Done  uint64 // inputs that were answered
	Sent  uint64 // inputs that were sent
	// Further reports that no reading before got as far.
	Further bool
	// Stalled is how long the plugin was waited for since the last progress.
	Stalled time.Duration
}

func (b *Broken) Error() string { return b.Cause.Error() }

func (b *Broken) Unwrap() error { return b.Cause }

// Window is how many batches may be unanswered. One costs throughput, more than two
// gain nothing and would grow the plugin's memory.
const Window = 2

// Run reads the journal until the run's last event. It returns *Broken where another
// conversation may get further, the error of ctx, or RECORD_DAMAGED.
func (e *Engine) Run(ctx context.Context, r Reading) error {
	if e.last != nil {
		e.cfg.Log.Rollback()
	}
	p, err := newPass(e, r)
	if err != nil {
		if r.Leave != nil {
			r.Leave()
		}
		return err
	}
	err = p.run(ctx)
	e.last = p
	further := e.best == nil || p.order.done > e.best.order.done
	if further || p.order.done == e.best.order.done {
		e.best = p
	}
	if broken, ok := err.(*Broken); ok {
		broken.Further, broken.Stalled = further, p.watchdog.stalled()
	}
	return err
}

// Answered is how many inputs were answered whose events are in the log, by the reading
// that got furthest.
func (e *Engine) Answered() uint64 {
	if e.best == nil {
		return 0
	}
	return e.best.mark.done
}

// CaughtUp reports that the furthest reading has made all events that an earlier engine had
// made.
func (e *Engine) CaughtUp() bool { return e.had == 0 || e.best != nil && e.best.mark.seq >= e.had }

// Finish goes on without an adapter from where the furthest reading was, until the
// run's last event. If that has not caught up, what is behind the events in the log is
// what the host itself knows. Nothing is decided any more; fault, if not nil, is how the
// run ends.
func (e *Engine) Finish(ctx context.Context, fault *journal.Fault) error {
	p := e.best
	if p == nil || !e.CaughtUp() {
		var err error
		if p, err = newPass(e, Reading{}); err != nil {
			return err
		}
		if p.events.mute = !e.CaughtUp(); p.events.mute && e.cfg.Logged != nil {
			e.cfg.Logged(p.logged)
		}
	}
	e.last = p
	p.deafen(fault)
	return p.run(ctx)
}

// Summary is what the last reading has learned.
type Summary struct {
	State string
	Text  string    // the last message of the main conversation
	Ended time.Time // zero if the journal has no end
	Usage Usage
}

// Summary is for after a reading.
func (e *Engine) Summary() Summary {
	if e.last == nil {
		return Summary{}
	}
	l := &e.last.ledger
	return Summary{State: l.state, Text: l.text, Ended: l.ended, Usage: l.usage.public()}
}

// Status is how a live run stands. It changes before the events that tell of it are
// seen.
type Status struct {
	State   string
	Waiting []string // questions that wait for people, in their order; not to be changed
	Next    int      // the attempt that is announced and has no process yet; 0 if none is
}

// Status returns how the run stands now.
func (e *Engine) Status() Status { return e.status.get() }

type statusBoard struct {
	mu  sync.Mutex
	now Status
}

func (b *statusBoard) set(s Status) {
	b.mu.Lock()
	b.now = s
	b.mu.Unlock()
}

func (b *statusBoard) get() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}
