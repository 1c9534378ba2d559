package adaptertest

import (
	"context"
	"io"
	"testing"

	"google.golang.org/grpc"

	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

// Bench measures a line of an agent's stdout, again and again after the lines of a
// beginning, through the service that sdk.Serve serves, without the connection.
func Bench(b *testing.B, adapter sdk.Adapter, beginning []string, line string) {
	b.Helper()
	service, err := sdk.NewServer("bench", "0.0.0", adapter)
	if err != nil {
		b.Fatal(err)
	}
	first := []*pb.Input{{Kind: pb.InputKind_INPUT_START, Start: &pb.Start{Agent: adapter.Describe().Id, Attempt: 1}}}
	for _, l := range beginning {
		first = append(first, &pb.Input{Kind: pb.InputKind_INPUT_STDOUT, Data: []byte(l)})
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	if err := service.Converse(&benchStream{first: first, left: b.N, line: []byte(line)}); err != nil {
		b.Fatal(err)
	}
}

// benchStream sends the first inputs, and then batches of one line as a fast agent makes
// the host do.
type benchStream struct {
	grpc.ServerStream
	first []*pb.Input
	left  int
	line  []byte
	n     uint64
	batch []*pb.Input
}

func (s *benchStream) Context() context.Context { return context.Background() }

func (s *benchStream) Recv() (*pb.ConverseRequest, error) {
	inputs := s.first
	if s.first = nil; inputs == nil {
		count := min(s.left, 256)
		if count == 0 {
			return nil, io.EOF
		}
		for len(s.batch) < count {
			s.batch = append(s.batch, &pb.Input{})
		}
		inputs = s.batch[:count]
		for _, in := range inputs {
			// The inputs are the service's once it has them.
			in.Kind, in.Data = pb.InputKind_INPUT_STDOUT, s.line
		}
		s.left -= count
	}
	req := &pb.ConverseRequest{FirstN: s.n + 1, Inputs: inputs}
	s.n += uint64(len(inputs))
	return req, nil
}

func (s *benchStream) Send(*pb.ConverseResponse) error { return nil }
