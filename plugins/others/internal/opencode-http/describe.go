// Package opencodehttp is the adapter for OpenCode as a server (opencode serve),
// which amux-bridge starts and makes speak lines: requests go in, responses and
// events come out. It has what the Agent Client Protocol lacks: answers by a JSON
// schema, efforts, the tokens of every step, sub-agents and questions.
//
// plan.go says how the server is started, or which other one is asked. conversation.go
// has the turns, event.go sorts the events; session.go opens the session, messages.go
// reads what the model says and does, question.go what it asks; server.go writes the
// requests. Tools, errors and stored sessions are those of package opencode.
package opencodehttp

import (
	"slices"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/plugins/others/internal/opencode"
	"github.com/amux-dev/amux/sdk"
)

const (
	agentID = "opencode-http"
	// urlVariable names a server that runs already.
	urlVariable      = "AMUX_OPENCODE_URL"
	userVariable     = "OPENCODE_SERVER_USERNAME"
	passwordVariable = "OPENCODE_SERVER_PASSWORD"
)

// Adapter knows OpenCode's server. Its sessions are OpenCode's.
type Adapter struct {
	opencode.Sessions
	opencode.Models
	opencode.Settings
}

var (
	_ sdk.Adapter       = Adapter{}
	_ sdk.Converser     = Adapter{}
	_ sdk.SessionLister = Adapter{}
	_ sdk.ModelLister   = Adapter{}
	_ sdk.SessionReader = Adapter{}
)

// efforts are the portable levels; OpenCode has variants of a model by these names.
var efforts = []string{"low", "medium", "high", "max"}

// Describe implements sdk.Adapter.
func (Adapter) Describe() *pluginapi.Agent {
	agent := opencode.Adapter{}.Describe()
	agent.Id = agentID
	agent.DisplayName = "OpenCode (HTTP)"
	agent.Summary = "The open-source coding agent, as a server"
	agent.Capabilities = &pluginapi.Capabilities{
		Resume: true, ContinueLast: true, Fork: true, MultiTurn: true, TextStreaming: true, Thinking: true, Tools: true,
		Approvals: true, Questions: true, Interrupt: true, Model: true, SetModel: true, SystemAppend: true, Mcp: true,
		JsonSchema: true, AttachFiles: true, AttachImages: true, Subagents: true, ListSessions: true, ReadSession: true, ListModels: true,
		McpSettings: true,
	}
	agent.Notes = []string{
		"Models are named provider/model. An effort is a variant of the model; a model that lacks it is refused.",
		"Without any sign-in it uses free models of its own over the network.",
		"Commands, edits and fetches are asked about, whatever its settings say, unless OPENCODE_CONFIG_CONTENT is set: then that decides.",
		"It runs behind amux-bridge, with a password made for each run. A server that dies or hangs is a crash.",
		urlVariable + "=http://127.0.0.1:4096 asks a server that runs already, with the password in " + passwordVariable + "; it is never stopped. Its settings are its own, so that MCP servers are refused; a session of it is resumed with --approve auto or --fork only.",
	}
	agent.CallerEnv = []string{"OPENCODE_CONFIG_CONTENT", userVariable, urlVariable, "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"}
	agent.Drivers = nil
	for _, level := range efforts {
		agent.Efforts = append(agent.Efforts, &pluginapi.Effort{Level: level, Native: level})
	}
	agent.EventTypes = nil
	for _, t := range eventTypes {
		agent.EventTypes = append(agent.EventTypes, string(t))
	}
	slices.Sort(agent.EventTypes)
	return agent
}

// eventTypes is what this adapter can emit, and nothing else: a test compares the
// transcripts with it.
var eventTypes = []pluginapi.Type{
	"session_start", "session_resume", "session_fork", "session_end", "session_title", "user_message", "turn_start", "turn_end", "step_start", "step_end",
	"message_start", "text_delta", "message_stop", "stream_fallback", "session_checkpoint", "thinking_start", "thinking_delta", "thinking_stop",
	"tool_call_start", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_write", "file_create", "file_patch", "shell_start", "shell_stdout_delta", "shell_exit",
	"mcp_tool_call_start", "mcp_tool_result", "subagent_spawn", "subagent_result", "skill_invoked", "todo_update", "token_usage", "cost",
	"approval_request", "approval_granted", "approval_denied", "input_required", "input_answered", "interrupted", "retry", "rate_limited",
	"auth_error", "rate_limit_error", "context_exceeded", "context_compacted", "error", "debug", "log",
}
