package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// said is what came of a conversation.
type said struct {
	outputs []*pb.Output
	wire    []byte
	done    uint64
	open    bool
}

func line(text []byte) []*pb.Input {
	var inputs []*pb.Input
	for len(text) > pluginapi.PieceSize {
		inputs = append(inputs, &pb.Input{Kind: pb.InputKind_INPUT_STDOUT, Data: text[:pluginapi.PieceSize], More: true})
		text = text[pluginapi.PieceSize:]
	}
	return append(inputs, &pb.Input{Kind: pb.InputKind_INPUT_STDOUT, Data: text})
}

func start(agent *pluginapi.Agent) *pb.Input {
	return &pb.Input{Kind: pb.InputKind_INPUT_START, Start: &pb.Start{
		Agent: agent.Id, Attempt: 1, Cwd: "/work", Options: &pb.RunOptions{Prompt: "hello"},
	}}
}

func exit() *pb.Input { return &pb.Input{Kind: pb.InputKind_INPUT_EXIT, Exit: &pb.Exit{}} }

// junk are lines that no agent means.
var junk = [][]byte{
	[]byte("npm warn: not \x00 JSON \x1b[31m"), []byte("caf\xc3 \xff\xfe na\xefve"), []byte(`{"type":"assistant","message":{"te`),
	[]byte(`{"type":"a"}{"type":"b"}`), bytes.Repeat([]byte("["), 100_000), []byte(`{}`), []byte(`[]`), []byte(`null`), []byte(`-0`),
	[]byte(`"text"`), []byte(`{"type":7,"id":[],"message":7}`), []byte(`{"type":null,"params":null}`), []byte("{\"type\":\"amux_grease\"}\r"),
}

// script is a short run with odd lines in it.
func script(agent *pluginapi.Agent) []*pb.Input {
	inputs := []*pb.Input{start(agent)}
	for _, text := range junk {
		inputs = append(inputs, line(text)...)
	}
	inputs = append(inputs, &pb.Input{Kind: pb.InputKind_INPUT_STDERR, Data: []byte("a warning")})
	return append(inputs, exit())
}

// converse runs a conversation in batches of the given size.
func (r *runner) converse(ctx context.Context, inputs []*pb.Input, batch int) (*said, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := r.process.Converse(ctx)
	if err != nil {
		return nil, err
	}
	s := &said{}
	for n := 0; n < len(inputs); {
		count := min(batch, len(inputs)-n)
		if err := stream.Send(&pb.ConverseRequest{FirstN: uint64(n) + 1, Inputs: inputs[n : n+count]}); err != nil && err != io.EOF {
			return nil, stream.Error(err)
		}
		n += count
		for s.done < uint64(n) {
			resp, err := stream.Recv()
			if err != nil {
				return nil, stream.Error(err)
			}
			if err := s.add(resp, uint64(n)); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// add checks the order of outputs.
func (s *said) add(resp *pb.ConverseResponse, sent uint64) error {
	if resp.Done < s.done || resp.Done > sent {
		return fmt.Errorf("done %d came after %d, with %d inputs sent", resp.Done, s.done, sent)
	}
	for _, o := range resp.Outputs {
		o = proto.CloneOf(o)
		last := &pb.Output{}
		if len(s.outputs) > 0 {
			last = s.outputs[len(s.outputs)-1]
		}
		switch {
		case o.N <= s.done || o.N > sent:
			return fmt.Errorf("an output of input %d, when %d were done and %d sent", o.N, s.done, sent)
		case s.open && (o.N != last.N || o.K != last.K || o.Kind != last.Kind):
			return fmt.Errorf("output (%d,%d) comes between the pieces of (%d,%d)", o.N, o.K, last.N, last.K)
		case !s.open && (o.N < last.N || o.N == last.N && o.K != last.K+1 || o.N > last.N && o.K != 0):
			return fmt.Errorf("output (%d,%d) came after (%d,%d)", o.N, o.K, last.N, last.K)
		}
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(o)
		if err != nil {
			return err
		}
		s.wire = append(append(s.wire, text...), '\n')
		if s.open {
			last.Data = append(last.Data, o.Data...)
		} else {
			s.outputs = append(s.outputs, o)
		}
		s.open = o.More
	}
	s.done = resp.Done
	return nil
}

// check demands what holds for every output.
func (s *said) check() error {
	for _, o := range s.outputs {
		if o.Kind != pb.OutputKind_OUTPUT_EVENT {
			continue
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(o.Data, &fields); err != nil || fields == nil {
			return fmt.Errorf("event %s of input %d is no JSON object: %.100q", o.Type, o.N, o.Data)
		}
		for _, name := range []string{"type", "run_id", "seq", "time", "agent"} {
			if _, ok := fields[name]; ok {
				return fmt.Errorf("event %s of input %d: the field %q is the host's", o.Type, o.N, name)
			}
		}
		if o.Type == "" || pluginapi.HostOnly(pluginapi.Type(o.Type)) {
			return fmt.Errorf("an event %q of input %d: an adapter must not emit it", o.Type, o.N)
		}
	}
	return nil
}

func (r *runner) events(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		got, err := r.converse(ctx, script(agent), 1)
		if err != nil {
			return err
		}
		return got.check()
	})
}

func (r *runner) outcome(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		got, err := r.converse(ctx, []*pb.Input{start(agent), exit()}, 1)
		if err != nil {
			return err
		}
		count := 0
		for _, o := range got.outputs {
			if o.Kind != pb.OutputKind_OUTPUT_OUTCOME {
				continue
			}
			count++
			if code := pluginapi.Code(o.GetOutcome().GetCode()); code != "" && !code.Known() {
				return fmt.Errorf("the outcome has the unknown code %q", code)
			}
		}
		if count != 1 {
			return fmt.Errorf("an exit gave %d outcomes", count)
		}
		return nil
	})
}

