package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/amux-dev/amux/host/adapter"
	"github.com/amux-dev/amux/host/eventlog"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/lines"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/host/vt"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

const (
	// A batch is what one read of the journal gave, up to these.
	batchInputs = 1024
	batchBytes  = 256 << 10
	// window is how many batches may be unanswered. One costs throughput, more
	// than two gain nothing and would grow the plugin's memory.
	window = 2
)

// source is where a pump reads: the journal file and how far it is committed.
type source interface {
	io.ReaderAt
	// Committed is the size up to which records are whole.
	Committed() int64
	// Wait returns when Committed has grown, or with io.EOF when it never will.
	Wait(ctx context.Context) error
}

// pump turns one run's journal into events. It is the one way to do so: live,
// after the death of a plugin or a host, and for a replay. Everything it knows
// comes from the records, so that a new pump that starts at the first record
// makes the same events again; those the log already has are counted and
// skipped.
//
// Two goroutines work: the feeder reads records and sends inputs to the adapter,
// the receiver takes outputs. Events of the adapter and of the host are put in
// one order by input numbers: what the host makes of a record comes behind all
// outputs of the inputs before that record.
type pump struct {
	src    source
	start  *pb.Start // template of INPUT_START
	log    *eventlog.Log
	before func([]byte) // sees every new event before consumers
	limits limits
	conv   *adapter.Conversation
	leave  func() // ends conv
	// fail ends the run of the pump that is under way.
	fail func(error)
	// heard is the last input that the adapter hears; what a recorded fault says.
	heard uint64
	// act is called with mu held after every step of a live pump; what it
	// returns is run without mu, in order.
	act func(*pump) []func()
	// effect carries out a write, timer or signal of the adapter.
	effect func(*pb.Output, []byte)
	// exited is called by the feeder when the run's last process has ended and
	// all of its events are made. It appends what is next.
	exited func(*pump) error
	// alone reports that the run's shim has left: on a full disk there is
	// nothing more to wait for.
	alone func() bool
	// mute is set while the end alone is to be told: the log has the rest, or the
	// plugin that could tell it is gone.
	mute bool
	// single is the input after which each batch has one input, up to singleTo:
	// the inputs that a plugin may have died of are fed again.
	single, singleTo uint64

	// The feeder's own.
	reader   *journal.Reader
	stripper *vt.Stripper // of stdout, while the agent is on a terminal
	stdout   lines.Splitter
	stderr   lines.Splitter
	batch    pb.ConverseRequest
	size     int
	fed      uint64  // the last input's number
	fresh    []stamp // of inputs that are not in stamps yet
	pieced   [2]int  // bytes of the lines that are coming in pieces: stdout, stderr
	heavy    int     // the longest line in pieces that ends in the batch
	target   int64   // offset behind which the pump is live
	slots    chan struct{}
	seenExit bool
	retry    *journal.Retry // of the attempt that is read, if it is not the first
	planned  bool           // the adapter knows of the run
	between  bool           // there was no spawn yet, or none since the last exit

	performing sync.Mutex // held by who works off todo

	mu       sync.Mutex
	todo     []func()
	n        uint64 // fed, as of the last flush or item
	ledger   ledger
	skip     uint64 // events that the log has
	seq      uint64 // events made so far
	done     uint64 // inputs that are fully answered
	told     uint64 // inputs that were sent
	sent     []uint64
	stamps   []stamp
	items    []item
	last     shim.EffectID // of the last output
	pieces   pieces
	partial  bool // outputs of an input that is not done are in the log's batch
	volume   int  // bytes of outputs, and of what carries them, since an input was done
	lineSize int  // the longest line in pieces that may not be done
	effects  []effect
	mark     mark
	undone   []item // done since the mark
	live     bool
	broken   error
	stopped  chan struct{} // closed when broken is set
	changed  *sync.Cond    // done, broken
	watchdog watchdog
}

// mark is where the pump stood when it last committed, which is where it goes
// back to when the adapter is given up in the middle of an input.
type mark struct {
	seq, done uint64
	last      shim.EffectID
	ledger    ledger
}

// stamp is the time of the record that inputs up to n came from.
type stamp struct {
	n    uint64
	time time.Time
}

// item is something the host makes of a record, behind input after.
type item struct {
	after uint64
	time  time.Time
	do    func(time.Time)
}

type effect struct {
	output *pb.Output
	data   []byte
}

// pieces joins outputs that are longer than a message. An event is handed on
// piece by piece; only those the host must read, and writes, are held.
type pieces struct {
	open *pb.Output // the first of them
	hold [][]byte
	size int  // of hold
	long bool // the event is longer than what is held for reading
}

// add keeps a piece, which is part of what was received and never changes.
func (p *pieces) add(data []byte) {
	p.hold = append(p.hold, data)
	p.size += len(data)
}

func (p *pieces) whole() []byte {
	if len(p.hold) == 1 {
		return p.hold[0]
	}
	return slices.Concat(p.hold...)
}

