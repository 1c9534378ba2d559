package sdk_test

import (
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

// echo drives an agent that prints {"text":"…"} for each thing it says.
type echo struct{}

func (echo) Describe() *pluginapi.Agent {
	return &pluginapi.Agent{
		Id:          "echo",
		DisplayName: "Echo",
		Summary:     "says what it was told",
		Program:     "echo-agent",
		EventTypes:  []string{"message_stop"},
	}
}

func (echo) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	return &pluginapi.Plan{
		Program: req.Program,
		Args:    []string{"--json", "--", req.Options.Prompt},
		Stdin:   pb.Stdin_STDIN_NONE,
	}, nil
}

func (echo) Parse(line []byte) []pluginapi.Payload {
	var said struct{ Text string }
	if json.Unmarshal(line, &said) != nil || said.Text == "" {
		return nil
	}
	return []pluginapi.Payload{pluginapi.MessageStop{Text: said.Text}}
}

// A whole plugin: the main function of the example is the last line.
func Example() {
	main := func() { sdk.Serve("echo", "1.0.0", echo{}) }
	_ = main
}
