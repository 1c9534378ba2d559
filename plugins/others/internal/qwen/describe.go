// Package qwen is the adapter for Qwen Code.
//
// It drives the CLI by its stream-json protocol with control requests, both ways
// on stdio. The protocol looks like that of Claude Code and is another one: a turn
// is opened by a handshake, prompts are taken one at a time, answers to questions
// are keyed by number, usage stands in the lines of the model. plan.go says how the
// CLI is started, conversation.go reads its lines, control.go answers its
// questions, tool.go knows its tools, sessions.go what it leaves on disk.
package qwen

import (
	"slices"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

const (
	agentID        = "qwen"
	driver         = "stream-json"
	minimumVersion = "0.24.0"
	testedVersion  = "0.24.4"

	// The CLI tries a failed request 28 times in 92 seconds without a line, and
	// waits a minute between tries when it is limited.
	inactivitySeconds = 660
)

// Adapter knows Qwen Code. It has no state.
type Adapter struct{}

var (
	_ sdk.Adapter       = Adapter{}
	_ sdk.Converser     = Adapter{}
	_ sdk.SessionLister = Adapter{}
	_ sdk.SessionReader = Adapter{}
	_ sdk.PluginLister  = Adapter{}
)

// nativeEfforts are the levels of set_effort.
var nativeEfforts = []string{"low", "medium", "high", "xhigh", "max"}

var authGuidance = []string{
	"Set OPENAI_API_KEY, with OPENAI_BASE_URL and OPENAI_MODEL for a provider other than OpenAI",
	"or run `qwen` once and sign in with /auth",
}

// Describe implements sdk.Adapter.
func (Adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:          agentID,
		DisplayName: "Qwen Code",
		Summary:     "Alibaba's coding agent, by its stream-json protocol",
		Program:     "qwen",
		Versions: &pluginapi.Versions{
			Minimum: minimumVersion, Tested: testedVersion,
			Args: []string{"--version"}, Pattern: `^(\d+\.\d+\.\d+)`,
		},
		Platforms: []string{"linux", "darwin", "windows"},
		Capabilities: &pluginapi.Capabilities{
			Resume: true, ContinueLast: true, Fork: true, NoSession: true, MultiTurn: true,
			TextStreaming: true, Thinking: true, Tools: true, Approvals: true, Questions: true,
			Interrupt: true, Model: true, SetModel: true, SystemAppend: true, SystemReplace: true,
			Mcp: true, AddDirs: true, MaxTurns: true, AttachFiles: true, Subagents: true,
			ListSessions: true, ReadSession: true, ListPlugins: true, ToolRules: true,
			McpSettings: true, ChangePlugins: true,
		},
		Installs: []*pluginapi.Install{{
			Kind: "npm",
			Argv: []string{"npm", "install", "-g", "@qwen-code/qwen-code@" + testedVersion},
			Note: "About 150 MB. On an older Node.js npm would install an older version without a word, so the version is named.",
			Prerequisites: []*pluginapi.Prerequisite{
				{Program: "npm"},
				{Program: "node", Minimum: "22.0.0", Args: []string{"--version"}, Pattern: `^v(\d+\.\d+\.\d+)`},
			},
		}},
		AuthProbes:       authProbes(),
		AuthGuidance:     slices.Clone(authGuidance),
		SessionLocations: []string{"~/.qwen/projects (or $QWEN_HOME/projects)"},
		ConfigLocations:  []string{"~/.qwen/settings.json (or $QWEN_HOME/settings.json)", ".qwen/settings.json in the project"},
		Notes: []string{
			"Besides the portable efforts it has xhigh, between high and max.",
			"It calls the model once more after a turn, to extract memories; those tokens are counted in the turn.",
			"Its npm program is a launcher that starts the agent as a child; amux stops both.",
		},
		HomePaths:         []string{"${QWEN_HOME:-~/.qwen}/"},
		McpFiles:          mcpFiles(),
		SkillFolders:      skillFolders(),
		CallerEnv:         []string{"OPENAI_*", "ANTHROPIC_*", "GEMINI_*", "GOOGLE_*", "QWEN_*"},
		InactivitySeconds: inactivitySeconds,
		Drivers:           []string{driver},
	}
	for _, level := range []string{"low", "medium", "high", "max"} {
		agent.Efforts = append(agent.Efforts, &pluginapi.Effort{Level: level, Native: level})
	}
	for _, t := range eventTypes {
		agent.EventTypes = append(agent.EventTypes, string(t))
	}
	return agent
}

// authProbes are the places where the CLI looks.
func authProbes() []*pluginapi.AuthProbe {
	return []*pluginapi.AuthProbe{
		{Method: "api_key", Provider: "openai", Env: "OPENAI_API_KEY", Meaning: "a key of OpenAI, or of a provider that speaks its API"},
		{Method: "api_key", Provider: "anthropic", Env: "ANTHROPIC_API_KEY", Meaning: "a key of the Anthropic API, with --auth-type anthropic"},
		{Method: "api_key", Provider: "gemini", Env: "GEMINI_API_KEY", Meaning: "a key of the Gemini API, with --auth-type gemini"},
		{Method: "oauth", Provider: "qwen", File: "${QWEN_HOME:-~/.qwen}/oauth_creds.json", JsonPath: "access_token", Meaning: "signed in with a Qwen account"},
		{Method: "config_file", Provider: "settings", File: "${QWEN_HOME:-~/.qwen}/settings.json", JsonPath: "security.auth.selectedType", Meaning: "a provider chosen with /auth"},
	}
}

// eventTypes is what this adapter can emit, and nothing else: a test compares the
// transcripts with it.
var eventTypes = []pluginapi.Type{
	"session_start", "skill_loaded", "session_resume", "session_fork", "session_end", "user_message",
	"turn_start", "turn_end", "message_start", "text_delta", "message_stop", "stream_fallback",
	"thinking_start", "thinking_delta", "thinking_stop",
	"tool_call_start", "tool_input_delta", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_write", "file_create", "file_patch", "shell_start", "shell_stdout_delta", "shell_exit",
	"mcp_tool_call_start", "mcp_tool_result", "mcp_tool_error",
	"subagent_spawn", "subagent_result", "subagent_error", "skill_invoked", "todo_update", "token_usage",
	"input_required", "input_answered", "approval_request", "approval_granted", "approval_denied",
	"mode_changed", "rate_limited", "retry", "interrupted",
	"auth_error", "rate_limit_error", "context_exceeded", "error", "debug", "log",
}