// holdLimit is the longest event that the host reads itself.
const holdLimit = 16 << 20

func (h *Host) newPump(src source, log *eventlog.Log, skip uint64) (*pump, error) {
	reader, err := journal.NewReader(src)
	if err != nil {
		return nil, err
	}
	splitter := lines.Splitter{Piece: pluginapi.PieceSize, Limit: pluginapi.MaxLine}
	p := &pump{
		between: true, src: src, log: log, skip: skip, reader: reader, stdout: splitter, stderr: splitter,
		limits: h.limits, heard: 1<<64 - 1, slots: make(chan struct{}, window), stopped: make(chan struct{}),
	}
	p.changed = sync.NewCond(&p.mu)
	p.watchdog.limit = h.limits.progress
	return p, nil
}

// errConversation is why run ended before the run did: the adapter's stream is
// of no use any more. Cause says more.
type errConversation struct {
	cause error
	done  uint64 // inputs that were answered
	sent  uint64 // inputs that were sent
}

func (e *errConversation) Error() string { return e.cause.Error() }

// run pumps until the run's last event, or until the conversation or ctx ends.
func (p *pump) run(ctx context.Context) error {
	outer := ctx
	ctx, wakeFeeder := context.WithCancel(ctx)
	defer wakeFeeder()
	over := false // with mu; a watchdog that strikes after that must not hit the next run of the pump
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
		e.Err = errHung
		fail(e)
	})
	defer p.watchdog.stop()
	received := make(chan struct{})
	if p.conv != nil {
		go func() { p.receive(); close(received) }()
	} else {
		close(received)
	}
	stop := context.AfterFunc(outer, func() { fail(outer.Err()) })
	defer stop()
	err := p.feed(ctx)
	p.mu.Lock()
	over = true
	switch {
	case outer.Err() != nil:
		err = outer.Err()
	case terminal(p.ledger.state) && err == nil:
	case p.broken != nil:
		err = &errConversation{p.broken, p.done, p.told}
	}
	p.mu.Unlock()
	if p.leave != nil {
		p.leave()
	}
	<-received
	return err
}

// errHung is how a plugin that hangs has died.
var errHung = fmt.Errorf("no progress: %w", adapter.ErrDied)

// breakOff is fail for who holds mu.
func (p *pump) breakOff(err error) {
	if p.broken == nil {
		p.broken = err
		close(p.stopped)
		p.changed.Broadcast()
	}
}

func (p *pump) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// ---- feeding ----

func (p *pump) feed(ctx context.Context) error {
	for {
		limit := p.src.Committed()
		for {
			if !p.reader.Ready(limit) || len(p.batch.Inputs) >= batchInputs || p.size >= batchBytes {
				// Inputs point into the reader's buffer, which the next read
				// overwrites.
				if err := p.flush(); err != nil {
					return err
				}
			}
			rec, err := p.reader.Next(limit)
			if errors.Is(err, io.EOF) || errors.Is(err, journal.ErrTorn) {
				break
			}
			if damage, ok := errors.AsType[*journal.Damage](err); ok {
				return p.damaged(damage)
			}
			if err != nil {
				return err
			}
			if err := p.record(rec); err != nil {
				return err
			}
		}
		if err := p.flush(); err != nil {
			return err
		}
		if p.reader.Offset() >= p.target {
			p.goLive()
		}
		p.mu.Lock()
		over := terminal(p.ledger.state)
		p.mu.Unlock()
		if over {
			return nil
		}
		if p.seenExit && p.exited != nil {
			if err := p.settle(); err != nil {
				return err
			}
			p.seenExit = false
			p.mu.Lock()
			over := terminal(p.ledger.state)
			p.mu.Unlock()
			if over {
				return nil // a host that died had recorded the end
			}
			if err := p.exited(p); err != nil {
				return err
			}
			continue
		}
		p.batch.Inputs = nil
		p.reader.Release()
		p.mu.Lock()
		p.log.Idle()
		p.mu.Unlock()
		if err := p.src.Wait(ctx); err != nil {
			if errors.Is(err, errShimGone) {
				p.seenExit = true
				continue
			}
			if errors.Is(err, io.EOF) {
				if p.src.Committed() > limit {
					continue
				}
				return p.settle()
			}
			return err
		}
		if err := p.failure(); err != nil {
			return err
		}
	}
}

// damaged ends what can be told of a journal, once all before the damage is.
func (p *pump) damaged(d *journal.Damage) error {
	if err := p.flush(); err != nil {
		return err
	}
	if err := p.settle(); err != nil {
		return err
	}
	return pluginapi.Errorf(pluginapi.CodeRecordDamaged, "%w", d)
}

// settle waits until the adapter has answered everything.
func (p *pump) settle() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.publish()
	for p.conv != nil && p.done < min(p.n, p.heard) && p.broken == nil {
		p.changed.Wait()
	}
	return p.broken
}

