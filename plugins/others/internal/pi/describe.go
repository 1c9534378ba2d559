// Package pi is the adapter for Pi.
//
// It drives the CLI by its RPC mode: commands and their answers as JSON lines on
// stdio, and every event of the agent beside them. Pi asks for nothing before it
// acts, so that the only mode of approval is auto. plan.go says how the
// CLI is started; the package pirpc reads its lines and what it leaves on disk.
package pi

import (
	"slices"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

const (
	agentID        = "pi"
	driver         = "rpc"
	minimumVersion = "0.87.0"
	testedVersion  = "1.5.2"

	inactivitySeconds = 660
)

// Adapter knows Pi. It has no state.
type Adapter struct{}

var (
	_ sdk.Adapter       = Adapter{}
	_ sdk.Converser     = Adapter{}
	_ sdk.SessionLister = Adapter{}
	_ sdk.ModelLister   = Adapter{}
	_ sdk.SessionReader = Adapter{}
	_ sdk.PluginLister  = Adapter{}
)

// nativeEfforts are the levels of --thinking. A value that the CLI does not know is
// ignored with a warning, so Plan checks first.
var nativeEfforts = []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}

var authGuidance = []string{
	"Run `pi auth login`",
	"or set the key of a provider: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …",
}

// Describe implements sdk.Adapter.
func (Adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:          agentID,
		DisplayName: "Pi",
		Summary:     "A small coding agent, by its RPC mode",
		Program:     "pi",
		Versions: &pluginapi.Versions{
			Minimum: minimumVersion, Tested: testedVersion,
			Args: []string{"--version"}, Pattern: `^(\d+\.\d+\.\d+)`,
		},
		Platforms: []string{"linux", "darwin", "windows"},
		Capabilities: &pluginapi.Capabilities{
			Resume: true, ContinueLast: true, Fork: true, NoSession: true, MultiTurn: true, TextStreaming: true, Thinking: true,
			Tools: true, Interrupt: true, Model: true, SetModel: true, SystemAppend: true, SystemReplace: true, AttachFiles: true, AttachImages: true,
			ListSessions: true, ReadSession: true, ListPlugins: true, ListModels: true, BypassApprovals: true,
			McpSettings: true, ChangePlugins: true,
		},
		Installs: []*pluginapi.Install{{
			Kind: "npm", Argv: []string{"npm", "install", "-g", "@earendil-works/pi-coding-agent@" + testedVersion},
			Note: "On an older Node.js npm would install an older version without a word, so the version is named.",
			Prerequisites: []*pluginapi.Prerequisite{
				{Program: "npm"},
				{Program: "node", Minimum: "22.19.0", Args: []string{"--version"}, Pattern: `^v(\d+\.\d+\.\d+)`},
			},
		}},
		AuthProbes: []*pluginapi.AuthProbe{
			{Method: "config_file", Provider: "pi", File: "${PI_CODING_AGENT_DIR:-~/.pi/agent}/auth.json", Meaning: "signed in with `pi auth login`"},
			{Method: "api_key", Provider: "anthropic", Env: "ANTHROPIC_API_KEY", Meaning: "a key of the Anthropic API"},
			{Method: "api_key", Provider: "openai", Env: "OPENAI_API_KEY", Meaning: "a key of the OpenAI API"},
			{Method: "api_key", Provider: "google", Env: "GEMINI_API_KEY", Meaning: "a key of the Gemini API"},
			{Method: "config_file", Provider: "configured", File: "${PI_CODING_AGENT_DIR:-~/.pi/agent}/models.json", JsonPath: "providers", Meaning: "a provider of its own settings"},
		},
		AuthGuidance:     slices.Clone(authGuidance),
		SessionLocations: []string{"~/.pi/agent/sessions (or $PI_CODING_AGENT_DIR/sessions)"},
		ConfigLocations:  []string{"~/.pi/agent/settings.json", "~/.pi/agent/models.json", ".pi/settings.json in the project"},
		Notes: []string{
			"It asks for nothing before it acts: runs need --approve auto.",
			"Models are named provider/model. Besides the portable efforts it has off, minimal and xhigh.",
		},
		HomePaths:         []string{"${PI_CODING_AGENT_DIR:-~/.pi/agent}/"},
		McpFiles:          mcpFiles(),
		SkillFolders:      skillFolders(),
		CallerEnv:         []string{"PI_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"},
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

// eventTypes is what this adapter can emit, and nothing else: a test compares the
// transcripts with it.
var eventTypes = []pluginapi.Type{
	"session_start", "session_resume", "session_fork", "session_end", "session_title", "user_message", "turn_start", "turn_end",
	"step_start", "step_end", "message_start", "text_delta", "message_stop", "stream_fallback", "thinking_start", "thinking_delta", "thinking_stop",
	"tool_call_start", "tool_input_delta", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_write", "file_patch", "shell_start", "shell_stdout_delta", "shell_exit", "mcp_tool_call_start", "mcp_tool_result", "mcp_tool_error",
	"token_usage", "cost", "rate_limited", "retry", "context_compacted", "interrupted",
	"auth_error", "rate_limit_error", "context_exceeded", "error", "log",
}
