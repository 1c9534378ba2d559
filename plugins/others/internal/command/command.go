// Package command drives any program that reads lines and prints lines, by a command
// of the user's own: [agents.NAME] in config.toml with adapter = "command".
//
// A prompt is a line on its stdin, what it prints is text, and its end is the end: with
// exit code 0 a success. It is told of no tools, tokens or questions, and has none.
package command

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// Adapter knows programs that read and print lines.
type Adapter struct{}

var (
	_ sdk.Adapter   = Adapter{}
	_ sdk.Converser = Adapter{}
)

// Describe implements sdk.Adapter.
func (Adapter) Describe() *pluginapi.Agent {
	return &pluginapi.Agent{
		Id: "command", DisplayName: "Command", Configured: true,
		Summary:      "A command of your own: prompts are lines on its stdin, what it prints is text",
		Platforms:    []string{"linux", "darwin", "windows"},
		Capabilities: &pluginapi.Capabilities{MultiTurn: true, TextStreaming: true, PtyOptional: true},
		Notes: []string{
			"A command that is one text is given to a shell as it is, so pipes and redirects work; a list is a program and its arguments.",
			"A prompt of several lines comes as these lines. The command sees the end of its input when no prompt will follow.",
		},
		EventTypes: []string{"turn_start", "message_start", "text_delta", "message_stop", "turn_end", "log"},
	}
}

// Plan implements sdk.Adapter.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	launch := req.GetLaunch()
	plan := &pluginapi.Plan{Stdin: pluginapi.StdinOpen, Pty: req.GetOptions().GetPty()}
	switch argv := launch.GetArgv(); {
	case launch.GetLine() != "":
		plan.Program, plan.Shell = launch.GetLine(), true
	case len(argv) > 0:
		plan.Program, plan.Args = argv[0], argv[1:]
	default:
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "there is no command").
			WithHint(`give it one in config.toml: [agents.NAME] with adapter = "command" and command = "…"`)
	}
	return plan, nil
}