// goLive lets the pump act, once what it was started with is behind it.
func (p *pump) goLive() {
	p.mu.Lock()
	live := p.live
	p.mu.Unlock()
	if live || p.act == nil || p.settle() != nil {
		return
	}
	p.mu.Lock()
	p.live = true
	p.todo = append(p.todo, p.act(p)...)
	p.mu.Unlock()
	p.perform()
}

// perform does what is to be done, in the order in which it was decided, whoever
// of feeder and receiver comes first.
func (p *pump) perform() {
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

// record makes inputs and host items of one record.
func (p *pump) record(rec journal.Record) error {
	switch rec.Kind {
	case journal.KindStdout:
		text := rec.Payload
		if p.stripper != nil {
			text = p.stripper.Append(nil, text)
		}
		p.stdout.Feed(text, func(l lines.Line) { p.line(l, "stdout", rec.Time) })
	case journal.KindStderr:
		p.stderr.Feed(rec.Payload, func(l lines.Line) { p.line(l, "stderr", rec.Time) })
	case journal.KindState:
		var s journal.State
		if err := rec.Decode(&s); err != nil {
			return err
		}
		if terminal(s.To) {
			p.flushLines(rec.Time)
		}
		p.item(rec.Time, func(at time.Time) { p.stateChanged(s, at) })
	case journal.KindPlan:
		var plan journal.Plan
		if err := rec.Decode(&plan); err != nil {
			return err
		}
		p.stripper = nil
		if plan.PTY {
			p.stripper = &vt.Stripper{}
		}
		start := &pb.Start{
			Agent: p.start.GetAgent(), Options: ofAttempt(p.start.GetOptions(), p.retry), State: plan.State, SessionId: plan.SessionID,
			Attempt: uint32(plan.Attempt), Cwd: plan.Cwd, ProgramVersion: plan.Version,
			Flags: flagsOf(plan.Args),
		}
		p.input(&pb.Input{Kind: pb.InputKind_INPUT_START, Start: start}, rec.Time)
		p.item(rec.Time, func(at time.Time) {
			p.ledger.attempt, p.ledger.spawn = plan.Attempt, plan.Spawn
			if plan.SessionID != "" && (p.ledger.session == "" || plan.Attempt > 1) {
				p.ledger.session, p.ledger.sessionOver = plan.SessionID, false
			}
			for _, w := range plan.Warnings {
				p.emitHost(pluginapi.Debug{Level: "warn", Message: w}, at)
			}
		})
	case journal.KindSpawned:
		p.between = false
		p.item(rec.Time, func(time.Time) { p.ledger.spawned, p.ledger.retry = true, nil })
	case journal.KindRetry:
		var retry journal.Retry
		if err := rec.Decode(&retry); err != nil {
			return err
		}
		p.seenExit, p.between, p.retry = false, true, &retry
		p.item(rec.Time, func(at time.Time) {
			p.endSession(at)
			p.ledger.again(&retry)
			p.emitHost(pluginapi.Retry{
				Attempt: retry.Attempt, MaxAttempts: &retry.MaxAttempts, Reason: retry.Msg, DelayMS: &retry.DelayMS, Code: pluginapi.Code(retry.Code),
			}, at)
		})
	case journal.KindSpawnFailed:
		var failed journal.SpawnFailed
		if err := rec.Decode(&failed); err != nil {
			return err
		}
		p.input(&pb.Input{Kind: pb.InputKind_INPUT_SPAWN_FAILED, Data: []byte(failed.Error)}, rec.Time)
		p.item(rec.Time, func(time.Time) { p.ledger.spawnFailed = &failed })
		p.seenExit, p.between = true, false
	case journal.KindInput:
		var in journal.Input
		if err := rec.Decode(&in); err != nil {
			return err
		}
		p.userInput(in, rec.Time)
	case journal.KindTimer:
		var timer journal.Timer
		if err := rec.Decode(&timer); err != nil {
			return err
		}
		p.input(&pb.Input{Kind: pb.InputKind_INPUT_TIMER, Id: timer.ID}, rec.Time)
	case journal.KindTimeout:
		var timeout journal.Timeout
		if err := rec.Decode(&timeout); err != nil {
			return err
		}
		p.input(&pb.Input{Kind: pb.InputKind_INPUT_TIMEOUT, Id: timeout.Kind}, rec.Time)
		p.asked(rec.Time)
	case journal.KindCollected:
		var c journal.Collected
		if err := rec.Decode(&c); err != nil {
			return err
		}
		p.input(&pb.Input{Kind: pb.InputKind_INPUT_COLLECTED, Id: c.Path, Data: c.Content}, rec.Time)
	case journal.KindExit:
		var exit journal.Exit
		if err := rec.Decode(&exit); err != nil {
			return err
		}
		p.flushLines(rec.Time)
		p.input(&pb.Input{Kind: pb.InputKind_INPUT_EXIT, Exit: &pb.Exit{
			Code: int32(exit.Code), Signal: exit.Signal, Asked: exit.Reason != "",
		}}, rec.Time)
		p.item(rec.Time, func(at time.Time) {
			p.ledger.exit = &exit
			if exit.Survivors != "" {
				p.emitHost(pluginapi.Debug{Level: "warn", Message: "the run has ended, but amux could not end this: " + exit.Survivors}, at)
			}
		})
		p.seenExit = true
	case journal.KindDamage:
		var damage journal.Damage
		if err := rec.Decode(&damage); err != nil {
			return err
		}
		p.item(rec.Time, func(at time.Time) { p.lost(&damage, at) })
	case journal.KindFault:
		var fault journal.Fault
		if err := rec.Decode(&fault); err != nil {
			return err
		}
		p.item(rec.Time, func(at time.Time) {
			p.ledger.fault = &fault
			p.emitHost(pluginapi.ErrorEvent{
				Code: pluginapi.Code(fault.Code), Message: fault.Msg, Hint: fault.Hint,
			}, at)
		})
	}
	return nil
}

func (p *pump) userInput(in journal.Input, at time.Time) {
	kind, ok := inputKinds[in.Kind]
	if ok && in.Kind != "prompt" {
		data := []byte(in.Text)
		if in.Kind == "approve" {
			data = in.Data
		}
		p.input(&pb.Input{Kind: kind, Id: in.ID, Data: data}, at)
	}
	switch in.Kind {
	case "prompt":
		// The message comes before what the adapter makes of it.
		p.item(at, func(at time.Time) {
			p.ledger.idle, p.ledger.prompted = false, true
			if p.ledger.signaled { // and survived it
				p.ledger.signaled, p.ledger.askedAt = false, 0
			}
			p.emitHost(pluginapi.UserMessage{ID: in.ID, Text: in.Text}, at)
		})
		p.input(&pb.Input{Kind: kind, Id: in.ID, Data: []byte(in.Text)}, at)
	case "approve", "deny", "answer":
		p.item(at, func(time.Time) { p.ledger.dropPending(in.ID) })
	case "interrupt":
		p.item(at, func(time.Time) { p.ledger.interrupted = true })
	case "end":
		p.item(at, func(time.Time) { p.ledger.endSent = true })
	case "stop", "kill":
		p.asked(at)
		if p.between { // there is no process whose exit would tell
			p.seenExit = true
			p.item(at, func(time.Time) { p.ledger.gaveUp = in.Text })
		}
	case "signal":
		p.asked(at)
		p.item(at, func(time.Time) { p.ledger.signaled = true })
	case "pause", "resume":
		on := in.Kind == "pause"
		p.item(at, func(at time.Time) {
			p.ledger.paused = on
			if on {
				p.emitHost(pluginapi.Paused{}, at)
			} else {
				p.emitHost(pluginapi.Resumed{}, at)
			}
		})
	}
}

var inputKinds = map[string]pb.InputKind{
	"prompt":    pb.InputKind_INPUT_PROMPT,
	"approve":   pb.InputKind_INPUT_APPROVE,
	"deny":      pb.InputKind_INPUT_DENY,
	"answer":    pb.InputKind_INPUT_ANSWER,
	"interrupt": pb.InputKind_INPUT_INTERRUPT,
	"set_model": pb.InputKind_INPUT_SET_MODEL,
	"end":       pb.InputKind_INPUT_END,
	"stop":      pb.InputKind_INPUT_STOP_REQUESTED,
	"kill":      pb.InputKind_INPUT_STOP_REQUESTED,
}

// asked notes that amux has asked for the end, behind all inputs so far.
func (p *pump) asked(at time.Time) {
	n := p.fed
	p.item(at, func(time.Time) {
		if p.ledger.askedAt == 0 {
			p.ledger.askedAt = n
		}
	})
}

func (p *pump) flushLines(at time.Time) {
	if p.stripper != nil {
		p.stdout.Feed(p.stripper.Flush(nil), func(l lines.Line) { p.line(l, "stdout", at) })
	}
	p.stdout.Flush(func(l lines.Line) { p.line(l, "stdout", at) })
	p.stderr.Flush(func(l lines.Line) { p.line(l, "stderr", at) })
}

func (p *pump) line(l lines.Line, stream string, at time.Time) {
	kind := pb.InputKind_INPUT_STDOUT
	if stream == "stderr" {
		kind = pb.InputKind_INPUT_STDERR
		if len(l.Data) > 0 {
			tail := l.Data[max(0, len(l.Data)-stderrTail):]
			kept := append([]byte(nil), tail...)
			p.item(at, func(time.Time) { p.ledger.addStderr(kept) })
		}
	}
	if k := kind - pb.InputKind_INPUT_STDOUT; l.More || p.pieced[k] > 0 {
		if p.pieced[k] += len(l.Data); !l.More {
			p.heavy, p.pieced[k] = max(p.heavy, p.pieced[k]), 0
		}
	}
	in := p.blank()
	in.Kind, in.Data, in.More, in.Discard = kind, l.Data, l.More, l.Discard
	p.input(in, at)
	if l.Discard {
		offset, length := l.Offset, l.Length
		p.item(at, func(at time.Time) {
			p.emitHost(pluginapi.Log{Source: stream, Offset: &offset, Length: &length}, at)
		})
	}
}

// blank is an input to fill in: one that an earlier batch has sent, if there is
// one.
func (p *pump) blank() *pb.Input {
	if l := len(p.batch.Inputs); l < cap(p.batch.Inputs) {
		if in := p.batch.Inputs[:l+1][l]; in != nil {
			in.Id, in.Start, in.Exit = "", nil, nil
			return in
		}
	}
	return new(pb.Input)
}

// input numbers an input and puts it into the batch. It takes no lock: there is
// one for each line.
func (p *pump) input(in *pb.Input, at time.Time) {
	if p.planned = p.planned || in.Kind == pb.InputKind_INPUT_START; !p.planned {
		return // a queued run was stopped: there is nothing that the adapter could make of it
	}
	p.fed++
	if p.conv == nil || p.fed > p.heard {
		return
	}
	if k := len(p.fresh); k > 0 && p.fresh[k-1].time.Equal(at) {
		p.fresh[k-1].n = p.fed
	} else {
		p.fresh = append(p.fresh, stamp{p.fed, at})
	}
	if len(p.batch.Inputs) == 0 {
		p.batch.FirstN = p.fed
	}
	p.batch.Inputs = append(p.batch.Inputs, in)
	p.size += len(in.Data)
	if p.fed >= p.single && p.fed <= p.singleTo {
		_ = p.flush() // the next flush tells the same error
	}
}

// publish tells the receiver of the inputs so far. It is called with mu held.
func (p *pump) publish() {
	p.n = p.fed
	p.stamps = append(p.stamps, p.fresh...)
	p.fresh = p.fresh[:0]
}

// item queues what the host makes of a record, or does it at once if the adapter
// has answered all inputs before it.
func (p *pump) item(at time.Time, do func(time.Time)) {
	p.mu.Lock()
	p.publish()
	p.items = append(p.items, item{p.n, at, do})
	p.due()
	p.mu.Unlock()
}

// flush sends the batch.
func (p *pump) flush() error {
	if len(p.batch.Inputs) == 0 {
		p.mu.Lock()
		p.publish()
		p.advance()
		err := p.broken
		p.mu.Unlock()
		p.perform()
		return err
	}
	if err := p.acquire(); err != nil {
		return err
	}
	last := p.batch.FirstN + uint64(len(p.batch.Inputs)) - 1
	p.mu.Lock()
	p.publish()
	p.sent = append(p.sent, last)
	p.told = last
	p.lineSize, p.heavy = max(p.lineSize, p.heavy), 0
	lineSize := p.lineSize
	p.mu.Unlock()
	p.watchdog.sent(lineSize)
	err := p.conv.Send(&p.batch)
	p.batch.Inputs, p.size = p.batch.Inputs[:0], 0
	if err != nil {
		// The receiver knows why; it is told by the same stream.
		p.mu.Lock()
		for p.broken == nil {
			p.changed.Wait()
		}
		err = p.broken
		p.mu.Unlock()
		return err
	}
	return nil
}

// acquire waits for a place in the window.
func (p *pump) acquire() error {
	select {
	case <-p.stopped:
		return p.failure()
	default:
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-p.stopped:
		return p.failure()
	}
}

// ---- receiving ----

func (p *pump) receive() {
	for !p.heardAll() {
		p.watchdog.waiting()
		resp, err := p.conv.Recv()
		p.watchdog.received()
		if err != nil {
			p.fail(p.conv.Error(err))
			return
		}
		p.mu.Lock()
		err = p.take(resp)
		var effects []effect
		if err == nil {
			p.advance()
			effects, p.effects = p.effects, nil
		}
		p.changed.Broadcast()
		p.mu.Unlock()
		if err != nil {
			p.fail(err)
			return
		}
		for _, e := range effects {
			p.effect(e.output, e.data)
		}
		p.perform()
	}
}

// heardAll reports that the adapter has told all that it is asked for: what it
// does after that, as when it was recorded, is of no matter.
func (p *pump) heardAll() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done >= p.heard
}

