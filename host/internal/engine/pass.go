package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/sys/slowlock"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
)

// pass is one reading of the journal.
type pass struct {
	cfg      *Config
	decider  *decider // nil once nothing is decided any more
	conv     Conversation
	leave    func()
	heard    uint64      // the last input that the adapter hears
	fail     func(error) // ends the run of the pass that is under way
	target   int64       // offset behind which the pass is live
	settled  *Settled    // nil until no process of the run is left
	feeder   feeder
	receiver receiver // with mu
	watchdog watchdog

	performing slowlock.Lock // held by whoever works off todo

	mu      slowlock.Lock // also while the disk is full
	order   order
	events  emitter
	ledger  ledger
	mark    mark
	todo    []func()
	live    bool
	broken  error
	stopped chan struct{} // closed when broken is set
	changed *sync.Cond    // order.done, broken, carrying
	// carrying: effects of the adapter are being carried out.
	carrying bool
}

// mark is where the pass stood when it last committed, which is where it goes back to
// when the adapter is given up in the middle of an input.
type mark struct {
	seq, done uint64
	last      EffectID
	ledger    ledger
}

func newPass(e *Engine, r Reading) (*pass, error) {
	reader, err := journal.NewReader(e.cfg.Journal)
	if err != nil {
		return nil, err
	}
	p := &pass{
		cfg: &e.cfg, decider: e.decider, conv: r.Conversation, leave: r.Leave, heard: 1<<64 - 1, target: r.Behind,
		events: emitter{log: e.cfg.Log, skip: e.cfg.Log.Count()}, stopped: make(chan struct{}),
		performing: slowlock.New(), mu: slowlock.New(),
	}
	if e.cfg.Fault != nil && !e.cfg.Fault.Behind {
		p.heard = e.cfg.Fault.Done
	}
	p.feeder = newFeeder(p, reader, r)
	p.receiver.p = p
	p.watchdog.clock, p.watchdog.limit = e.cfg.Clock, cmp.Or(r.Progress, e.cfg.Limits.Progress)
	p.changed = sync.NewCond(p.mu)
	return p, nil
}

// run reads until the run's last event, or until the conversation or ctx ends.
func (p *pass) run(ctx context.Context) error {
	outer := ctx
	ctx, wakeFeeder := context.WithCancel(ctx)
	defer wakeFeeder()
	over := false // with mu; a watchdog that strikes after that must not hit the next run of the pass
	fail := func(err error) {
		p.mu.Lock()
		if over {
			p.mu.Unlock()
			return
		}
		p.breakOff(err)
		p.mu.Unlock()
		if p.leave != nil {
			p.leave()
		}
		wakeFeeder()
	}
	p.fail = fail
	p.watchdog.onEnd(func() {
		e := pluginapi.Errorf(pluginapi.CodePluginCrashed, "made no progress for %v", p.watchdog.limit)
		e.Err = ErrHung
		fail(e)
	})
	defer p.watchdog.stop()
	received := make(chan struct{})
	if p.conv != nil {
		go func() { p.receiver.receive(); close(received) }()
	} else {
		close(received)
	}
	stop := context.AfterFunc(outer, func() { fail(outer.Err()) })
	defer stop()
	err := p.feeder.feed(ctx)
	p.mu.Lock()
	over = true
	switch {
	case outer.Err() != nil:
		err = outer.Err()
	case Terminal(p.mark.ledger.state):
		err = nil // the end is in the log: what the adapter does after that is of no matter
	case Terminal(p.ledger.state) && err == nil:
	case p.broken != nil:
		err = &Broken{Cause: p.broken, Done: p.order.done, Sent: p.order.sent}
	}
	p.mu.Unlock()
	if p.leave != nil {
		p.leave()
	}
	<-received
	return err
}

// ErrHung is how a plugin that hangs has died.
var ErrHung = errors.New("no progress")

// breakOff is fail for a caller that holds mu.
func (p *pass) breakOff(err error) {
	if p.broken == nil {
		p.broken = err
		close(p.stopped)
		p.changed.Broadcast()
	}
}

