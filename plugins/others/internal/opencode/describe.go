// Package opencode is the adapter for OpenCode.
//
// It drives the CLI by the Agent Client Protocol (opencode acp), in which text
// streams and the CLI can ask, be interrupted and go on for many turns; acp.go
// says what it does there in its own way. For one prompt without questions there
// is opencode run (driver run, run.go), which tells the tokens of every step and
// the provider's errors. plan.go says how the CLI is started, tool.go knows its
// tools; sessions are read by the CLI's own commands, because they are in a
// database (sessions.go).
package opencode

import (
	"slices"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

const (
	agentID        = "opencode"
	driverACP      = "acp"
	driverRun      = "run"
	minimumVersion = "1.18.0"

	// The CLI tries an overloaded provider for 71 seconds without a line.
	inactivitySeconds = 660
)

// TestedVersion is the version of the CLI that amux is tested with.
const TestedVersion = "1.18.33"

// Adapter knows OpenCode. It has no state.
type Adapter struct {
	Sessions
	Models
	Settings
}

var (
	_ sdk.Adapter       = Adapter{}
	_ sdk.Converser     = Adapter{}
	_ sdk.SessionLister = Adapter{}
	_ sdk.ModelLister   = Adapter{}
	_ sdk.SessionReader = Adapter{}
)

// Guidance says how to sign in.
func Guidance() []string { return slices.Clone(authGuidance) }

var authGuidance = []string{
	"Run `opencode auth login`",
	"or set the key of a provider: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …",
}

// Describe implements sdk.Adapter.
func (Adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:          agentID,
		DisplayName: "OpenCode",
		Summary:     "The open-source coding agent, by the Agent Client Protocol",
		Program:     "opencode",
		Versions: &pluginapi.Versions{
			Minimum: minimumVersion, Tested: TestedVersion,
			Args: []string{"--version"}, Pattern: `^(\d+\.\d+\.\d+)`,
		},
		Platforms: []string{"linux", "darwin", "windows"},
		Capabilities: &pluginapi.Capabilities{
			Resume: true, ContinueLast: true, Fork: true, MultiTurn: true, TextStreaming: true, Thinking: true, Tools: true,
			Approvals: true, Interrupt: true, Model: true, SetModel: true, SystemAppend: true, Mcp: true,
			AttachFiles: true, AttachImages: true, ListSessions: true, ReadSession: true, ListModels: true,
			McpSettings: true,
		},
		Installs: []*pluginapi.Install{
			{
				Kind: "npm", Argv: []string{"npm", "install", "-g", "opencode-ai@" + TestedVersion},
				Note:          "A native binary of 185 MB. Node.js is needed for npm only, not to run it.",
				Prerequisites: []*pluginapi.Prerequisite{{Program: "npm"}},
			},
			{
				Kind: "brew", Platforms: []string{"darwin", "linux"}, Argv: []string{"brew", "install", "opencode"},
				Prerequisites: []*pluginapi.Prerequisite{{Program: "brew"}},
			},
		},
		AuthProbes: []*pluginapi.AuthProbe{
			{Method: "config_file", Provider: "opencode", File: "${XDG_DATA_HOME:-~/.local/share}/opencode/auth.json", Meaning: "signed in with `opencode auth login`"},
			{Method: "api_key", Provider: "anthropic", Env: "ANTHROPIC_API_KEY", Meaning: "a key of the Anthropic API"},
			{Method: "api_key", Provider: "openai", Env: "OPENAI_API_KEY", Meaning: "a key of the OpenAI API"},
			{Method: "api_key", Provider: "google", Env: "GEMINI_API_KEY", Meaning: "a key of the Gemini API"},
			{Method: "config_file", Provider: "configured", File: "${XDG_CONFIG_HOME:-~/.config}/opencode/opencode.json", JsonPath: "provider", Meaning: "a provider of its settings"},
		},
		AuthGuidance:     Guidance(),
		SessionLocations: []string{"~/.local/share/opencode/opencode.db (read by the CLI's own commands)"},
		ConfigLocations:  []string{"~/.config/opencode/opencode.json", "opencode.json in the project"},
		Notes: []string{
			"Models are named provider/model.",
			"Without any sign-in it uses free models of its own over the network.",
			"Commands, edits and fetches are asked about, whatever its settings say, unless OPENCODE_CONFIG_CONTENT is set: then that decides.",
			"With the driver acp token_usage has the last request of a turn only: the CLI does not tell the others. Its cost has them all. The driver run tells every step.",
			"With the driver run it cannot ask or be told more, and text does not stream; approvals are then auto or deny.",
		},
		HomePaths:         []string{"${XDG_CONFIG_HOME:-~/.config}/opencode/", "${XDG_DATA_HOME:-~/.local/share}/opencode/", "${XDG_STATE_HOME:-~/.local/state}/opencode/", "${XDG_CACHE_HOME:-~/.cache}/opencode/"},
		McpFiles:          mcpFiles(),
		SkillFolders:      skillFolders(),
		CallerEnv:         []string{"OPENCODE_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"},
		InactivitySeconds: inactivitySeconds,
		Drivers:           []string{driverACP, driverRun},
	}
	for _, t := range eventTypes {
		agent.EventTypes = append(agent.EventTypes, string(t))
	}
	return agent
}

// eventTypes is what this adapter can emit, and nothing else: a test compares the
// transcripts with it.
var eventTypes = []pluginapi.Type{
	"session_start", "skill_loaded", "session_resume", "session_fork", "session_end", "session_title", "user_message", "turn_start", "turn_end", "step_start", "step_end",
	"message_start", "text_delta", "message_stop", "session_checkpoint", "context_limit_warning", "thinking_start", "thinking_delta", "thinking_stop",
	"tool_call_start", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_write", "file_create", "file_patch", "shell_start", "shell_stdout_delta", "shell_exit",
	"mcp_tool_call_start", "mcp_tool_result", "subagent_spawn", "subagent_result", "skill_invoked", "todo_update", "token_usage", "cost",
	"approval_request", "approval_granted", "approval_denied", "interrupted",
	"auth_error", "rate_limit_error", "context_exceeded", "error", "debug", "log",
}