// take puts one response into the sequence. An error is the adapter's breach of
// contract, or the disk's.
func (p *pump) take(resp *pb.ConverseResponse) error {
	if resp.Done < p.done || resp.Done > p.told {
		return breach("said that input %d is done", resp.Done)
	}
	if err := p.charge(responseCost); err != nil {
		return err
	}
	whole, stamps := !p.partial, p.stamps // whole: what is in the log's batch is in resp
	for i, out := range resp.Outputs {
		if out.N <= p.done || out.N > p.told {
			return breach("sent an output for input %d, which is not open", out.N)
		}
		if out.N > resp.Done && !p.partial {
			// Should the rest of this input never come, the inputs before it count.
			p.answered(resp.Done)
			p.commit()
			p.partial = true
		}
		p.itemsBefore(out.N)
		if err := p.output(out); err != nil {
			p.retreat()
			if p.stamps = stamps; whole {
				p.keep(resp.Outputs[:i], out.N)
			}
			return err
		}
	}
	p.answered(resp.Done)
	p.partial = p.last.N > p.done
	return nil
}

// keep takes what the inputs before n have given once more, for n's is no good.
func (p *pump) keep(outputs []*pb.Output, n uint64) {
	for _, out := range outputs {
		if out.N > p.done && out.N < n {
			p.itemsBefore(out.N)
			_ = p.output(out) // it was good before
		}
	}
	p.answered(max(p.done, n-1))
	p.commit()
}

