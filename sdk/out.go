package sdk

import (
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Out collects the outputs of one input, in order. Everything handed to it is
// copied, so the caller may reuse its buffers at once.
type Out struct {
	outputs []*pb.Output
	// arena holds the data of the outputs, so that an event costs no allocation
	// of its own. Slices into an arena that append has moved stay valid.
	arena []byte
	size  int // bytes of all data in outputs
	n     uint64
	k     uint32
	err   error
	// sender, if there is one, sends outputs before their input is done.
	sender *run
}

// outs holds the buffers of streams between batches: an idle run has none.
var outs = sync.Pool{New: func() any { return new(Out) }}

// Bounds of what an Out keeps for reuse; one huge line must not stay forever.
const (
	keepArena   = 512 << 10
	keepOutputs = 2 * maxOutputs
)

// N is the number of the input being handled, unique in its run: the thing to
// make ids from.
func (o *Out) N() uint64 { return o.n }

// Event emits an event.
func (o *Out) Event(p pluginapi.Payload) {
	start := len(o.arena)
	arena, err := pluginapi.AppendPayload(o.arena, p)
	if err != nil {
		o.err = err
		return
	}
	o.arena = arena
	o.addPieces(pb.OutputKind_OUTPUT_EVENT, string(p.EventType()), arena[start:])
}

// RawEvent emits an event whose JSON object the caller has already made. The
// object is not checked: it MUST be valid JSON.
func (o *Out) RawEvent(t pluginapi.Type, object []byte) {
	o.addPieces(pb.OutputKind_OUTPUT_EVENT, string(t), o.keep(object))
}

// Log emits a line that is no event of the agent's protocol. source is "stdout"
// or "stderr".
func (o *Out) Log(source string, line []byte) {
	start := len(o.arena)
	o.arena = append(o.arena, `{"source":`...)
	o.arena = pluginapi.AppendString(o.arena, source)
	o.arena = append(o.arena, `,"line":`...)
	o.arena = pluginapi.AppendString(o.arena, string(line))
	o.arena = append(o.arena, '}')
	o.addPieces(pb.OutputKind_OUTPUT_EVENT, code.EventLog, o.arena[start:])
}

// Write sends bytes to the agent's stdin.
func (o *Out) Write(data []byte) {
	if len(data) > 0 {
		o.addPieces(pb.OutputKind_OUTPUT_WRITE, "", o.keep(data))
	}
}

// CloseStdin closes the agent's stdin after all writes.
func (o *Out) CloseStdin() { o.add(pb.OutputKind_OUTPUT_CLOSE_STDIN) }

// SetTimer asks for an INPUT_TIMER of that id after d; 0 cancels it. A duration
// below a millisecond is one millisecond.
func (o *Out) SetTimer(id string, d time.Duration) {
	output := o.add(pb.OutputKind_OUTPUT_SET_TIMER)
	output.Id = validText(id)
	if d > 0 {
		output.Millis = max(1, uint64(d.Milliseconds()))
	}
}

// TurnStarted says that the agent works on a prompt.
func (o *Out) TurnStarted() { o.add(pb.OutputKind_OUTPUT_TURN_STARTED) }

// Idle says that the agent has finished its turn and waits for a prompt.
func (o *Out) Idle() { o.add(pb.OutputKind_OUTPUT_IDLE) }

// Outcome says how the run went as far as the agent tells; an empty code is
// success. The last outcome of a run wins.
func (o *Out) Outcome(outcome *pluginapi.Outcome) {
	outcome = proto.CloneOf(outcome)
	makeValid(outcome.ProtoReflect()) // its message may quote the agent
	o.add(pb.OutputKind_OUTPUT_OUTCOME).Outcome = outcome
}

// Signal asks for a signal to the agent's main process: "SIGINT".
func (o *Out) Signal(name string) { o.add(pb.OutputKind_OUTPUT_SIGNAL).Id = validText(name) }

// keep copies data into the arena.
func (o *Out) keep(data []byte) []byte {
	start := len(o.arena)
	o.arena = append(o.arena, data...)
	return o.arena[start:]
}

func (o *Out) add(kind pb.OutputKind) *pb.Output {
	output := o.next(kind)
	o.k++
	return output
}

// addPieces adds data in pieces that fit a message; all have the same (n, k).
func (o *Out) addPieces(kind pb.OutputKind, eventType string, data []byte) {
	o.size += len(data)
	eventType = validText(eventType)
	for len(data) > pluginapi.PieceSize {
		cut := runeStart(data, pluginapi.PieceSize)
		output := o.next(kind)
		output.Type, output.Data, output.More = eventType, data[:cut:cut], true
		data = data[cut:]
	}
	output := o.add(kind)
	output.Type, output.Data = eventType, data[:len(data):len(data)]
}

// next appends an output, one that an earlier batch has used if there is one.
func (o *Out) next(kind pb.OutputKind) *pb.Output {
	var output *pb.Output
	if l := len(o.outputs); l < cap(o.outputs) {
		o.outputs = o.outputs[:l+1]
		if output = o.outputs[l]; output == nil {
			output = new(pb.Output)
			o.outputs[l] = output
		} else {
			output.Reset()
		}
	} else {
		output = new(pb.Output)
		o.outputs = append(o.outputs, output)
	}
	output.N, output.K, output.Kind = o.n, o.k, kind
	return output
}

// begin makes o ready for input n.
func (o *Out) begin(n uint64) { o.n, o.k, o.err = n, 0, nil }

// drop forgets what was added since outputs had length l and data size bytes.
func (o *Out) drop(l, size int) { o.outputs, o.size = o.outputs[:l], size }

// again makes room for more outputs of the same input, after those so far were sent.
func (o *Out) again() { o.outputs, o.arena, o.size = o.outputs[:0], o.arena[:0], 0 }

// reset forgets all outputs, and buffers that are too big to be kept.
func (o *Out) reset() {
	if cap(o.arena) > keepArena {
		o.arena = nil
		// They still point into the old arena.
		clear(o.outputs)
	}
	if cap(o.outputs) > keepOutputs {
		o.outputs = nil
	}
	o.again()
}
