package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
	"github.com/amux-dev/amux/pluginapi/contract"
)

func start(agent *pluginapi.Agent) *pb.Input {
	return &pb.Input{Kind: pb.InputKind_INPUT_START, Start: &pb.Start{
		Agent: agent.Id, Attempt: 1, Cwd: "/work", Options: &pb.RunOptions{Prompt: "hello"},
	}}
}

func exit() *pb.Input { return &pb.Input{Kind: pb.InputKind_INPUT_EXIT, Exit: &pb.Exit{}} }

// script is a short run with odd lines in it.
func script(agent *pluginapi.Agent) []*pb.Input {
	inputs := []*pb.Input{start(agent)}
	for _, junk := range contract.JunkLines(0) {
		inputs = append(inputs, contract.Line(pb.InputKind_INPUT_STDOUT, junk.Line)...)
	}
	inputs = append(inputs, &pb.Input{Kind: pb.InputKind_INPUT_STDERR, Data: []byte("a warning")})
	return append(inputs, exit())
}

// converse runs a conversation in batches of the given size.
func (r *runner) converse(ctx context.Context, inputs []*pb.Input, batch int) (*contract.Outputs, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := r.process.Converse(ctx)
	if err != nil {
		return nil, err
	}
	s := &contract.Outputs{}
	for n := 0; n < len(inputs); {
		count := min(batch, len(inputs)-n)
		if err := stream.Send(&pb.ConverseRequest{FirstN: uint64(n) + 1, Inputs: inputs[n : n+count]}); err != nil && err != io.EOF {
			return nil, stream.Error(err)
		}
		n += count
		for s.Done < uint64(n) {
			resp, err := stream.Recv()
			if err != nil {
				return nil, stream.Error(err)
			}
			if err := s.Add(proto.CloneOf(resp), uint64(n)); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func (r *runner) events(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		got, err := r.converse(ctx, script(agent), 1)
		if err != nil {
			return err
		}
		return got.Check(agent)
	})
}

func (r *runner) outcome(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		got, err := r.converse(ctx, []*pb.Input{start(agent), exit()}, 1)
		if err != nil {
			return err
		}
		count := 0
		for _, o := range got.All {
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
			if !bytes.Equal(again.Wire, first.Wire) {
				return fmt.Errorf("the outputs change with batches of %d: they must depend on the inputs alone", size)
			}
		}
		return nil
	})
}

func (r *runner) garbage(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		for _, junk := range contract.JunkLines(0) {
			text := junk.Line
			got, err := r.converse(ctx, []*pb.Input{start(agent), {Kind: pb.InputKind_INPUT_STDOUT, Data: text}, exit()}, 1)
			if err != nil {
				return fmt.Errorf("line %.60q: %w", text, err)
			}
			if !slices.ContainsFunc(got.All, func(o *pb.Output) bool { return o.N == 2 && o.Kind == pb.OutputKind_OUTPUT_EVENT }) {
				return fmt.Errorf("line %.60q gave no event: an unknown line must become log or unknown", text)
			}
		}
		return nil
	})
}

func (r *runner) huge(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		inputs := slices.Concat([]*pb.Input{start(agent)}, contract.Line(pb.InputKind_INPUT_STDOUT, bytes.Repeat([]byte("é"), 5<<20)), []*pb.Input{exit()})
		got, err := r.converse(ctx, inputs, 4)
		if err != nil {
			return err
		}
		return got.Check(agent)
	})
}

func (r *runner) grease(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		got, err := r.converse(ctx, []*pb.Input{start(agent), {Kind: 999, Data: []byte("?"), Id: "grease"}, exit()}, 1)
		if err != nil {
			return err
		}
		for _, o := range got.All {
			if o.N == 2 && o.Type != code.EventLog && o.Type != code.EventDebug && o.Type != code.EventUnknown {
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
			return fmt.Errorf("the next conversation: %w", err)
		}
		if took := time.Since(began); took > time.Second {
			return fmt.Errorf("the next conversation took %v", took)
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
	agent := r.description.Agents[0]
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
		return fmt.Errorf("1000 conversations leaked %d MiB", (after-before)>>20)
	}
	return nil
}

func (r *runner) concurrent(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		inputs := func(i int) []*pb.Input {
			all := script(agent)
			return slices.Insert(all, 1, contract.Line(pb.InputKind_INPUT_STDOUT, fmt.Appendf(nil, `{"type":"amux_%d"}`, i%4))...)
		}
		want := make([]*contract.Outputs, 4)
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
				if err == nil && !bytes.Equal(got.Wire, want[i%4].Wire) {
					err = errors.New("the outputs of a conversation change when others run at the same time")
				}
				errs[i] = err
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})
}
