package turn

import (
	"context"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

// talker says its inputs as text: a line that begins with = as a raw piece.
type talker struct{ Base }

func (*talker) Describe() *pluginapi.Agent { return &pluginapi.Agent{Id: "talker"} }
func (*talker) Plan(context.Context, *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	return &pluginapi.Plan{Program: "talker"}, nil
}
func (*talker) Converse(*pluginapi.Start) (sdk.Conversation, error) { return &talker{}, nil }
func (c *talker) Handle(in *pluginapi.Input, out *sdk.Out) error {
	s := c.Stream("p")
	switch line, raw := strings.CutPrefix(string(in.Data), "="); {
	case in.Kind != pb.InputKind_INPUT_STDOUT:
	case line == ".":
		s.Abort(out)
	case raw:
		s.Raw([]byte(line), out)
	default:
		s.Text("m", line, out)
	}
	return nil
}

// wire is the stream between host and plugin.
type wire struct {
	grpc.ServerStream
	inputs []string
	sent   bool
	events map[string][]string
	open   strings.Builder
}

func (*wire) Context() context.Context { return context.Background() }
func (w *wire) Recv() (*pb.ConverseRequest, error) {
	if w.sent {
		return nil, io.EOF
	}
	w.sent = true
	req := &pb.ConverseRequest{FirstN: 1, Inputs: []*pb.Input{{Kind: pb.InputKind_INPUT_START, Start: &pb.Start{Agent: "talker"}}}}
	for _, in := range w.inputs {
		req.Inputs = append(req.Inputs, &pb.Input{Kind: pb.InputKind_INPUT_STDOUT, Data: []byte(in)})
	}
	return req, nil
}
func (w *wire) Send(resp *pb.ConverseResponse) error {
	for _, o := range resp.Outputs {
		if w.open.Write(o.Data); !o.More {
			w.events[o.Type] = append(w.events[o.Type], w.open.String())
			w.open.Reset()
		}
	}
	return nil
}

// However much is said, and in pieces of whatever size, the events are those that would be
// made of the whole.
func TestLongMessage(t *testing.T) {
	t.Parallel()
	letters := strings.Repeat("é😀 \"q\"\n", partSize/10)
	pieces := map[string][]string{
		"one huge piece":            {letters + letters},
		"huge between small ones":   {"a", letters + letters, "b"},
		"many pieces":               strings.SplitAfter(letters+letters+letters, "\n"),
		"runes in two pieces":       {strings.Repeat("x", partSize-1) + "\xc3", "\xa9", strings.Repeat("y", partSize)},
		"bytes that are no runes":   {strings.Repeat("\xff", partSize), strings.Repeat("\xff", partSize), "z"},
		"one short piece":           {"short"},
		"nothing but the beginning": {""},
	}
	for name, said := range pieces {
		service, err := sdk.NewServer("talker", "1", &talker{})
		if err != nil {
			t.Fatal(err)
		}
		w := &wire{inputs: append(said[:len(said):len(said)], "."), events: map[string][]string{}}
		if err := service.Converse(w); err != nil {
			t.Fatal(err)
		}
		var deltas []string
		for _, piece := range said {
			if piece != "" {
				deltas = append(deltas, string(pluginapi.AppendString([]byte(`{"delta":`), piece))+`,"parent_id":"p"}`)
			}
		}
		stop := string(pluginapi.AppendString([]byte(`{"message_id":"m","text":`), strings.Join(said, ""))) + `,"aborted":true,"parent_id":"p"}`
		if got := strings.Join(w.events["text_delta"], "\n"); got != strings.Join(deltas, "\n") {
			t.Errorf("%s: %d bytes of deltas, want %d", name, len(got), len(strings.Join(deltas, "\n")))
		}
		if got := strings.Join(w.events["message_stop"], "\n"); got != stop {
			t.Errorf("%s: the end has %d bytes, want %d", name, len(got), len(stop))
		}
	}
}

// A long piece that needs no parsing gives the event that it gives when it is parsed.
func TestLongRawPiece(t *testing.T) {
	t.Parallel()
	inside := strings.Repeat(`é \"q\"`, partSize/8)
	service, err := sdk.NewServer("talker", "1", &talker{})
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{inputs: []string{"a", "=" + inside, "."}, events: map[string][]string{}}
	if err := service.Converse(w); err != nil {
		t.Fatal(err)
	}
	text := "a" + strings.ReplaceAll(inside, `\`, "")
	if got := w.events["text_delta"]; len(got) != 2 || got[1] != `{"delta":"`+inside+`","parent_id":"p"}` {
		t.Errorf("%d deltas", len(got))
	}
	if got := w.events["message_stop"]; len(got) != 1 || got[0] != string(pluginapi.AppendString([]byte(`{"message_id":"m","text":`), text))+`,"aborted":true,"parent_id":"p"}` {
		t.Errorf("%d ends", len(got))
	}
}
