package sdk

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// BenchmarkConverse is the cost of a delta line over gRPC, in batches as a busy
// host sends them, with an adapter that does nearly nothing.
func BenchmarkConverse(b *testing.B) {
	line := []byte(`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello, this is a usual piece of text"}},"session_id":"6f1f3bd4-24c6-4f4d-9b12-3f6a58a80001","parent_tool_use_id":null,"uuid":"d1a2b3c4-24c6-4f4d-9b12-3f6a58a80001"}`)
	client := connect(b, fakeAdapter{handle: func(in *pluginapi.Input, out *Out) error {
		if in.Kind == pb.InputKind_INPUT_STDOUT {
			out.Event(pluginapi.TextDelta{Delta: "Hello, this is a usual piece of text"})
		}
		return nil
	}})
	stream, err := client.Converse(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	const batch = 200
	inputs := make([]*pb.Input, batch)
	for i := range inputs {
		inputs[i] = &pb.Input{Kind: pb.InputKind_INPUT_STDOUT, Data: line}
	}
	stream.Send(&pb.ConverseRequest{FirstN: 1, Inputs: []*pb.Input{start("fake")}})
	stream.Recv()
	b.ReportAllocs()
	b.ResetTimer()
	sent, done := uint64(1), uint64(1)
	for done < uint64(b.N)+1 {
		// Two requests under way, as the host has.
		for sent < done+2*batch && sent < uint64(b.N)+1 {
			if err := stream.Send(&pb.ConverseRequest{FirstN: sent + 1, Inputs: inputs}); err != nil {
				b.Fatal(err)
			}
			sent += batch
		}
		resp, err := stream.Recv()
		if err != nil {
			b.Fatal(err)
		}
		done = resp.Done
	}
}
