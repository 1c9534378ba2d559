package engine

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/lines"
	"github.com/amux-dev/amux/internal/vt"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
)

const (
	// A batch is what one read of the journal gave, up to these.
	batchInputs = 1024
	batchBytes  = 256 << 10
)

// feeder reads records, sends inputs to the adapter and queues what the host makes of
// records. It is for the one goroutine that runs the pass.
type feeder struct {
	p        *pass
	reader   *journal.Reader
	stripper *vt.Stripper // of stdout, while the agent is on a terminal
	stdout   lines.Splitter
	stderr   lines.Splitter
	batch    pb.ConverseRequest
	size     int
	fed      uint64        // the last input's number
	fresh    []stamp       // of inputs that are not in the order yet
	pieced   [2]int        // bytes of the lines that are coming in pieces: stdout, stderr
	longest  int           // the longest line in pieces that ends in the batch
	slots    chan struct{} // one for each batch that is not answered
	// The inputs after single, up to singleTo, are in a batch of their own each.
	single, singleTo uint64

	ended     bool           // the run's processes are gone, as far as was read
	retry     *journal.Retry // of the attempt that is read, if it is not the first
	begun     bool           // the adapter knows of the run
	unspawned bool           // there was no spawn yet, or none since the last exit
}

func newFeeder(p *pass, reader *journal.Reader, r Reading) feeder {
	splitter := lines.Splitter{Piece: pluginapi.PieceSize, Limit: pluginapi.MaxLine}
	return feeder{
		p: p, reader: reader, stdout: splitter, stderr: splitter, slots: make(chan struct{}, Window),
		single: r.After, singleTo: r.UpTo, unspawned: true,
	}
}