func (r *runner) batches(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		inputs := script(agent)
		first, err := r.converse(ctx, inputs, 1)
		if err != nil {
			return err
		}
		for _, size := range []int{1, 2, 3, len(inputs)} {
			again, err := r.converse(ctx, inputs, size)
			if err != nil {
				return err
			}
			if !bytes.Equal(again.wire, first.wire) {
				return fmt.Errorf("in batches of %d the outputs are others: they must depend on the inputs alone", size)
			}
		}
		return nil
	})
}

func (r *runner) garbage(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		for _, text := range junk {
			got, err := r.converse(ctx, []*pb.Input{start(agent), {Kind: pb.InputKind_INPUT_STDOUT, Data: text}, exit()}, 1)
			if err != nil {
				return fmt.Errorf("line %.60q: %w", text, err)
			}
			if !slices.ContainsFunc(got.outputs, func(o *pb.Output) bool { return o.N == 2 && o.Kind == pb.OutputKind_OUTPUT_EVENT }) {
				return fmt.Errorf("line %.60q gave no event: what an adapter does not know becomes log or unknown", text)
			}
		}
		return nil
	})
}

func (r *runner) huge(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		inputs := slices.Concat([]*pb.Input{start(agent)}, line(bytes.Repeat([]byte("é"), 5<<20)), []*pb.Input{exit()})
		got, err := r.converse(ctx, inputs, 4)
		if err != nil {
			return err
		}
		return got.check()
	})
}

func (r *runner) grease(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		got, err := r.converse(ctx, []*pb.Input{start(agent), {Kind: 999, Data: []byte("?"), Id: "grease"}, exit()}, 1)
		if err != nil {
			return err
		}
		for _, o := range got.outputs {
			if o.N == 2 && o.Type != "log" && o.Type != "debug" && o.Type != "unknown" {
				return fmt.Errorf("an input of an unknown kind gave the output %s %s", o.Kind, o.Type)
			}
		}
		return nil
	})
}

func (r *runner) canceled(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		inner, cancel := context.WithCancel(ctx)
		stream, err := r.process.Converse(inner)
		if err == nil {
			err = stream.Send(&pb.ConverseRequest{FirstN: 1, Inputs: []*pb.Input{start(agent)}})
		}
		cancel()
		if err != nil {
			return stream.Error(err)
		}
		began := time.Now()
		if _, err := r.converse(ctx, []*pb.Input{start(agent), exit()}, 1); err != nil {
			return fmt.Errorf("the conversation after it: %w", err)
		}
		if took := time.Since(began); took > time.Second {
			return fmt.Errorf("the conversation after it took %v", took)
		}
		return nil
	})
}

func (r *runner) memory(ctx context.Context) error {
	if err := r.need(ctx); err != nil {
		return err
	}
	if _, ok := rss(r.process.PID); !ok {
		return errSkip("the memory of a process cannot be read here")
	}
	agent := r.process.Description.Agents[0]
	many := func(n int) error {
		for range n {
			if _, err := r.converse(ctx, []*pb.Input{start(agent), {Kind: pb.InputKind_INPUT_STDOUT, Data: []byte("a line")}, exit()}, 3); err != nil {
				return err
			}
		}
		return nil
	}
	if err := many(200); err != nil { // until all is warm
		return err
	}
	before, _ := rss(r.process.PID)
	if err := many(1000); err != nil {
		return err
	}
	after, _ := rss(r.process.PID)
	const room = 16 << 20
	if after > before+room {
		return fmt.Errorf("1000 conversations have left %d MiB behind", (after-before)>>20)
	}
	return nil
}

func (r *runner) concurrent(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		inputs := func(i int) []*pb.Input {
			all := script(agent)
			return slices.Insert(all, 1, line(fmt.Appendf(nil, `{"type":"amux_%d"}`, i%4))...)
		}
		want := make([]*said, 4)
		for i := range want {
			var err error
			if want[i], err = r.converse(ctx, inputs(i), 1); err != nil {
				return err
			}
		}
		errs := make([]error, 32)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				got, err := r.converse(ctx, inputs(i), 1+i%5)
				if err == nil && !bytes.Equal(got.wire, want[i%4].wire) {
					err = errors.New("beside others a conversation has other outputs than alone")
				}
				errs[i] = err
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})
}
