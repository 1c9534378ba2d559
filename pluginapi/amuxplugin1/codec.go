// Package amuxplugin1 has the messages of the adapter protocol, generated from
// amuxplugin1.proto, and the codec with which host and sdk exchange them.
package amuxplugin1

import (
	"errors"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of all other messages
	"google.golang.org/grpc/mem"
)

// Codec is gRPC's codec "proto", for grpc.ForceCodecV2 and grpc.ForceServerCodecV2.
// It encodes the two busy messages, ConverseRequest and ConverseResponse, several
// times faster than the general protobuf code, and all others with that code. The
// bytes are those of protobuf: the other side need not know.
//
// A decoded message is one block: its inputs or outputs lie in one array, and their
// data are parts of the bytes that came. So it costs three allocations however many
// lines it holds, and keeping one part of it keeps the whole. Fields that this version
// does not know are left out.
type Codec struct{}

var _ encoding.CodecV2 = Codec{}

// Name is that of protobuf.
func (Codec) Name() string { return "proto" }

// Marshal encodes a message, and has read it whole when it returns.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	var e encoder
	switch m := v.(type) {
	case *ConverseRequest:
		e.begin(requestBound(m))
		e.request(m)
	case *ConverseResponse:
		e.begin(responseBound(m))
		e.response(m)
	default:
		return encoding.GetCodecV2("proto").Marshal(v)
	}
	return e.end()
}

// Unmarshal decodes a message.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch m := v.(type) {
	case *ConverseRequest:
		return decodeRequest(data.Materialize(), m)
	case *ConverseResponse:
		return decodeResponse(data.Materialize(), m)
	}
	return encoding.GetCodecV2("proto").Unmarshal(data, v)
}

// errMessage is of bytes that are not the message they should be.
var errMessage = errors.New("not a message of the adapter protocol")

// The tags of the fields: field number and kind of value.
const (
	number = 0 // a varint
	block  = 2 // length and bytes

	requestFirstN  = 1<<3 | number
	requestInputs  = 2<<3 | block
	responseOutput = 1<<3 | block
	responseDone   = 2<<3 | number

	inputKind    = 1<<3 | number
	inputData    = 2<<3 | block
	inputID      = 3<<3 | block
	inputMore    = 4<<3 | number
	inputStart   = 5<<3 | block
	inputExit    = 6<<3 | block
	inputDiscard = 7<<3 | number

	outputN       = 1<<3 | number
	outputK       = 2<<3 | number
	outputKind    = 3<<3 | number
	outputType    = 4<<3 | block
	outputData    = 5<<3 | block
	outputID      = 6<<3 | block
	outputMillis  = 7<<3 | number
	outputOutcome = 8<<3 | block
	outputMore    = 9<<3 | number
)
