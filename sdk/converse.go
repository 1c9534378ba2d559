package sdk

import (
	"io"
	"runtime/debug"

	"google.golang.org/grpc"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// A response is sent when it has this much, so that a batch of big outputs stays
// far below MaxMessage.
const (
	maxOutputs     = 512
	maxOutputBytes = 256 << 10
)

// hugeLine is a line so long that its memory is given back at once: left to the
// garbage collector's pace, the process would grow to seven times the line.
const hugeLine = 8 << 20

type converseStream = grpc.BidiStreamingServer[pb.ConverseRequest, pb.ConverseResponse]

// Converse is the loop of one run. It handles inputs one by one in the stream's
// own goroutine, so batches make no difference to what comes out.
func (s *server) Converse(stream converseStream) error {
	r := run{server: s, stream: stream}
	defer r.light()
	s.processors.begin()
	defer s.processors.end()
	for {
		req, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.batch(req); err != nil {
			return err
		}
	}
}

// run is one Converse stream.
type run struct {
	server       *server
	stream       converseStream
	conversation Conversation
	out          *Out // from the pool for as long as a batch takes
	pieces       pieces
	response     pb.ConverseResponse
	done         uint64 // as last sent
	started      bool   // something was sent
	now          uint64 // the input that is being handled
	spilled      uint64 // the last input of which something was sent before it was done
	spilledBytes int    // since the last flush
	huge         bool   // a huge line was handled, or made, since the last flush
	heavy        bool   // a huge line is coming, or was handled since the last flush
}

// batch handles the inputs of one request. The error is what the stream ends with.
func (r *run) batch(req *pb.ConverseRequest) error {
	if len(req.Inputs) == 0 {
		return nil
	}
	if r.started && req.FirstN <= r.done {
		return pluginapi.ToStatus(pluginapi.Errorf(pluginapi.CodeValidation,
			"input %d was sent after input %d", req.FirstN, r.done))
	}
	r.out = outs.Get().(*Out)
	r.out.sender = r
	defer func() {
		r.out.reset()
		r.out.sender = nil
		outs.Put(r.out)
		r.out = nil
	}()
	var n uint64
	bytes := 0
	defer func() { r.server.memory.worked(bytes) }()
	for i, in := range req.Inputs {
		n = req.FirstN + uint64(i)
		bytes += len(in.Data)
		r.out.begin(n)
		r.now = n
		outputs, size := len(r.out.outputs), r.out.size
		if err := r.handle(n, in); err != nil {
			// What the inputs before this one gave must not depend on whether they
			// came in the same batch.
			if r.spilled == n {
				outputs, size = 0, 0 // those of the inputs before it were sent
			}
			r.out.drop(outputs, size)
			if i > 0 {
				if err := r.flush(n - 1); err != nil {
					return err
				}
			}
			return pluginapi.ToStatus(err)
		}
		if len(r.out.outputs) >= maxOutputs || r.out.size >= maxOutputBytes {
			if err := r.flush(n); err != nil {
				return err
			}
		}
	}
	if r.started && r.done == n {
		return nil
	}
	return r.flush(n)
}

// flush sends all outputs, in as many responses as their size asks for, and says
// that everything up to input n has been sent.
func (r *run) flush(n uint64) error {
	if r.out.size+r.spilledBytes >= hugeLine {
		r.huge = true // what they were made of is garbage as well
	}
	if err := r.send(n); err != nil {
		return err
	}
	r.spilledBytes = 0
	r.out.reset()
	if r.huge {
		r.huge = false
		r.light()
		debug.FreeOSMemory()
	}
	return nil
}

// spill sends what the input that is being handled has given so far. Should it fail in
// the end, the host takes that back.
func (r *run) spill() error {
	r.spilled = r.now
	r.spilledBytes += r.out.size
	err := r.send(max(r.done, r.now-1))
	r.out.again()
	return err
}

// send sends the outputs and says that everything up to input n has been sent.
func (r *run) send(n uint64) error {
	outputs := r.out.outputs
	for {
		end, size := 0, 0
		for end < len(outputs) && end < maxOutputs && size < maxOutputBytes {
			size += len(outputs[end].Data)
			end++
		}
		done := n
		if end < len(outputs) {
			// The input of the next output is not complete; those before it are.
			done = r.done
			if next := outputs[end].N; next > 0 {
				done = max(done, next-1)
			}
		}
		r.response.Outputs, r.response.Done = outputs[:end], done
		// Send has serialised the response when it returns, so its parts may be
		// used again. That holds only while the server has no stats handler and
		// no tracing.
		if err := r.stream.Send(&r.response); err != nil {
			return err
		}
		r.done, r.started = done, true
		if outputs = outputs[end:]; len(outputs) == 0 {
			break
		}
	}
	r.response.Outputs = nil
	return nil
}

// light says that the run holds no huge line any more.
func (r *run) light() {
	if r.heavy {
		r.heavy = false
		r.server.memory.light()
	}
}

// handle hands one input to the conversation.
func (r *run) handle(n uint64, in *pb.Input) error {
	in, tooLong := r.pieces.join(in)
	switch {
	case tooLong > 0:
		r.huge = r.heavy
		return r.tooLong(in.Kind, tooLong)
	case in == nil:
		if !r.heavy && r.pieces.size() >= hugeLine {
			r.heavy = true
			r.server.memory.heavy()
		}
		return nil
	case in.Kind == pb.InputKind_INPUT_START:
		if err := r.open(n, in.Start); err != nil {
			return err
		}
	case r.conversation == nil:
		return pluginapi.Errorf(pluginapi.CodeValidation, "input %d came before INPUT_START", n)
	case !known(in.Kind):
		return nil
	}
	if len(in.Data) >= hugeLine {
		debug.FreeOSMemory() // the pieces it was made of
		r.huge = true
	}
	err := protect(r.server.stacks, "", n, func() error { return r.conversation.Handle(in, r.out) })
	in.Data = nil // a batch holds its inputs to the end
	if err == nil {
		err = r.out.err
	}
	if err == nil || isCrash(err) {
		return err
	}
	return pluginapi.Errorf(pluginapi.CodePluginCrashed, "while handling input %d: %w", n, err)
}

// open begins the conversation of a process. A run that spawns again starts
// again with a fresh one.
func (r *run) open(n uint64, start *pb.Start) error {
	adapter, err := r.server.adapter(start.GetAgent())
	if err != nil {
		return err
	}
	r.pieces = pieces{}
	if converser, ok := adapter.(Converser); ok {
		return protect(r.server.stacks, "", n, func() error {
			r.conversation, err = converser.Converse(start)
			if err == nil && r.conversation == nil {
				return pluginapi.Errorf(pluginapi.CodePluginCrashed, "Converse returned no conversation")
			}
			return err
		})
	}
	r.conversation = &simple{parser: adapter.(Parser)}
	return nil
}

// tooLong accounts for a line of more than MaxLine. The host does not send such
// lines; if one does, its bytes are in the journal all the same.
func (r *run) tooLong(kind pb.InputKind, length int64) error {
	source := "stdout"
	switch kind {
	case pb.InputKind_INPUT_STDOUT:
	case pb.InputKind_INPUT_STDERR:
		source = "stderr"
	default:
		return pluginapi.Errorf(pluginapi.CodeValidation, "an input of kind %v has %d bytes", kind, length)
	}
	r.out.Event(pluginapi.Log{Source: source, Length: &length})
	return r.out.err
}

func known(kind pb.InputKind) bool {
	return kind > pb.InputKind_INPUT_UNKNOWN && kind <= pb.InputKind_INPUT_COLLECTED
}

// pieces joins inputs that came in pieces. Pieces of different kinds may be
// mixed: stderr speaks while a long line of stdout arrives.
type pieces map[pb.InputKind]*pieceList

type pieceList struct {
	list [][]byte
	size int64
}

func (p pieces) size() (size int64) {
	for _, begun := range p {
		size += begun.size
	}
	return size
}

// join returns a whole input, or nil if more pieces follow. A line longer than
// MaxLine gives its length in tooLong.
func (p *pieces) join(in *pb.Input) (whole *pb.Input, tooLong int64) {
	if in.Discard {
		delete(*p, in.Kind)
		return nil, 0
	}
	if !in.More && len(*p) == 0 {
		return in, 0
	}
	begun := (*p)[in.Kind]
	if begun == nil {
		if !in.More {
			return in, 0
		}
		begun = new(pieceList)
		if *p == nil {
			*p = pieces{}
		}
		(*p)[in.Kind] = begun
	}
	begun.size += int64(len(in.Data))
	if begun.size > pluginapi.MaxLine {
		begun.list = nil
	} else {
		// The bytes are the message's own, and nobody else has them.
		begun.list = append(begun.list, in.Data)
	}
	if in.More {
		return nil, 0
	}
	delete(*p, in.Kind)
	if begun.size > pluginapi.MaxLine {
		return in, begun.size
	}
	// One copy of the exact size: growing would take twice as much for a moment.
	data := make([]byte, 0, begun.size)
	for i, piece := range begun.list {
		data = append(data, piece...)
		begun.list[i] = nil
	}
	in.Data = data
	return in, 0
}
