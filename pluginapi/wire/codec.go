// Package wire encodes the protocol's two busy messages, ConverseRequest and
// ConverseResponse, several times faster than the general protobuf code, and all
// others by it. The bytes are those of protobuf: the other side needs not know.
//
// A message that was decoded is one block: its inputs or outputs lie in one
// array, and their data are parts of the bytes that came. So it costs three
// allocations, however many lines it holds, and who keeps one part keeps the
// whole. Fields that this version does not know are left out.
package wire

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of all other messages
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Codec is gRPC's codec "proto". Use it by grpc.ForceServerCodecV2 and
// grpc.ForceCodecV2.
type Codec struct{}

var _ encoding.CodecV2 = Codec{}

// general is the codec of all other messages.
var general = encoding.GetCodecV2("proto")

// Name is that of protobuf.
func (Codec) Name() string { return "proto" }

// Marshal encodes a message.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *pb.ConverseRequest:
		size := requestSize(m)
		buf := buffers.Get(size)
		*buf = appendRequest((*buf)[:0], m)
		return mem.BufferSlice{mem.NewBuffer(buf, buffers)}, nil
	case *pb.ConverseResponse:
		size := responseSize(m)
		buf := buffers.Get(size)
		*buf = appendResponse((*buf)[:0], m)
		return mem.BufferSlice{mem.NewBuffer(buf, buffers)}, nil
	}
	return general.Marshal(v)
}

// Unmarshal decodes a message.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch m := v.(type) {
	case *pb.ConverseRequest:
		return decodeRequest(data.Materialize(), m)
	case *pb.ConverseResponse:
		return decodeResponse(data.Materialize(), m)
	}
	return general.Unmarshal(data, v)
}

// ---- sizes ----

func bytesField(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + protowire.SizeBytes(n)
}

func numberField(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + protowire.SizeVarint(v)
}

func flagField(v bool) int {
	if v {
		return 2
	}
	return 0
}

// messageField is that of a message which is there, however empty.
func messageField(m proto.Message) int { return 1 + protowire.SizeBytes(proto.Size(m)) }

func inputSize(in *pb.Input) int {
	size := numberField(uint64(int64(in.Kind))) + bytesField(len(in.Data)) + bytesField(len(in.Id)) +
		flagField(in.More) + flagField(in.Discard)
	if in.Start != nil {
		size += messageField(in.Start)
	}
	if in.Exit != nil {
		size += messageField(in.Exit)
	}
	return size
}

func outputSize(out *pb.Output) int {
	size := numberField(out.N) + numberField(uint64(out.K)) + numberField(uint64(int64(out.Kind))) +
		bytesField(len(out.Type)) + bytesField(len(out.Data)) + bytesField(len(out.Id)) +
		numberField(out.Millis) + flagField(out.More)
	if out.Outcome != nil {
		size += messageField(out.Outcome)
	}
	return size
}

func requestSize(m *pb.ConverseRequest) int {
	size := numberField(m.FirstN)
	for _, in := range m.Inputs {
		size += 1 + protowire.SizeBytes(inputSize(in))
	}
	return size
}

func responseSize(m *pb.ConverseResponse) int {
	size := numberField(m.Done)
	for _, out := range m.Outputs {
		size += 1 + protowire.SizeBytes(outputSize(out))
	}
	return size
}

// ---- encoding ----

func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendFlag(b []byte, field protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return append(protowire.AppendTag(b, field, protowire.VarintType), 1)
}

func appendBytes[T string | []byte](b []byte, field protowire.Number, v T) []byte {
	if len(v) == 0 {
		return b
	}
	b = appendLength(b, field, len(v))
	return append(b, v...)
}

func appendLength(b []byte, field protowire.Number, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(n))
}

func appendMessage(b []byte, field protowire.Number, m proto.Message) []byte {
	b = appendLength(b, field, proto.Size(m))
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m)
	if err != nil {
		panic(err) // TODO
	}
	return b
}

func appendRequest(b []byte, m *pb.ConverseRequest) []byte {
	b = appendNumber(b, 1, m.FirstN)
	for _, in := range m.Inputs {
		b = appendLength(b, 2, inputSize(in))
		b = appendNumber(b, 1, uint64(int64(in.Kind)))
		b = appendBytes(b, 2, in.Data)
		b = appendBytes(b, 3, in.Id)
		b = appendFlag(b, 4, in.More)
		if in.Start != nil {
			b = appendMessage(b, 5, in.Start)
		}
		if in.Exit != nil {
			b = appendMessage(b, 6, in.Exit)
		}
		b = appendFlag(b, 7, in.Discard)
	}
	return b
}

func appendResponse(b []byte, m *pb.ConverseResponse) []byte {
	for _, out := range m.Outputs {
		b = appendLength(b, 1, outputSize(out))
		b = appendNumber(b, 1, out.N)
		b = appendNumber(b, 2, uint64(out.K))
		b = appendNumber(b, 3, uint64(int64(out.Kind)))
		b = appendBytes(b, 4, out.Type)
		b = appendBytes(b, 5, out.Data)
		b = appendBytes(b, 6, out.Id)
		b = appendNumber(b, 7, out.Millis)
		if out.Outcome != nil {
			b = appendMessage(b, 8, out.Outcome)
		}
		b = appendFlag(b, 9, out.More)
	}
	return appendNumber(b, 2, m.Done)
}

var errWire = errors.New("not a message of the protocol")

var _ = fmt.Errorf
