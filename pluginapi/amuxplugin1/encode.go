package amuxplugin1

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// encoder appends to a buffer of the pool.
type encoder struct {
	buf *[]byte
	b   []byte
	err error // the first
}

func (e *encoder) begin(bound int) {
	e.buf = buffers.Get(bound)
	e.b = (*e.buf)[:0]
}

func (e *encoder) end() (mem.BufferSlice, error) {
	*e.buf = e.b
	if e.err != nil {
		buffers.Put(e.buf)
		return nil, e.err
	}
	return mem.BufferSlice{mem.NewBuffer(e.buf, buffers)}, nil
}

// fields is more than the numbers of an input or output take, with all tags.
const fields = 64

func requestBound(m *ConverseRequest) int {
	bound := fields
	for _, in := range m.Inputs {
		bound += fields + len(in.Data) + len(in.Id)
		if in.Start != nil {
			bound += proto.Size(in.Start)
		}
		if in.Exit != nil {
			bound += proto.Size(in.Exit)
		}
	}
	return bound
}

func responseBound(m *ConverseResponse) int {
	bound := fields
	for _, out := range m.Outputs {
		bound += fields + len(out.Data) + len(out.Type) + len(out.Id)
		if out.Outcome != nil {
			bound += proto.Size(out.Outcome)
		}
	}
	return bound
}

func (e *encoder) request(m *ConverseRequest) {
	e.number(requestFirstN, m.FirstN)
	for _, in := range m.Inputs {
		size := numberSize(uint64(int64(in.Kind))) + blockSize(len(in.Data)) + blockSize(len(in.Id)) +
			flagSize(in.More) + messageSize(in.Start, in.Start != nil) + messageSize(in.Exit, in.Exit != nil) + flagSize(in.Discard)
		e.head(requestInputs, size)
		e.number(inputKind, uint64(int64(in.Kind)))
		e.bytes(inputData, in.Data)
		e.text(inputID, in.Id)
		e.flag(inputMore, in.More)
		e.message(inputStart, in.Start, in.Start != nil)
		e.message(inputExit, in.Exit, in.Exit != nil)
		e.flag(inputDiscard, in.Discard)
	}
}

func (e *encoder) response(m *ConverseResponse) {
	for _, out := range m.Outputs {
		size := numberSize(out.N) + numberSize(uint64(out.K)) + numberSize(uint64(int64(out.Kind))) +
			blockSize(len(out.Type)) + blockSize(len(out.Data)) + blockSize(len(out.Id)) + numberSize(out.Millis) +
			messageSize(out.Outcome, out.Outcome != nil) + flagSize(out.More)
		e.head(responseOutput, size)
		e.number(outputN, out.N)
		e.number(outputK, uint64(out.K))
		e.number(outputKind, uint64(int64(out.Kind)))
		e.text(outputType, out.Type)
		e.bytes(outputData, out.Data)
		e.text(outputID, out.Id)
		e.number(outputMillis, out.Millis)
		e.message(outputOutcome, out.Outcome, out.Outcome != nil)
		e.flag(outputMore, out.More)
	}
	e.number(responseDone, m.Done)
}

// What is zero is not written, as protobuf has it.

func (e *encoder) number(tag byte, v uint64) {
	if v != 0 {
		e.b = binary.AppendUvarint(append(e.b, tag), v)
	}
}

func (e *encoder) flag(tag byte, v bool) {
	if v {
		e.b = append(e.b, tag, 1)
	}
}

func (e *encoder) head(tag byte, size int) {
	e.b = binary.AppendUvarint(append(e.b, tag), uint64(size))
}

func (e *encoder) bytes(tag byte, v []byte) {
	if len(v) > 0 {
		e.head(tag, len(v))
		e.b = append(e.b, v...)
	}
}

func (e *encoder) text(tag byte, v string) {
	if len(v) > 0 {
		e.head(tag, len(v))
		e.b = append(e.b, v...)
	}
}

// message writes one of the rare messages inside. there says that m is not nil.
func (e *encoder) message(tag byte, m proto.Message, there bool) {
	if !there {
		return
	}
	e.head(tag, proto.Size(m))
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(e.b, m)
	if err != nil {
		if e.err == nil {
			e.err = err
		}
		return
	}
	e.b = b
}

func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

func numberSize(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + varintSize(v)
}

func flagSize(v bool) int {
	if v {
		return 2
	}
	return 0
}

func blockSize(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + varintSize(uint64(n)) + n
}

func messageSize(m proto.Message, there bool) int {
	if !there {
		return 0
	}
	n := proto.Size(m)
	return 1 + varintSize(uint64(n)) + n
}

// buffers holds encoded messages until gRPC has written them. gRPC's own pool
// knows nothing between 32 KB and 1 MB, and clears each megabyte that it gives
// for a batch of 64 KB.
var buffers = new(pool)

type pool [maxBits + 1]sync.Pool // by the bits of the capacity

const (
	minBits = 11 // gRPC gives none of 1 KB or less back
	maxBits = 20 // longer ones are rare and not kept
)

var _ mem.BufferPool = buffers

func (p *pool) Get(n int) *[]byte {
	class := bits.Len(uint(max(n, 1<<minBits) - 1))
	if class > maxBits {
		b := make([]byte, n)
		return &b
	}
	if b, ok := p[class].Get().(*[]byte); ok {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n, 1<<class)
	return &b
}

func (p *pool) Put(b *[]byte) {
	if c := cap(*b); c >= 1<<minBits && c <= 1<<maxBits {
		p[bits.Len(uint(c))-1].Put(b)
	}
}