func (p *pass) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// over reports that the run's last event was made.
func (p *pass) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Terminal(p.ledger.state)
}

// settle waits until the adapter has answered everything, and what it wants is done.
func (p *pass) settle() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.feeder.publish()
	for p.conv != nil && (p.order.done < min(p.order.n, p.heard) || p.carrying) && p.broken == nil {
		p.changed.Wait()
	}
	return p.broken
}

// goLive lets the pass decide, once what it was started with is behind it.
func (p *pass) goLive() {
	p.mu.Lock()
	live := p.live
	p.mu.Unlock()
	if live || p.decider == nil || p.settle() != nil {
		return
	}
	p.mu.Lock()
	p.live = true
	p.decider.begin(&p.ledger)
	p.todo = append(p.todo, p.decider.decide(&p.ledger)...)
	p.mu.Unlock()
	p.perform()
}

// perform does what is to be done, in the order in which it was decided, whoever
// of feeder and receiver comes first.
func (p *pass) perform() {
	p.performing.Lock()
	defer p.performing.Unlock()
	p.mu.Lock()
	todo := p.todo
	p.todo = nil
	p.mu.Unlock()
	for _, f := range todo {
		f()
	}
}

// conclude is called when the run's processes are gone and all their output is told.
// It records what follows: another attempt, or the end. Before the end it lets the shim
// go and returns once, so that what was recorded meanwhile is read.
func (p *pass) conclude() error {
	effects := p.cfg.Effects
	if p.settled == nil {
		if retry, ok := p.nextAttempt(); ok && effects.Append(journal.KindRetry, journal.Encode(retry)) == nil {
			p.feeder.ended = false
			return nil // the record decides the next attempt
		}
		p.mu.Lock()
		lost := p.ledger.lost()
		p.mu.Unlock()
		settled, err := effects.Settle(lost)
		p.settled = &settled
		return err
	}
	p.mu.Lock()
	if p.events.ahead() {
		// The end of the journal was lost with a power cut, and what was made of it was not.
		damage := journal.Damage{File: "journal", Offset: p.feeder.reader.Offset(), What: "it ends before the events that were made of it"}
		p.mu.Unlock()
		return effects.Append(journal.KindDamage, journal.Encode(damage))
	}
	p.feeder.ended = false
	p.ledger.settle(*p.settled)
	p.ledger.concluded = true
	end := p.verdict()
	if p.ledger.beside {
		end.Exit = p.ledger.exit
	}
	p.mu.Unlock()
	if checkTransition(end.From, end.To) != nil && end.From == Starting {
		// The agent ended before anybody could record that it runs.
		running := journal.State{From: Starting, To: Running}
		if effects.Append(journal.KindState, journal.Encode(running)) == nil {
			end.From = Running
		}
	}
	err := effects.Append(journal.KindState, journal.Encode(end))
	if err != nil && p.settled.Heard {
		// The disk is full. The end is told to whoever listens now; the next start of amux
		// records it.
		p.mu.Lock()
		p.stateChanged(end, p.cfg.Clock.Now())
		p.mu.Unlock()
		return nil
	}
	return err
}

// verdict says how the run, or the attempt, has ended. It is called with mu held.
func (p *pass) verdict() journal.State {
	end := p.ledger.verdict(p.cfg.CheckAnswer)
	if p.cfg.Budgeted && end.Code == string(code.BudgetExceeded) {
		end.Reason = ReasonBudget
	}
	return end
}