func (f *feeder) feed(ctx context.Context) error {
	p, src := f.p, f.p.cfg.Journal
	for {
		limit := src.Committed()
		if err := f.read(limit); err != nil {
			return err
		}
		if f.reader.Offset() >= p.target {
			p.goLive()
		}
		if p.over() {
			return nil
		}
		if f.ended && p.cfg.Effects != nil {
			if err := p.settle(); err != nil {
				return err
			}
			if p.over() {
				return nil // a host that died had recorded the end
			}
			p.perform()
			// The end begins where the last transition ends. As long as the shim lives, its
			// clients can record faster than this reads.
			if p.settled != nil && src.Committed() > limit {
				continue
			}
			if err := p.conclude(); err != nil {
				return err
			}
			continue
		}
		f.rest()
		p.mu.Lock()
		p.events.log.Idle()
		p.mu.Unlock()
		if err := src.Wait(ctx); err != nil {
			if errors.Is(err, ErrShimGone) {
				f.ended = true
				continue
			}
			if errors.Is(err, io.EOF) {
				if src.Committed() > limit {
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

// rest gives back what an idle run does not need: all but the room for a few lines, for a
// run that says one now and then.
func (f *feeder) rest() {
	const few = 4
	if cap(f.batch.Inputs) > few {
		f.batch.Inputs = nil
	}
	for _, in := range f.batch.Inputs[:cap(f.batch.Inputs)] {
		if in != nil {
			in.Data = nil // part of the buffer that the reader gives back
		}
	}
	f.reader.Release()
}

// read feeds the records up to an offset.
func (f *feeder) read(limit int64) error {
	for {
		if !f.reader.Ready(limit) || len(f.batch.Inputs) >= batchInputs || f.size >= batchBytes {
			// Inputs point into the reader's buffer, which the next read
			// overwrites.
			if err := f.flush(); err != nil {
				return err
			}
		}
		rec, err := f.reader.Next(limit)
		if errors.Is(err, io.EOF) || errors.Is(err, journal.ErrTorn) {
			return f.flush()
		}
		if damage, ok := errors.AsType[*journal.Damage](err); ok {
			return f.damaged(damage)
		}
		if err != nil {
			return err
		}
		if err := f.record(rec); err != nil {
			return err
		}
	}
}

// damaged ends what can be told of a journal, once all before the damage is.
func (f *feeder) damaged(d *journal.Damage) error {
	if err := f.flush(); err != nil {
		return err
	}
	if err := f.p.settle(); err != nil {
		return err
	}
	return pluginapi.Errorf(pluginapi.CodeRecordDamaged, "%w", d)
}

// record makes inputs and host items of one record.
func (f *feeder) record(rec journal.Record) error {
	p, l := f.p, &f.p.ledger
	switch rec.Kind {
	case journal.KindStdout:
		text := rec.Payload
		if f.stripper != nil {
			text = f.stripper.Append(nil, text)
		}
		f.stdout.Feed(text, func(l lines.Line) { f.line(l, "stdout", rec.Time) })
	case journal.KindStderr:
		f.stderr.Feed(rec.Payload, func(l lines.Line) { f.line(l, "stderr", rec.Time) })
	case journal.KindState:
		var s journal.State
		if err := rec.Decode(&s); err != nil {
			return err
		}
		if Terminal(s.To) {
			f.flushLines(rec.Time)
		}
		f.item(rec.Time, func(at time.Time) { p.stateChanged(s, at) })
	case journal.KindPlan:
		var plan journal.Plan
		if err := rec.Decode(&plan); err != nil {
			return err
		}
		f.plan(&plan, rec.Time)
	case journal.KindSpawned:
		f.unspawned = false
		f.item(rec.Time, func(time.Time) { l.spawned, l.retry = true, nil })
	case journal.KindRetry:
		var retry journal.Retry
		if err := rec.Decode(&retry); err != nil {
			return err
		}
		f.ended, f.unspawned, f.retry = false, true, &retry
		f.item(rec.Time, func(at time.Time) {
			p.endSession(at)
			l.again(&retry)
			p.events.emit(pluginapi.Retry{
				Attempt: retry.Attempt, MaxAttempts: &retry.MaxAttempts, Reason: retry.Msg, DelayMS: &retry.DelayMS, Code: pluginapi.Code(retry.Code),
			}, at)
		})
	case journal.KindSpawnFailed:
		var failed journal.SpawnFailed
		if err := rec.Decode(&failed); err != nil {
			return err
		}
		f.input(&pb.Input{Kind: pb.InputKind_INPUT_SPAWN_FAILED, Data: []byte(failed.Error)}, rec.Time)
		f.item(rec.Time, func(time.Time) { l.spawnFailed = &failed })
		f.ended, f.unspawned = true, false
	case journal.KindInput:
		var in journal.Input
		if err := rec.Decode(&in); err != nil {
			return err
		}
		f.userInput(in, rec.Time)
	case journal.KindTimer:
		var timer journal.Timer
		if err := rec.Decode(&timer); err != nil {
			return err
		}
		f.input(&pb.Input{Kind: pb.InputKind_INPUT_TIMER, Id: timer.ID}, rec.Time)
	case journal.KindTimeout:
		var timeout journal.Timeout
		if err := rec.Decode(&timeout); err != nil {
			return err
		}
		f.input(&pb.Input{Kind: pb.InputKind_INPUT_TIMEOUT, Id: timeout.Kind}, rec.Time)
		f.asked(rec.Time)
	case journal.KindCollected:
		var c journal.Collected
		if err := rec.Decode(&c); err != nil {
			return err
		}
		f.input(&pb.Input{Kind: pb.InputKind_INPUT_COLLECTED, Id: c.Path, Data: c.Content}, rec.Time)
	case journal.KindExit:
		var exit journal.Exit
		if err := rec.Decode(&exit); err != nil {
			return err
		}
		f.exit(&exit, rec.Time)
	case journal.KindDamage:
		var damage journal.Damage
		if err := rec.Decode(&damage); err != nil {
			return err
		}
		f.item(rec.Time, func(at time.Time) { p.recordsLost(&damage, at) })
	case journal.KindBudget:
		var budget journal.Budget
		if err := rec.Decode(&budget); err != nil {
			return err
		}
		f.asked(rec.Time)
		f.item(rec.Time, func(time.Time) {
			if l.budget == nil {
				l.budget = &budget
			}
		})
	case journal.KindPreview:
		var preview journal.Preview
		if err := rec.Decode(&preview); err != nil {
			return err
		}
		f.item(rec.Time, func(at time.Time) {
			if event, waits := l.questions.preview(&preview); waits && !Terminal(l.state) {
				p.events.emit(event, at)
			}
		})
	case journal.KindFault:
		var fault journal.Fault
		if err := rec.Decode(&fault); err != nil {
			return err
		}
		f.item(rec.Time, func(at time.Time) {
			if Terminal(l.state) {
				return // the adapter broke off at the last line, which ends with the run: nothing follows run_end
			}
			l.fault = &fault
			p.events.emit(pluginapi.ErrorEvent{
				Code: pluginapi.Code(fault.Code), Message: fault.Msg, Hint: fault.Hint,
			}, at)
		})
	}
	return nil
}

// plan begins an attempt.
func (f *feeder) plan(plan *journal.Plan, at time.Time) {
	f.stripper = nil
	if plan.PTY {
		f.stripper = &vt.Stripper{}
	}
	run := f.p.cfg.Start
	f.input(&pb.Input{Kind: pb.InputKind_INPUT_START, Start: &pb.Start{
		Agent: run.GetAgent(), Options: OptionsOf(run.GetOptions(), f.retry), State: plan.State, SessionId: plan.SessionID,
		Attempt: uint32(plan.Attempt), Cwd: plan.Cwd, ProgramVersion: plan.Version,
		Flags: flagsOf(plan.Args),
	}}, at)
	l := &f.p.ledger
	f.item(at, func(at time.Time) {
		l.number, l.spawn = plan.Attempt, plan.Spawn
		if plan.SessionID != "" && (l.session == "" || plan.Attempt > 1) {
			l.session, l.sessionOver = plan.SessionID, false
		}
		for _, w := range plan.Warnings {
			f.p.events.emit(pluginapi.Debug{Level: "warn", Message: w}, at)
		}
	})
}

// exit is the end of an attempt's processes.
func (f *feeder) exit(exit *journal.Exit, at time.Time) {
	f.flushLines(at)
	f.input(&pb.Input{Kind: pb.InputKind_INPUT_EXIT, Exit: &pb.Exit{
		Code: int32(exit.Code), Signal: exit.Signal, Asked: exit.Reason != "",
	}}, at)
	f.item(at, func(at time.Time) {
		f.p.ledger.exit = exit
		if exit.Survivors != "" {
			f.p.events.emit(pluginapi.Debug{Level: "warn", Message: "the run has ended, but amux could not end this: " + exit.Survivors}, at)
		}
	})
	f.ended = true
}

func (f *feeder) userInput(in journal.Input, at time.Time) {
	kind, ok := inputKinds[in.Kind]
	if ok && in.Kind != code.InputPrompt {
		data := []byte(in.Text)
		if in.Kind == code.InputApprove {
			data = in.Data
		}
		f.input(&pb.Input{Kind: kind, Id: in.ID, Data: data}, at)
	}
	l := &f.p.ledger
	switch in.Kind {
	case code.InputPrompt:
		// The message comes before what the adapter makes of it.
		f.item(at, func(at time.Time) {
			l.prompt()
			f.p.events.emit(pluginapi.UserMessage{ID: in.ID, Text: in.Text}, at)
		})
		f.input(&pb.Input{Kind: kind, Id: in.ID, Data: []byte(in.Text)}, at)
	case code.InputApprove, code.InputDeny, code.InputAnswer:
		f.item(at, func(time.Time) {
			l.questions.Close(in.ID)
			l.decided(in)
		})
	case code.InputSetApprove:
		f.item(at, func(at time.Time) {
			l.decided(in)
			f.p.events.emit(pluginapi.ApprovalsChanged{Approve: in.Text}, at)
		})
	case code.InputInterrupt:
		f.item(at, func(time.Time) { l.interrupted, l.cutOff = true, l.cutOff || in.By == byHost })
	case code.InputEnd:
		f.item(at, func(time.Time) { l.endSent = true })
	case code.InputStop, code.InputKill:
		f.asked(at)
		if f.unspawned { // there is no process whose exit would tell
			f.ended = true
			f.item(at, func(time.Time) { l.gaveUp = journal.EndReason(in.Text) })
		}
	case code.InputSignal:
		f.asked(at)
		f.item(at, func(time.Time) { l.signaled = true })
	case code.InputPause, code.InputResume:
		on := in.Kind == code.InputPause
		f.item(at, func(at time.Time) {
			if l.paused = on; on {
				f.p.events.emit(pluginapi.Paused{}, at)
			} else {
				f.p.events.emit(pluginapi.Resumed{}, at)
			}
		})
	}
}

var inputKinds = map[string]pb.InputKind{
	code.InputPrompt:    pb.InputKind_INPUT_PROMPT,
	code.InputApprove:   pb.InputKind_INPUT_APPROVE,
	code.InputDeny:      pb.InputKind_INPUT_DENY,
	code.InputAnswer:    pb.InputKind_INPUT_ANSWER,
	code.InputInterrupt: pb.InputKind_INPUT_INTERRUPT,
	code.InputSetModel:  pb.InputKind_INPUT_SET_MODEL,
	code.InputEnd:       pb.InputKind_INPUT_END,
	code.InputStop:      pb.InputKind_INPUT_STOP_REQUESTED,
	code.InputKill:      pb.InputKind_INPUT_STOP_REQUESTED,
}

// asked notes that amux has asked for the end, behind all inputs so far.
func (f *feeder) asked(at time.Time) {
	n, l := f.fed, &f.p.ledger
	f.item(at, func(time.Time) {
		if l.askedAt == 0 {
			l.askedAt = n
		}
	})
}

func (f *feeder) flushLines(at time.Time) {
	if f.stripper != nil {
		f.stdout.Feed(f.stripper.Flush(nil), func(l lines.Line) { f.line(l, "stdout", at) })
	}
	f.stdout.Flush(func(l lines.Line) { f.line(l, "stdout", at) })
	f.stderr.Flush(func(l lines.Line) { f.line(l, "stderr", at) })
}

func (f *feeder) line(l lines.Line, stream string, at time.Time) {
	kind := pb.InputKind_INPUT_STDOUT
	if stream == "stderr" {
		kind = pb.InputKind_INPUT_STDERR
		if len(l.Data) > 0 {
			tail := l.Data[max(0, len(l.Data)-stderrTail):]
			kept := append([]byte(nil), tail...)
			f.item(at, func(time.Time) { f.p.ledger.addStderr(kept) })
		}
	}
	if k := kind - pb.InputKind_INPUT_STDOUT; l.More || f.pieced[k] > 0 {
		if f.pieced[k] += len(l.Data); !l.More {
			f.longest, f.pieced[k] = max(f.longest, f.pieced[k]), 0
		}
	}
	in := f.blank()
	in.Kind, in.Data, in.More, in.Discard = kind, l.Data, l.More, l.Discard
	f.input(in, at)
	if l.Discard {
		offset, length := l.Offset, l.Length
		f.item(at, func(at time.Time) {
			f.p.events.emit(pluginapi.Log{Source: stream, Offset: &offset, Length: &length}, at)
		})
	}
}

// blank is an input to fill in: one that an earlier batch has sent, if there is
// one.
func (f *feeder) blank() *pb.Input {
	if l := len(f.batch.Inputs); l < cap(f.batch.Inputs) {
		if in := f.batch.Inputs[:l+1][l]; in != nil {
			in.Id, in.Start, in.Exit = "", nil, nil
			return in
		}
	}
	return new(pb.Input)
}

// input numbers an input and puts it into the batch. It takes no lock: there is
// one for each line.
func (f *feeder) input(in *pb.Input, at time.Time) {
	if f.begun = f.begun || in.Kind == pb.InputKind_INPUT_START; !f.begun {
		return // a queued run was stopped: there is nothing that the adapter could make of it
	}
	f.fed++
	if f.p.conv == nil || f.fed > f.p.heard {
		return
	}
	if k := len(f.fresh); k > 0 && f.fresh[k-1].time.Equal(at) {
		f.fresh[k-1].n = f.fed
	} else {
		f.fresh = append(f.fresh, stamp{f.fed, at})
	}
	if len(f.batch.Inputs) == 0 {
		f.batch.FirstN = f.fed
	}
	f.batch.Inputs = append(f.batch.Inputs, in)
	f.size += len(in.Data)
	if f.fed >= f.single && f.fed <= f.singleTo {
		_ = f.flush() // the next flush tells the same error
	}
}

// publish tells the receiver of the inputs so far. It is called with mu held.
func (f *feeder) publish() {
	f.p.order.fed(f.fed, f.fresh)
	f.fresh = f.fresh[:0]
}

// item queues what the host makes of a record, or does it at once if the adapter
// has answered all inputs before it.
func (f *feeder) item(at time.Time, do func(time.Time)) {
	f.p.mu.Lock()
	f.publish()
	f.p.order.add(at, do)
	f.p.due()
	f.p.mu.Unlock()
}

// flush sends the batch.
func (f *feeder) flush() error {
	p := f.p
	if len(f.batch.Inputs) == 0 {
		p.mu.Lock()
		f.publish()
		p.advance()
		err := p.broken
		p.mu.Unlock()
		p.perform()
		return err
	}
	if err := f.acquire(); err != nil {
		return err
	}
	last := f.batch.FirstN + uint64(len(f.batch.Inputs)) - 1
	p.mu.Lock()
	f.publish()
	p.order.open.add(last)
	p.order.sent = last
	lineSize := p.receiver.longLine(f.longest)
	f.longest = 0
	p.mu.Unlock()
	p.watchdog.sent(lineSize)
	err := p.conv.Send(&f.batch)
	f.batch.Inputs, f.size = f.batch.Inputs[:0], 0
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

// drop forgets the batch.
func (f *feeder) drop() { f.batch.Inputs, f.size = nil, 0 }

// acquire waits for a place in the window.
func (f *feeder) acquire() error {
	select {
	case <-f.p.stopped:
		return f.p.failure()
	default:
	}
	select {
	case f.slots <- struct{}{}:
		return nil
	case <-f.p.stopped:
		return f.p.failure()
	}
}

// release gives places in the window back.
func (f *feeder) release(batches int) {
	for range batches {
		<-f.slots
	}
}
