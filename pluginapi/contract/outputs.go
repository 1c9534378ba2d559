// Package contract checks what a plugin answers by what pluginapi/README.md says
// that it MUST do, as far as that is seen from outside. sdk/adaptertest and amux
// plugin test both consist of it, so they agree.
package contract

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Outputs are what came of a conversation.
type Outputs struct {
	All  []*pb.Output // pieces joined
	Wire []byte       // the outputs as they came, encoded
	Done uint64
	open bool // the last output goes on
}

// Add takes a response, after inputs up to sent, and checks its order. The response
// must not be used again.
func (o *Outputs) Add(resp *pb.ConverseResponse, sent uint64) error {
	if resp.Done < o.Done || resp.Done > sent {
		return fmt.Errorf("done %d came after %d, with %d inputs sent", resp.Done, o.Done, sent)
	}
	for _, output := range resp.Outputs {
		last := &pb.Output{}
		if len(o.All) > 0 {
			last = o.All[len(o.All)-1]
		}
		switch {
		case output.N <= o.Done || output.N > sent:
			return fmt.Errorf("an output of input %d, when %d were done and %d sent", output.N, o.Done, sent)
		case o.open && (output.N != last.N || output.K != last.K || output.Kind != last.Kind):
			return fmt.Errorf("output (%d,%d) is not complete when (%d,%d) comes", last.N, last.K, output.N, output.K)
		case !o.open && (output.N < last.N || output.N == last.N && output.K != last.K+1 || output.N > last.N && output.K != 0):
			return fmt.Errorf("output (%d,%d) came after (%d,%d)", output.N, output.K, last.N, last.K)
		}
		var err error
		if o.Wire, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(o.Wire, output); err != nil {
			return err
		}
		o.Wire = append(o.Wire, '\n')
		if o.open {
			last.Data = append(last.Data, output.Data...)
		} else {
			o.All = append(o.All, output)
		}
		o.open = output.More
	}
	if o.open && resp.Done >= o.All[len(o.All)-1].N {
		return fmt.Errorf("done %d, but its last output is not complete", resp.Done)
	}
	o.Done = resp.Done
	return nil
}

// Check demands what holds for the outputs of every run.
func (o *Outputs) Check(agent *pluginapi.Agent) error {
	var problems []error
	problem := func(output *pb.Output, format string, args ...any) {
		problems = append(problems, fmt.Errorf("output (%d,%d) %s: %w", output.N, output.K, output.Type, fmt.Errorf(format, args...)))
	}
	claimed := map[string]bool{code.EventLog: true, code.EventUnknown: true, code.EventDebug: true, code.EventError: true}
	for _, name := range agent.GetEventTypes() {
		claimed[name] = true
	}
	started, ended := map[string]bool{}, map[string]bool{}
	for _, output := range o.All {
		switch output.Kind {
		case pb.OutputKind_OUTPUT_EVENT:
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(output.Data, &fields); err != nil || fields == nil {
				problem(output, "data is no JSON object: %.200q", output.Data)
				continue
			}
			for _, name := range []string{"type", "run_id", "seq", "time", "agent"} {
				if _, ok := fields[name]; ok {
					problem(output, "the field %q is the host's", name)
				}
			}
			if pluginapi.HostOnly(pluginapi.Type(output.Type)) || output.Type == "" {
				problem(output, "an adapter must not emit it")
			} else if !claimed[output.Type] {
				problem(output, "event_types of Describe does not claim it")
			}
			var id string
			_ = json.Unmarshal(fields["tool_call_id"], &id) // "" if it is not a string
			switch output.Type {
			case code.EventToolCallStart:
				if started[id] {
					problem(output, "a second one for tool_call_id %q", id)
				}
				started[id] = true
			case code.EventToolResult, code.EventToolError:
				if !started[id] {
					problem(output, "no tool_call_start came before for tool_call_id %q", id)
				}
				if ended[id] {
					problem(output, "a second end of tool_call_id %q", id)
				}
				ended[id] = true
			}
		case pb.OutputKind_OUTPUT_OUTCOME:
			if code := pluginapi.Code(output.GetOutcome().GetCode()); code != "" && !code.Known() {
				problem(output, "%q is no error code", code)
			}
		case pb.OutputKind_OUTPUT_UNKNOWN:
			problem(output, "it has no kind")
		case pb.OutputKind_OUTPUT_SET_TIMER, pb.OutputKind_OUTPUT_SIGNAL:
			if output.Id == "" {
				problem(output, "%v without an id", output.Kind)
			}
		}
	}
	return errors.Join(problems...)
}