// nextAttempt says whether the run's agent is started again, now that it has ended.
func (p *pass) nextAttempt() (retry journal.Retry, ok bool) {
	if p.decider == nil || p.cfg.Policy.Retry == nil {
		return retry, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	end := p.verdict()
	if !p.ledger.mayPass(end) {
		return retry, false
	}
	if over := p.cfg.Policy.Overspent; over != nil {
		if msg, _ := over(p.ledger.cost, p.ledger.allTokens()); msg != "" {
			return retry, false
		}
	}
	return p.cfg.Policy.Retry(p.ledger.failure(end))
}

// advance does what is due, commits, and notes what is to be done now.
func (p *pass) advance() {
	p.due()
	if p.receiver.partial {
		return
	}
	if p.live {
		p.todo = append(p.todo, p.decider.decide(&p.ledger)...) // before the events are seen, by whom it may be asked about them
	}
	p.commit()
}

// due does the items whose time has come.
func (p *pass) due() {
	answered := p.order.done
	if p.conv == nil || p.order.done >= p.heard {
		answered = p.order.n
	}
	p.order.before(answered + 1)
}

// commit shows the events made so far. On a full disk it waits: the shim, whose
// journal is on the same disk, ends the run when it has waited long enough, and
// what is made of the end is tried last. A limit of the file's size (ulimit -f) does
// not pass, so there is no wait for it.
func (p *pass) commit() {
	const wait = 45 * time.Second
	clock := p.cfg.Clock
	var since time.Time
	for {
		err := p.events.log.Commit(p.cfg.OnEvent)
		if err == nil {
			p.mark = mark{p.events.seq, p.order.done, p.receiver.last, p.ledger.clone()}
			p.order.undone = nil
			if p.order.open.len() == 0 {
				p.events.log.Idle()
			}
			return
		}
		if since.IsZero() {
			since = clock.Now()
		}
		over := p.broken != nil || Terminal(p.ledger.state) || p.cfg.Journal.Alone() || errors.Is(err, syscall.EFBIG)
		if over || clock.Now().Sub(since) > wait || errors.Is(err, os.ErrClosed) {
			p.breakOff(diskError(err))
			return
		}
		clock.Sleep(100 * time.Millisecond)
	}
}

func diskError(err error) error {
	hint := pluginapi.CodeDiskFull.Info().Hint
	if errors.Is(err, syscall.EFBIG) {
		hint = "this process may not write larger files; raise the limit: ulimit -f unlimited"
	}
	return pluginapi.Errorf(pluginapi.CodeDiskFull, "write the run's events: %w", err).WithHint("%s", hint)
}

// deafen lets the pass go on without the adapter, from where it last committed:
// outputs of inputs that were not finished are forgotten, and what the host made of
// records since then is made again.
func (p *pass) deafen(fault *journal.Fault) {
	p.mu.Lock()
	p.conv, p.decider, p.settled = nil, nil, nil
	p.live, p.broken, p.stopped = false, nil, make(chan struct{})
	p.retreat()
	if fault != nil {
		p.ledger.fault = fault
	}
	p.mu.Unlock()
	p.feeder.drop()
}

// logged takes in an event of the log that nobody can make again: what it says of the run
// is in the figures of the end.
func (p *pass) logged(t pluginapi.Type, line []byte) {
	switch {
	case pluginapi.HostOnly(t):
		p.events.own++
	case wanted[t]:
		p.mark.ledger.learn(t, line)
	}
}

// retreat goes back to the mark. What was done of records since then is queued
// again.
func (p *pass) retreat() {
	p.receiver.reset(p.mark.last)
	p.events.retreat(p.mark.seq)
	p.order.retreat(p.mark.done)
	p.ledger = p.mark.ledger.clone()
}

func breach(format string, args ...any) error {
	return pluginapi.Errorf(pluginapi.CodePluginCrashed, "broke the contract: it "+format, args...)
}

// effect carries out what the adapter wants done, if the run is live.
func (p *pass) effect(e effect) {
	if p.cfg.Policy == nil || p.cfg.Effects == nil {
		return
	}
	id := EffectID{e.output.N, e.output.K}
	switch e.output.Kind {
	case pb.OutputKind_OUTPUT_WRITE:
		p.cfg.Effects.Write(id, e.data)
	case pb.OutputKind_OUTPUT_CLOSE_STDIN:
		p.cfg.Effects.CloseStdin(id)
	case pb.OutputKind_OUTPUT_SET_TIMER:
		p.cfg.Effects.SetTimer(id, e.output.Id, time.Duration(e.output.Millis)*time.Millisecond)
	case pb.OutputKind_OUTPUT_SIGNAL:
		p.cfg.Effects.Signal(id, e.output.Id)
	default:
		panic(fmt.Sprintf("output kind %v is no effect", e.output.Kind))
	}
}
