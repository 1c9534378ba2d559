package engine

import (
	"slices"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
)

// receiver takes what the adapter says, and checks it against the contract. An error of
// its methods is the adapter's breach of it, or the disk's.
type receiver struct {
	p        *pass
	last     EffectID // of the last output
	pieces   pieces
	partial  bool // outputs of an input that is not done are in the log's batch
	volume   int  // bytes of outputs, and of what carries them, since an input was done
	lineSize int  // the longest line in pieces that may not be done
	effects  []effect
}

// effect is an output that is carried out once what comes before it is in the log.
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

// receive is the receiver's goroutine.
func (r *receiver) receive() {
	p := r.p
	for !r.heardAll() {
		p.watchdog.waiting()
		resp, err := p.conv.Recv()
		p.watchdog.received()
		if err != nil {
			p.fail(p.conv.Error(err))
			return
		}
		p.mu.Lock()
		err = r.take(resp)
		var effects []effect
		if err == nil {
			p.advance()
			effects, r.effects = r.effects, nil
			p.carrying = len(effects) > 0
		}
		p.changed.Broadcast()
		p.mu.Unlock()
		if err != nil {
			p.fail(err)
			return
		}
		for _, e := range effects {
			p.effect(e)
		}
		if len(effects) > 0 {
			p.mu.Lock()
			p.carrying = false
			p.changed.Broadcast()
			p.mu.Unlock()
		}
		p.perform()
	}
}

// heardAll reports that the adapter has told all that it is asked for: what it
// does after that, as when it was recorded, is of no matter.
func (r *receiver) heardAll() bool {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	return r.p.order.done >= r.p.heard
}

// take puts one response into the sequence.
func (r *receiver) take(resp *pb.ConverseResponse) error {
	p, o := r.p, &r.p.order
	if resp.Done < o.done || resp.Done > o.sent {
		return breach("said that input %d is done", resp.Done)
	}
	if err := r.charge(responseCost); err != nil {
		return err
	}
	whole, stamps := !r.partial, o.stamps // whole: what is in the log's batch is in resp
	for i, out := range resp.Outputs {
		if out.N <= o.done || out.N > o.sent {
			return breach("sent an output for input %d, which is not open", out.N)
		}
		if out.N > resp.Done && !r.partial {
			// Should the rest of this input never come, the inputs before it count.
			r.answered(resp.Done)
			p.commit()
			r.partial = true
		}
		o.before(out.N)
		if err := r.output(out); err != nil {
			p.retreat()
			if o.stamps = stamps; whole {
				r.keep(resp.Outputs[:i], out.N)
			}
			return err
		}
	}
	r.answered(resp.Done)
	r.partial = r.last.N > o.done
	return nil
}

// keep takes what the inputs before n have given once more, for n's is no good.
func (r *receiver) keep(outputs []*pb.Output, n uint64) {
	for _, out := range outputs {
		if out.N > r.p.order.done && out.N < n {
			r.p.order.before(out.N)
			_ = r.output(out) // it was good before
		}
	}
	r.answered(max(r.p.order.done, n-1))
	r.p.commit()
}

// answered notes that the adapter has said all about the inputs up to done.
func (r *receiver) answered(done uint64) {
	p := r.p
	progress := done > p.order.done
	if progress {
		r.volume = 0
	}
	p.feeder.release(p.order.answered(done))
	if p.order.open.len() == 0 {
		r.lineSize = 0
	}
	p.watchdog.open(p.order.open.len(), progress)
}

// longLine notes a line in pieces that is sent, and returns the size of the longest
// that may not be done.
func (r *receiver) longLine(size int) int {
	r.lineSize = max(r.lineSize, size)
	return r.lineSize
}