// answered notes that the adapter has said all about the inputs up to done.
func (p *pump) answered(done uint64) {
	progress := done > p.done
	if progress {
		p.volume = 0
	}
	p.done = done
	for len(p.stamps) > 1 && p.stamps[0].n <= p.done {
		p.stamps = p.stamps[1:]
	}
	for len(p.sent) > 0 && p.sent[0] <= p.done {
		p.sent = p.sent[1:]
		<-p.slots
	}
	if len(p.sent) == 0 {
		p.lineSize = 0
	}
	p.watchdog.open(len(p.sent), progress)
}

// What a response and an output cost by themselves, in bytes of volume: a flood of
// small ones keeps the host as busy as one of large ones.
const (
	responseCost = 1 << 10
	outputCost   = 64
)

// perByte is what an adapter may make of a byte of a line: every one escaped, and
// room.
const perByte = 8

// charge counts what the adapter makes of one input.
func (p *pump) charge(bytes int) error {
	if p.volume += bytes; p.volume > p.limits.volume+perByte*p.lineSize {
		return breach("made more than %d MiB of one input", p.limits.volume>>20+perByte*p.lineSize>>20)
	}
	return nil
}

func breach(format string, args ...any) error {
	return pluginapi.Errorf(pluginapi.CodePluginCrashed, "broke the contract: it "+format, args...)
}

