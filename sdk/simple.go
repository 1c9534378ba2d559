package sdk

import (
	"fmt"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// simple makes a Conversation of a Parser. The prompt has gone into the plan, so
// INPUT_PROMPT needs nothing.
type simple struct{ parser Parser }

var _ Conversation = (*simple)(nil)

func (s *simple) Handle(in *pluginapi.Input, out *Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_STDOUT:
		events := s.parser.Parse(in.Data)
		if events == nil {
			out.Log("stdout", in.Data)
		}
		for _, event := range events {
			out.Event(event)
		}
	case pb.InputKind_INPUT_STDERR:
		out.Log("stderr", in.Data)
	case pb.InputKind_INPUT_END:
		out.CloseStdin()
	case pb.InputKind_INPUT_SPAWN_FAILED:
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeSpawn), Message: string(in.Data)})
	case pb.InputKind_INPUT_EXIT:
		out.Outcome(ExitOutcome(in.GetExit()))
	}
	return nil
}

// ExitOutcome is what an exit says by itself: for agents that have told nothing
// better before. What amux had asked for wins over the exit code.
func ExitOutcome(exit *pluginapi.Exit) *pluginapi.Outcome {
	switch {
	case exit.GetAsked():
		return &pluginapi.Outcome{Code: string(pluginapi.CodeAborted)}
	case exit.GetSignal() != "":
		return &pluginapi.Outcome{
			Code:    string(pluginapi.CodeAgentCrash),
			Message: "the agent was ended by " + exit.GetSignal(),
		}
	case exit.GetCode() != 0:
		return &pluginapi.Outcome{
			Code:    string(pluginapi.CodeAgentFailed),
			Message: fmt.Sprintf("the agent exited with code %d", exit.GetCode()),
		}
	}
	return &pluginapi.Outcome{}
}