// reset forgets what was not committed.
func (r *receiver) reset(last EffectID) {
	r.partial, r.effects, r.pieces, r.last = false, nil, pieces{}, last
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
func (r *receiver) charge(bytes int) error {
	limit := r.p.cfg.Limits.Volume
	if r.volume += bytes; r.volume > limit+perByte*r.lineSize {
		return breach("made more than %d MiB of one input", limit>>20+perByte*r.lineSize>>20)
	}
	return nil
}

func (r *receiver) output(out *pb.Output) error {
	id := EffectID{N: out.N, K: out.K}
	if first := r.pieces.open; first != nil {
		if id != r.last || out.Kind != first.Kind || out.Type != first.Type {
			return breach("mixed the pieces of two outputs")
		}
	} else if r.last.N != 0 && !id.After(r.last) {
		return breach("sent output %d of input %d out of order", out.K, out.N)
	}
	r.last = id
	if err := r.charge(len(out.Data) + outputCost); err != nil {
		return err
	}
	l := &r.p.ledger
	switch out.Kind {
	case pb.OutputKind_OUTPUT_EVENT:
		if err := r.event(out); err != nil {
			return err
		}
	case pb.OutputKind_OUTPUT_WRITE:
		r.pieces.add(out.Data)
		if limit := r.p.cfg.Limits.Stdin; r.pieces.size > limit {
			return breach("wrote more than %d MiB at once", limit>>20)
		}
		if !out.More {
			r.effects = append(r.effects, effect{out, r.pieces.whole()})
		}
	case pb.OutputKind_OUTPUT_CLOSE_STDIN, pb.OutputKind_OUTPUT_SET_TIMER, pb.OutputKind_OUTPUT_SIGNAL:
		r.effects = append(r.effects, effect{out, nil})
	case pb.OutputKind_OUTPUT_TURN_STARTED:
		l.turnActive, l.idle = true, false
	case pb.OutputKind_OUTPUT_IDLE:
		l.turnActive, l.idle = false, true
	case pb.OutputKind_OUTPUT_OUTCOME:
		if out.Outcome == nil {
			return breach("sent an outcome that says nothing")
		}
		out.Outcome.Message, out.Outcome.Hint = sanitize(out.Outcome.Message), sanitize(out.Outcome.Hint)
		l.outcome, l.outcomeAt = out.Outcome, out.N
		l.workDone = l.workDone || out.Outcome.Code == ""
		l.turnActive = false
	}
	switch {
	case !out.More:
		r.pieces = pieces{}
	case r.pieces.open == nil:
		r.pieces.open = out
	}
	return nil
}

func (r *receiver) event(out *pb.Output) error {
	p, l := r.p, &r.p.ledger
	t := pluginapi.Type(out.Type)
	if r.pieces.open == nil {
		if pluginapi.HostOnly(t) {
			return breach("sent %s, which the host alone writes", t)
		}
		switch t {
		case code.EventSessionEnd:
			l.sessionOver = true
		case code.EventToolCallStart, code.EventToolCallReady:
			l.tooled = true
		case code.EventLog:
			if isUnknownLine(out.Data) {
				l.unknown++
			}
		}
		if err := p.events.begin(out.Type, p.order.timeOf(out.N)); err != nil {
			return breach("sent a malformed event: %v", err)
		}
	}
	if worded[t] && r.pieces.open == nil && !out.More {
		out.Data = sanitizeStrings(out.Data)
	}
	if err := p.events.piece(out.Data, out.More); err != nil {
		return breach("sent a malformed %s event: %v", t, err)
	}
	if !wanted[t] || r.pieces.long {
		return nil
	}
	if out.More || r.pieces.size > 0 {
		if r.pieces.size+len(out.Data) > holdLimit {
			r.pieces.hold, r.pieces.long = nil, true
			if t == code.EventMessageStop {
				l.text, l.textLong = "", true // rather none than that of another message
			}
			return nil
		}
	}
	r.pieces.add(out.Data)
	if !out.More {
		l.learn(t, r.pieces.whole())
	}
	return nil
}