func (p *pump) output(out *pb.Output) error {
	id := shim.EffectID{N: out.N, K: out.K}
	if first := p.pieces.open; first != nil {
		if id != p.last || out.Kind != first.Kind || out.Type != first.Type {
			return breach("mixed the pieces of two outputs")
		}
	} else if p.last.N != 0 && !id.After(p.last) {
		return breach("sent output %d of input %d out of order", out.K, out.N)
	}
	p.last = id
	if err := p.charge(len(out.Data) + outputCost); err != nil {
		return err
	}
	switch out.Kind {
	case pb.OutputKind_OUTPUT_EVENT:
		if err := p.event(out); err != nil {
			return err
		}
	case pb.OutputKind_OUTPUT_WRITE:
		p.pieces.add(out.Data)
		if p.pieces.size > shim.StdinLimit {
			return breach("wrote more than %d MiB at once", shim.StdinLimit>>20)
		}
		if !out.More {
			p.effects = append(p.effects, effect{out, p.pieces.whole()})
		}
	case pb.OutputKind_OUTPUT_CLOSE_STDIN, pb.OutputKind_OUTPUT_SET_TIMER, pb.OutputKind_OUTPUT_SIGNAL:
		p.effects = append(p.effects, effect{out, nil})
	case pb.OutputKind_OUTPUT_TURN_STARTED:
		p.ledger.turnActive, p.ledger.idle = true, false
	case pb.OutputKind_OUTPUT_IDLE:
		p.ledger.turnActive, p.ledger.idle = false, true
	case pb.OutputKind_OUTPUT_OUTCOME:
		if out.Outcome == nil {
			return breach("sent an outcome that says nothing")
		}
		out.Outcome.Message, out.Outcome.Hint = sanitize(out.Outcome.Message), sanitize(out.Outcome.Hint)
		p.ledger.outcome, p.ledger.outcomeAt = out.Outcome, out.N
		p.ledger.answered = p.ledger.answered || out.Outcome.Code == ""
		p.ledger.turnActive = false
	}
	switch {
	case !out.More:
		p.pieces = pieces{}
	case p.pieces.open == nil:
		p.pieces.open = out
	}
	return nil
}

func (p *pump) event(out *pb.Output) error {
	t := pluginapi.Type(out.Type)
	if p.pieces.open == nil {
		if pluginapi.HostOnly(t) {
			return breach("sent %s, which the host alone writes", t)
		}
		switch t {
		case "session_end":
			p.ledger.sessionOver = true
		case "tool_call_start", "tool_call_ready":
			p.ledger.tooled = true
		case "log":
			if isUnknownLine(out.Data) {
				p.ledger.unknown++
			}
		}
		p.seq++
		if p.seq > p.skip {
			if err := p.log.Begin(out.Type, p.timeOf(out.N)); err != nil {
				return breach("sent an event that is none: %v", err)
			}
		}
	}
	if worded[t] && p.pieces.open == nil && !out.More {
		out.Data = sanitizeStrings(out.Data)
	}
	if p.seq > p.skip {
		err := p.log.Piece(out.Data)
		if err == nil && !out.More {
			err = p.log.End()
		}
		if err != nil {
			return breach("sent a %s event that is none: %v", t, err)
		}
	}
	if !wanted[t] || p.pieces.long {
		return nil
	}
	if out.More || p.pieces.size > 0 {
		if p.pieces.size+len(out.Data) > holdLimit {
			p.pieces.hold, p.pieces.long = nil, true
			if t == "message_stop" {
				p.ledger.text, p.ledger.textLong = "", true // rather none than that of another message
			}
			return nil
		}
	}
	p.pieces.add(out.Data)
	if !out.More {
		p.ledger.learn(t, p.pieces.whole(), p.timeOf(out.N))
	}
	return nil
}

