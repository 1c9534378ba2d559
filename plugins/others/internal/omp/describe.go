// Package omp is the adapter for omp, which comes from Pi and has gone ways of its
// own.
//
// It drives the CLI by its RPC mode: the package pirpc reads its lines and
// what they leave on disk; dialect.go says what omp does there in its own way, plan.go
// how it is started. By RPC it asks for nothing before it acts; so where somebody is
// to be asked, it is driven by the Agent Client Protocol (acp.go), where it asks about
// commands.
package omp

import (
	"slices"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

const (
	agentID        = "omp"
	driverAuto     = "auto" // rpc, or acp where somebody is to be asked
	driverRPC      = "rpc"
	driverACP      = "acp"
	minimumVersion = "18.0.0"
	testedVersion  = "18.2.3"

	// The CLI tries a provider that refuses for minutes.
	inactivitySeconds = 660
)

// Adapter knows omp. It has no state.
type Adapter struct{}

var (
	_ sdk.Adapter       = Adapter{}
	_ sdk.Converser     = Adapter{}
	_ sdk.SessionLister = Adapter{}
	_ sdk.ModelLister   = Adapter{}
	_ sdk.SessionReader = Adapter{}
	_ sdk.PluginLister  = Adapter{}
)

// nativeEfforts are the levels of --thinking.
var nativeEfforts = []string{"off", "minimal", "low", "medium", "high", "xhigh", "max", "auto"}

var authGuidance = []string{
	"Run `omp` and sign in with /login",
	"or set the key of a provider: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …",
}

// Describe implements sdk.Adapter.
func (Adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:          agentID,
		DisplayName: "omp",
		Summary:     "The coding agent oh-my-pi, by its RPC mode",
		Program:     "omp",
		Versions: &pluginapi.Versions{
			Minimum: minimumVersion, Tested: testedVersion,
			Args: []string{"--version"}, Pattern: `^omp/(\d+\.\d+\.\d+)`,
		},
		Platforms: []string{"linux", "darwin", "windows"},
		Capabilities: &pluginapi.Capabilities{
			Resume: true, ContinueLast: true, Fork: true, NoSession: true, MultiTurn: true, TextStreaming: true, Thinking: true,
			Tools: true, Approvals: true, Interrupt: true, Model: true, SetModel: true, SystemAppend: true, SystemReplace: true, AddDirs: true,
			AttachFiles: true, AttachImages: true, ListSessions: true, ReadSession: true, ListPlugins: true, ListModels: true, BypassApprovals: true,
			McpSettings: true, ChangePlugins: true,
		},
		Installs: []*pluginapi.Install{{
			Kind: "npm", Argv: []string{"npm", "install", "-g", "@oh-my-pi/pi-coding-agent@" + testedVersion},
			Note: "It runs on Bun, not on Node.js, and takes 1.4 GB with its optional models.",
			Prerequisites: []*pluginapi.Prerequisite{
				{Program: "npm"},
				{Program: "bun", Minimum: "1.3.14", Args: []string{"--version"}, Pattern: `^(\d+\.\d+\.\d+)`},
			},
		}},
		AuthProbes: []*pluginapi.AuthProbe{
			{Method: "config_file", Provider: "omp", File: "${PI_CODING_AGENT_DIR:-~/.omp/agent}/agent.db", JsonPath: "credentials", Meaning: "perhaps signed in: its database is there, which amux does not read"},
			{Method: "api_key", Provider: "anthropic", Env: "ANTHROPIC_API_KEY", Meaning: "a key of the Anthropic API"},
			{Method: "api_key", Provider: "openai", Env: "OPENAI_API_KEY", Meaning: "a key of the OpenAI API"},
			{Method: "api_key", Provider: "google", Env: "GEMINI_API_KEY", Meaning: "a key of the Gemini API"},
			{Method: "config_file", Provider: "configured", File: "${PI_CODING_AGENT_DIR:-~/.omp/agent}/models.yml", Meaning: "a provider of its own settings"},
		},
		AuthGuidance:     slices.Clone(authGuidance),
		SessionLocations: []string{"~/.omp/agent/sessions (or $PI_CODING_AGENT_DIR/sessions)"},
		ConfigLocations:  []string{"~/.omp/agent/config.yml", "~/.omp/agent/models.yml"},
		Notes: []string{
			"By RPC it asks for nothing before it acts, so that runs with another --approve than auto are driven by ACP (the driver auto).",
			"By ACP it asks about every tool that does more than read. Forks, and sessions that are not kept, need the driver rpc.",
			"Models are named provider/model. Besides the portable efforts it has off, minimal, xhigh and auto.",
			"On Windows it is unproven, and a run says so.",
		},
		HomePaths:         []string{"~/.omp/", "${PI_CODING_AGENT_DIR:-~/.omp/agent}/"},
		McpFiles:          mcpFiles(),
		SkillFolders:      skillFolders(),
		CallerEnv:         []string{"PI_*", "OMP_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"},
		InactivitySeconds: inactivitySeconds,
		Drivers:           []string{driverAuto, driverRPC, driverACP},
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
	"session_start", "skill_loaded", "session_resume", "session_fork", "session_end", "user_message", "turn_start", "turn_end",
	"step_start", "step_end", "message_start", "text_delta", "message_stop", "context_limit_warning", "stream_fallback", "thinking_start", "thinking_delta", "thinking_stop",
	"tool_call_start", "tool_input_delta", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_write", "file_patch", "shell_start", "shell_stdout_delta", "shell_exit",
	"mcp_tool_call_start", "mcp_tool_result", "mcp_tool_error", "context_compacted", "session_title",
	"token_usage", "cost", "rate_limited", "retry", "approval_request", "approval_granted", "approval_denied", "input_required", "input_answered", "interrupted",
	"auth_error", "rate_limit_error", "context_exceeded", "error", "debug", "log",
}
