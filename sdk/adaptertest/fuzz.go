package adaptertest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/contract"
	"github.com/amux-dev/amux/sdk"
)

// Fuzz feeds the adapter lines that nobody has thought of. It must not panic,
// its events must be JSON, and how the lines are batched must not matter. The
// stdout of the transcripts in testdata is where the fuzzer starts from.
func Fuzz(f *testing.F, adapter sdk.Adapter) {
	f.Helper()
	service, err := sdk.NewServer("adaptertest", "0.0.0", adapter)
	if err != nil {
		f.Fatal(err)
	}
	agent := adapter.Describe().GetId()
	files, _ := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		archive := txtar.Parse(content)
		if len(planCases(archive)) > 0 {
			continue
		}
		inputs, err := parseTranscript(agent, archive)
		if err != nil {
			continue // Run reports it
		}
		var text []byte
		for _, in := range inputs {
			if in.Kind == pb.InputKind_INPUT_STDOUT {
				text = append(append(text, in.Data...), '\n')
			}
		}
		if len(text) < 64<<10 {
			f.Add(text, uint64(1))
		}
	}
	f.Add([]byte("{}\nnull\n{\"type\":null}\n\xff"), uint64(2))
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		inputs := []*pb.Input{{Kind: pb.InputKind_INPUT_START, Start: &pb.Start{
			Agent: agent, Attempt: 1, Cwd: "/work", Options: &pb.RunOptions{Prompt: "hi"},
		}}}
		for _, line := range splitLines(text) {
			inputs = append(inputs, contract.Line(pb.InputKind_INPUT_STDOUT, line)...)
		}
		inputs = append(inputs, &pb.Input{Kind: pb.InputKind_INPUT_EXIT, Exit: &pb.Exit{}})
		one := converseDirectly(t, service, inputs, single)
		for _, output := range one.All {
			if output.Kind != pb.OutputKind_OUTPUT_EVENT {
				continue
			}
			var object map[string]json.RawMessage
			if err := json.Unmarshal(output.Data, &object); err != nil || object == nil {
				t.Errorf("event %s of input %d is no JSON object: %q", output.Type, output.N, output.Data)
			}
		}
		if two := converseDirectly(t, service, inputs, splitter(seed)); !bytes.Equal(one.Wire, two.Wire) {
			t.Errorf("outputs depend on the batches:\n%s\n%s", one.text(), two.text())
		}
	})
}

// converseDirectly calls the service without a connection: the fuzzer wants many
// runs a second.
func converseDirectly(t *testing.T, service pb.AdapterServer, inputs []*pb.Input, split splitFunc) *result {
	stream := &directStream{inputs: inputs, split: split, result: &result{}}
	if err := service.Converse(stream); err != nil {
		t.Fatal(pluginapi.FromStatus(err))
	}
	return stream.result
}

type directStream struct {
	grpc.ServerStream
	inputs []*pb.Input
	sent   int
	split  splitFunc
	result *result
}

func (s *directStream) Context() context.Context { return context.Background() }

func (s *directStream) Recv() (*pb.ConverseRequest, error) {
	if s.sent == len(s.inputs) {
		return nil, io.EOF
	}
	count := s.split(len(s.inputs) - s.sent)
	req := &pb.ConverseRequest{FirstN: uint64(s.sent) + 1}
	for _, in := range s.inputs[s.sent : s.sent+count] {
		req.Inputs = append(req.Inputs, proto.CloneOf(in))
	}
	s.sent += count
	return req, nil
}

func (s *directStream) Send(resp *pb.ConverseResponse) error {
	// The server uses the message again when this returns.
	return s.result.Add(proto.CloneOf(resp), uint64(s.sent))
}