// timeOf is the time of the record that input n came from.
func (p *pump) timeOf(n uint64) time.Time {
	for len(p.stamps) > 1 && p.stamps[0].n < n {
		p.stamps = p.stamps[1:]
	}
	return p.stamps[0].time
}

// itemsBefore does what the host makes of records before input n.
func (p *pump) itemsBefore(n uint64) {
	for len(p.items) > 0 && p.items[0].after < n {
		it := p.items[0]
		p.items = p.items[1:]
		p.undone = append(p.undone, it)
		it.do(it.time)
	}
}

// due does the items whose time has come.
func (p *pump) due() {
	answered := p.done
	if p.conv == nil || p.done >= p.heard {
		answered = p.n
	}
	p.itemsBefore(answered + 1)
}

// advance does what is due, commits, and notes what is to be done now.
func (p *pump) advance() {
	p.due()
	if p.partial {
		return
	}
	if p.live {
		p.todo = append(p.todo, p.act(p)...) // before the events are seen, by whom it may be asked about them
	}
	p.commit()
}

// commit shows the events made so far. On a full disk it waits: the shim, whose
// journal is on the same disk, ends the run when it has waited long enough, and
// what is made of the end is tried last.
func (p *pump) commit() {
	const wait = 45 * time.Second
	for since := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := p.log.Commit(p.before)
		if err == nil {
			p.mark = mark{p.seq, p.done, p.last, p.ledger.clone()}
			p.undone = nil
			if len(p.sent) == 0 {
				p.log.Idle()
			}
			return
		}
		over := p.broken != nil || terminal(p.ledger.state) || p.alone != nil && p.alone()
		if over || time.Since(since) > wait || errors.Is(err, os.ErrClosed) {
			p.breakOff(diskError(err))
			return
		}
	}
}

// emitHost makes an event of the host's own.
func (p *pump) emitHost(payload pluginapi.Payload, at time.Time) {
	if p.mute {
		return
	}
	p.seq++
	if p.seq <= p.skip {
		return
	}
	object, err := pluginapi.AppendPayload(nil, payload)
	if err == nil {
		err = p.log.Add(string(payload.EventType()), at, object)
	}
	if err != nil {
		panic(err) // payloads of the host always encode
	}
}

// stateChanged announces a transition that is in the journal, and the run's end
// with the last one.
func (p *pump) stateChanged(s journal.State, at time.Time) {
	f := &p.ledger
	if f.created.IsZero() {
		f.created = at
	}
	if !terminal(s.To) {
		f.state = s.To
		p.emitHost(pluginapi.RunState{From: s.From, To: s.To, Reason: s.Reason}, at)
		return
	}
	f.ended = at
	if p.mute {
		p.mute, p.seq = false, p.skip
	}
	p.endSession(at)
	var exitCode *int
	signal := ""
	if f.exit != nil {
		signal = f.exit.Signal
		if signal == "" {
			exitCode = &f.exit.Code
		}
	}
	switch {
	case s.To == stateTimedOut && s.Reason == "inactivity":
		p.emitHost(pluginapi.Timeout{Kind: "inactivity"}, at)
	case s.To == stateTimedOut:
		p.emitHost(pluginapi.Timeout{Kind: "run"}, at)
	case s.To == stateCanceled:
		p.emitHost(pluginapi.Aborted{}, at)
	case pluginapi.Code(s.Code) == pluginapi.CodeTurnLimit:
		p.emitHost(pluginapi.TurnLimit{MaxTurns: int(p.start.GetOptions().GetMaxTurns())}, at)
	case pluginapi.Code(s.Code) == pluginapi.CodeAgentCrash:
		p.emitHost(pluginapi.Crash{ExitCode: exitCode, Signal: signal, Stderr: sanitize(f.stderrText())}, at)
	}
	p.emitHost(pluginapi.RunState{From: s.From, To: s.To, Reason: s.Reason}, at)
	f.state = s.To
	hint := s.Hint
	if hint == pluginapi.Code(s.Code).Info().Hint {
		hint = ""
	}
	p.emitHost(pluginapi.RunEnd{
		State: s.To, Reason: s.Reason, Code: pluginapi.Code(s.Code), Message: s.Msg, Hint: hint,
		ExitCode: exitCode, Signal: signal, SessionID: f.session, Turns: f.turns,
		Tokens: f.tokens, Cost: f.cost, DurationMS: at.Sub(f.created).Milliseconds(), UnknownLines: f.unknown,
	}, at)
}

