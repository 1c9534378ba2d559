// Package cursor is the adapter for the Cursor CLI, made after its documentation and
// after what others have recorded of it: the CLI itself could not be had, so that it
// is unproven.
//
// One process is one prompt, told as lines of JSON (stream-json), or a conversation by
// the Agent Client Protocol. plan.go says how the
// CLI is started, conversation.go reads its lines, tool.go knows its tools.
package cursor

import (
	"slices"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

const (
	agentID      = "cursor"
	driverAuto   = "auto" // stream-json, or acp where it is needed
	driverStream = "stream-json"
	driverACP    = "acp"
)

// Adapter knows the Cursor CLI. It has no state.
type Adapter struct{}

var (
	_ sdk.Adapter   = Adapter{}
	_ sdk.Converser = Adapter{}
)

var authGuidance = []string{"Run `cursor-agent login`", "or set CURSOR_API_KEY"}

// Describe implements sdk.Adapter.
func (Adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:          agentID,
		DisplayName: "Cursor CLI",
		Summary:     "Cursor's coding agent, by its lines, or by the Agent Client Protocol where it is to ask",
		Program:     "cursor-agent",
		Platforms:   []string{"linux", "darwin", "windows"},
		Capabilities: &pluginapi.Capabilities{
			Resume: true, ContinueLast: true, MultiTurn: true, TextStreaming: true, Thinking: true, Tools: true, Approvals: true,
			Interrupt: true, Model: true, Mcp: true, AttachFiles: true, AttachImages: true, BypassApprovals: true,
			McpSettings: true,
		},
		Installs: []*pluginapi.Install{
			{Kind: "script", Note: "Cursor's own way: curl https://cursor.com/install -fsS | bash", Platforms: []string{"linux", "darwin"}},
			{Kind: "script", Note: "Cursor's own way, in PowerShell: irm 'https://cursor.com/install?win32=true' | iex", Platforms: []string{"windows"}},
		},
		AuthProbes: []*pluginapi.AuthProbe{
			{Method: "api_key", Provider: "cursor", Env: "CURSOR_API_KEY", Meaning: "a key of Cursor's"},
		},
		AuthGuidance:     slices.Clone(authGuidance),
		SessionLocations: []string{"~/.cursor/chats"},
		ConfigLocations:  []string{"~/.cursor/mcp.json"},
		Notes: []string{
			"Made after documentation: no run of the real CLI has been seen.",
			"With --approve auto it is given --force and does all it wants unasked; otherwise it is driven by the Agent Client Protocol (cursor-agent acp), where it asks.",
			"What `cursor-agent ls` and `cursor-agent models` print is documented nowhere, so that amux lists neither sessions nor models.",
			"A login of `cursor-agent login` is not looked for; `cursor-agent status` tells it.",
		},
		HomePaths: []string{"~/.cursor/", "${XDG_CONFIG_HOME:-~/.config}/cursor/"},
		McpFiles:  mcpFiles(),
		CallerEnv: []string{"CURSOR_*"},
		Unproven:  true,
		Drivers:   []string{driverAuto, driverStream, driverACP},
	}
	for _, t := range eventTypes {
		agent.EventTypes = append(agent.EventTypes, string(t))
	}
	return agent
}

// eventTypes is what this adapter can emit, and nothing else: a test compares the
// transcripts with it.
var eventTypes = []pluginapi.Type{
	"session_start", "session_resume", "session_end", "turn_start", "turn_end", "message_start", "text_delta", "message_stop",
	"thinking_start", "thinking_delta", "thinking_stop", "tool_call_start", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_write", "file_patch", "file_delete", "shell_start", "shell_stdout_delta", "shell_stderr_delta", "shell_exit",
	"token_usage", "approval_request", "approval_granted", "approval_denied", "input_required", "input_answered", "file_create",
	"todo_update", "mode_changed", "session_title", "context_limit_warning", "context_compacted", "cost", "image_output", "debug", "interrupted", "auth_error", "rate_limit_error", "context_exceeded", "error", "log",
}
