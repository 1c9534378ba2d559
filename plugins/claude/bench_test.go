package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"google.golang.org/grpc"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

// The lines of a delta, in the API's order of keys and in the alphabet's, and
// one with an escape that only the parser takes.
var deltaLines = map[string]string{
	"api":       `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello from the model, some words"}},"session_id":"9b532cc6-b483-4ba0-bcda-80142520ea56","parent_tool_use_id":null,"uuid":"dd104585-807e-4e65-ba49-742bff7d6b44","api_message_id":"msg_01"}`,
	"alphabet":  `{"type":"stream_event","event":{"delta":{"text":"Hello from the model, some words","type":"text_delta"},"index":0,"type":"content_block_delta"},"session_id":"9b532cc6-b483-4ba0-bcda-80142520ea56","parent_tool_use_id":null,"uuid":"dd104585-807e-4e65-ba49-742bff7d6b44","api_message_id":"msg_01"}`,
	"slow path": `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello from the mod\u0065l, some words"}},"session_id":"9b532cc6-b483-4ba0-bcda-80142520ea56","parent_tool_use_id":null,"uuid":"dd104585-807e-4e65-ba49-742bff7d6b44","api_message_id":"msg_01"}`,
}

const (
	initLine  = `{"type":"system","subtype":"init","session_id":"s","model":"m","permissionMode":"default"}`
	msgStart  = `{"type":"stream_event","event":{"type":"message_start","message":{"id":"msg_01"}},"session_id":"s","parent_tool_use_id":null}`
	blockLine = `{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}},"session_id":"s","parent_tool_use_id":null}`
)

// BenchmarkDelta is a delta line through the service that Serve serves, without
// the connection: Handle, its output, and what the sdk does around it.
func BenchmarkDelta(b *testing.B) {
	for name, line := range deltaLines {
		b.Run(name, func(b *testing.B) {
			service, err := sdk.NewServer("claude", version, adapter{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			if err := service.Converse(&benchStream{left: b.N, line: []byte(line)}); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// benchStream sends batches of one line, as a fast agent makes the host do.
type benchStream struct {
	grpc.ServerStream
	left   int
	line   []byte
	n      uint64
	inputs []*pb.Input
}

func (s *benchStream) Context() context.Context { return context.Background() }

func (s *benchStream) Recv() (*pb.ConverseRequest, error) {
	if s.n == 0 {
		s.n = 4
		return &pb.ConverseRequest{FirstN: 1, Inputs: []*pb.Input{
			{Kind: pb.InputKind_INPUT_START, Start: &pb.Start{Agent: agentID, Attempt: 1}},
			{Kind: pb.InputKind_INPUT_STDOUT, Data: []byte(initLine)},
			{Kind: pb.InputKind_INPUT_STDOUT, Data: []byte(msgStart)},
			{Kind: pb.InputKind_INPUT_STDOUT, Data: []byte(blockLine)},
		}}, nil
	}
	if s.left == 0 {
		return nil, io.EOF
	}
	count := min(s.left, 256)
	for len(s.inputs) < count {
		s.inputs = append(s.inputs, &pb.Input{})
	}
	for _, in := range s.inputs[:count] {
		// The inputs are the service's once it has them.
		in.Kind, in.Data = pb.InputKind_INPUT_STDOUT, s.line
	}
	req := &pb.ConverseRequest{FirstN: s.n + 1, Inputs: s.inputs[:count]}
	s.n += uint64(count)
	s.left -= count
	return req, nil
}

func (s *benchStream) Send(resp *pb.ConverseResponse) error { return nil }

// collector is a sink that keeps events, for tests that call the decoder.
type collector struct{ events []string }

func (c *collector) Event(p pluginapi.Payload) {
	data, err := pluginapi.AppendPayload(nil, p)
	if err != nil {
		panic(err)
	}
	c.RawEvent(p.EventType(), data)
}

func (c *collector) RawEvent(t pluginapi.Type, data []byte) {
	if !json.Valid(data) {
		panic(fmt.Sprintf("%s: %q", t, data))
	}
	c.events = append(c.events, string(t)+" "+string(data))
}

// testStream feeds a conversation and keeps what it writes.
type testStream struct {
	grpc.ServerStream
	inputs  []*pb.Input
	n       uint64
	written []byte
	outcome *pb.Outcome
}

func (s *testStream) Context() context.Context { return context.Background() }

func (s *testStream) Recv() (*pb.ConverseRequest, error) {
	if len(s.inputs) == 0 {
		return nil, io.EOF
	}
	s.n++
	req := &pb.ConverseRequest{FirstN: s.n, Inputs: s.inputs[:1]}
	s.inputs = s.inputs[1:]
	return req, nil
}

func (s *testStream) Send(resp *pb.ConverseResponse) error {
	for _, output := range resp.Outputs {
		switch output.Kind {
		case pb.OutputKind_OUTPUT_WRITE:
			s.written = append(s.written, output.Data...)
		case pb.OutputKind_OUTPUT_OUTCOME:
			s.outcome = output.Outcome
		}
	}
	return nil
}