// lost notes that records are missing. The log may have events that were made of
// them: what follows comes behind those.
func (p *pump) lost(damage *journal.Damage, at time.Time) {
	p.ledger.damage = damage
	p.mute, p.seq = false, max(p.seq, p.skip)
	p.emitHost(pluginapi.ErrorEvent{
		Code: pluginapi.CodeRecordDamaged, Message: damage.Error() + "; what was left is kept in " + damage.Kept,
		Hint: pluginapi.CodeRecordDamaged.Info().Hint,
	}, at)
}

// endSession tells the end of a session of which the adapter has not.
func (p *pump) endSession(at time.Time) {
	f := &p.ledger
	if f.session != "" && f.spawned && !f.sessionOver {
		p.emitHost(pluginapi.SessionEnd{SessionID: f.session, TurnCount: f.turns, Cost: f.cost}, at)
	}
}

// deafen lets the pump go on without the adapter, from where it last committed:
// outputs of inputs that were not finished are forgotten, and what the host made
// of records since then is made again.
func (p *pump) deafen() {
	p.mu.Lock()
	p.conv, p.broken, p.stopped = nil, nil, make(chan struct{})
	p.retreat()
	p.mu.Unlock()
	p.batch.Inputs, p.size = nil, 0
}

// retreat goes back to the mark. What was done of records since then is queued
// again.
func (p *pump) retreat() {
	p.partial, p.effects, p.pieces = false, nil, pieces{}
	p.log.Rollback()
	p.skip = max(p.skip, p.log.Count())
	p.seq, p.done, p.last, p.ledger = p.mark.seq, p.mark.done, p.mark.last, p.mark.ledger.clone()
	p.items = append(p.undone, p.items...)
	p.undone = nil
}

// watchdog says when a plugin has held an input for too long. It runs only while the
// host waits for an answer, so that a slow consumer is not taken for a slow plugin,
// and it counts on until an input is done: answers that finish none are no progress.
type watchdog struct {
	limit time.Duration

	mu       sync.Mutex
	fire     func()
	timer    *time.Timer // looks after the watchdog from time to time, which costs less than to set it for each batch
	armed    bool
	since    time.Time     // when the wait began, while it runs
	spent    time.Duration // waited before that, since the last progress
	lineSize int           // bytes of the longest line in pieces, for which there is more time
	batches  int
	inRecv   bool
	stopped  bool
}

// onEnd says what is done when the time is over.
func (c *watchdog) onEnd(fire func()) { c.change(func() { c.fire = fire }) }

func (c *watchdog) sent(lineSize int) { c.change(func() { c.batches++; c.lineSize = lineSize }) }
func (c *watchdog) waiting()          { c.change(func() { c.inRecv = true }) }
func (c *watchdog) received()         { c.change(func() { c.inRecv = false }) }
func (c *watchdog) running() bool     { return c.batches > 0 && c.inRecv && !c.stopped }

// open says how many batches are unanswered, and whether an input was done.
func (c *watchdog) open(n int, progress bool) {
	c.change(func() {
		c.batches = n
		if progress {
			c.spent = 0
		}
	})
}

// lineTime is how much longer a long line may take.
const lineTime = time.Second / (16 << 20) // for each byte

// left is what remains, while it runs.
func (c *watchdog) left() time.Duration {
	return c.limit + time.Duration(c.lineSize)*lineTime - c.spent - time.Since(c.since)
}

// stalled is how long the plugin was waited for since the last progress.
func (c *watchdog) stalled() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running() {
		return c.spent + time.Since(c.since)
	}
	return c.spent
}

func (c *watchdog) stop() {
	c.change(func() {
		c.stopped = true
		if c.timer != nil {
			c.timer.Stop() // it holds the run
		}
	})
}

func (c *watchdog) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.running()
	f()
	switch now := c.running(); {
	case before && !now:
		c.spent += time.Since(c.since)
	case now && !before:
		c.since = time.Now()
		if !c.armed {
			c.arm(c.left())
		}
	}
}

func (c *watchdog) arm(after time.Duration) {
	c.armed = true
	if c.timer == nil {
		c.timer = time.AfterFunc(after, c.look)
	} else {
		c.timer.Reset(after)
	}
}

func (c *watchdog) look() {
	c.mu.Lock()
	c.armed = false
	fire := func() {}
	if c.running() {
		if left := c.left(); left > 0 {
			c.arm(left)
		} else {
			fire = c.fire
		}
	}
	c.mu.Unlock()
	fire()
}

func diskError(err error) error {
	hint := pluginapi.CodeDiskFull.Info().Hint
	if isFileLimit(err) {
		hint = "this process may not write larger files: raise ulimit -f"
	}
	return pluginapi.Errorf(pluginapi.CodeDiskFull, "write the run's events: %w", err).WithHint("%s", hint)
}
