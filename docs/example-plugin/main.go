// Command example-plugin is the smallest adapter: it lets amux run tr.
package main

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// adapter knows tr, which takes the prompt on stdin and prints it in capitals.
type adapter struct{}

func (adapter) Describe() *pluginapi.Agent {
	return &pluginapi.Agent{
		Id: "shout", DisplayName: "Shout", Summary: "repeats the prompt in capitals",
		Program: "tr", EventTypes: []string{"text_delta"},
	}
}

func (adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	return &pluginapi.Plan{
		Program:      req.Program,
		Args:         []string{"a-z", "A-Z"},
		Stdin:        pluginapi.StdinPrompt, // the bytes below, then end of file
		InitialStdin: []byte(req.Options.Prompt + "\n"),
	}, nil
}

func (adapter) Parse(line []byte) []pluginapi.Payload {
	return []pluginapi.Payload{pluginapi.TextDelta{Delta: string(line) + "\n"}}
}

func main() { sdk.Serve("shout", "0.1.0", adapter{}) }
