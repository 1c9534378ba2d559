// Package acp is the adapter for any agent that speaks the Agent Client Protocol:
// the user names one, with its command, in config.toml. What the agent can do it
// says in the handshake; what it cannot is refused there, before it is given a
// prompt.
package acp

import (
	"context"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	protocol "github.com/amux-dev/amux/sdk/acp"
)

const agentID = "acp"

// Adapter knows the protocol and no agent.
type Adapter struct{}

var (
	_ sdk.Adapter   = Adapter{}
	_ sdk.Converser = Adapter{}
)

// Describe implements sdk.Adapter.
func (Adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:          agentID,
		DisplayName: "ACP",
		Configured:  true,
		Summary:     "Any agent that speaks the Agent Client Protocol; name it in config.toml",
		Platforms:   []string{"linux", "darwin", "windows"},
		Capabilities: &pluginapi.Capabilities{
			Resume: true, ContinueLast: true, Fork: true, MultiTurn: true, TextStreaming: true, Thinking: true, Tools: true,
			Approvals: true, Interrupt: true, Model: true, SetModel: true, Mcp: true, AttachFiles: true, AttachImages: true,
		},
		Notes: []string{
			"Name an agent in ~/.agent-mux/config.toml: [agents.goose] with adapter = \"acp\" and command = [\"goose\", \"acp\"]. Then: amux run goose \"…\".",
			"What it can do depends on the agent, which tells it when it is started; what it cannot is refused then, before it is given a prompt.",
			"amux offers it neither files nor terminals: it works with its own.",
			"The tokens that it tells are taken for those of the session so far, as the protocol says, until it tells less than before; Copilot, OpenCode and omp are known.",
		},
		Drivers: []string{"acp"},
	}
	for _, t := range eventTypes {
		agent.EventTypes = append(agent.EventTypes, string(t))
	}
	return agent
}

// eventTypes is what this adapter can emit, and nothing else: a test compares the
// transcripts with it.
var eventTypes = []pluginapi.Type{
	"session_start", "skill_loaded", "session_resume", "session_fork", "session_end", "session_title", "turn_start", "turn_end",
	"message_start", "text_delta", "message_stop", "context_limit_warning", "context_compacted", "input_required", "input_answered", "thinking_start", "thinking_delta", "thinking_stop",
	"tool_call_start", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_create", "file_write", "file_patch", "file_delete", "shell_start", "shell_stdout_delta", "shell_exit",
	"token_usage", "cost", "todo_update", "image_output", "approval_request", "approval_granted", "approval_denied", "mode_changed",
	"interrupted", "auth_error", "rate_limit_error", "context_exceeded", "error", "debug", "log",
}

// Plan implements sdk.Adapter.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	plan := &pluginapi.Plan{Stdin: pb.Stdin_STDIN_OPEN, SessionId: req.GetOptions().GetResume()}
	launch := req.GetLaunch()
	switch argv := launch.GetArgv(); {
	case launch.GetLine() != "":
		plan.Program, plan.Shell = launch.GetLine(), true
	case len(argv) > 0:
		plan.Program, plan.Args = argv[0], argv[1:]
	default:
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "there is no command").
			WithHint("give it one in config.toml: [agents.NAME] with adapter = \"acp\" and command = [\"program\", \"argument\"]")
	}
	if req.GetOptions().GetFork() {
		plan.SessionId = ""
	}
	return plan, protocol.Prepare(agentID, protocol.Abilities{Images: true}, req, plan)
}

// linger is how long an agent may take to exit at the end of its stdin.
const linger = 10 * time.Second

// Converse implements sdk.Converser.
func (Adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	return protocol.Converse(protocol.Config{
		Agent: agentID, Linger: linger,
		Guidance: []string{"Sign in with the agent's own program; see its documentation."},
		// Seen in Gemini and Copilot.
		Words: protocol.Words{Aside: func(text string) (pluginapi.Payload, bool) { return nil, strings.HasPrefix(text, "[MODE_UPDATE] ") }},
		Usage: protocol.Usage{Counts: counts},
	}, start)
}

// counted says of the agents that were tried, by the names that they give themselves,
// whether their usage counts all prompts of the process.
var counted = map[string]bool{"Copilot": true, "oh-my-pi": false, "OpenCode": false}

func counts(agent string) (cumulative, known bool) {
	cumulative, known = counted[agent]
	return cumulative, known
}
