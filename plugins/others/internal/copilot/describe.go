// Package copilot is the adapter for the GitHub Copilot CLI (not for gh copilot,
// which is another program).
//
// It drives the CLI by the Agent Client Protocol (copilot --acp), where it can
// ask, be interrupted and go on for many turns; acp.go says what it does there in
// its own way. For one prompt without questions there are the CLI's own lines
// (driver json, lines.go), which tell sub-agents, retries and the provider's
// errors. plan.go says how the CLI is started, talk.go reads what lines and stored
// sessions (sessions.go) have in common.
package copilot

import (
	"context"
	"slices"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/authprobe"
	"github.com/amux-dev/amux/sdk"
)

const (
	agentID        = "copilot"
	driverACP      = "acp"
	driverJSON     = "json"
	minimumVersion = "1.0.0"
	testedVersion  = "1.0.102"

	// The CLI tries a provider that refuses for a minute, almost without a line.
	inactivitySeconds = 660
)

// Adapter knows Copilot. It has no state.
type Adapter struct{}

var (
	_ sdk.Adapter       = Adapter{}
	_ sdk.Converser     = Adapter{}
	_ sdk.AuthDetector  = Adapter{}
	_ sdk.SessionLister = Adapter{}
	_ sdk.SessionReader = Adapter{}
	_ sdk.PluginLister  = Adapter{}
)

// nativeEfforts are the levels of --reasoning-effort.
var nativeEfforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

var authGuidance = []string{
	"Run `copilot login`",
	"or set COPILOT_GITHUB_TOKEN to a fine-grained token of GitHub's",
	"or name a provider of your own: COPILOT_PROVIDER_BASE_URL, COPILOT_PROVIDER_API_KEY and COPILOT_MODEL",
}

// authProbes are the places where the CLI looks, the one that wins first.
func authProbes() []*pluginapi.AuthProbe {
	return []*pluginapi.AuthProbe{
		{Method: "provider", Provider: "own", Env: "COPILOT_PROVIDER_BASE_URL", Meaning: "a provider of one's own, without GitHub"},
		{Method: "token", Provider: "github", Env: "COPILOT_GITHUB_TOKEN", Meaning: "a token of GitHub's"},
		{Method: "token", Provider: "github", Env: "GH_TOKEN", Meaning: "a token of GitHub's"},
		{Method: "token", Provider: "github", Env: "GITHUB_TOKEN", Meaning: "a token of GitHub's"},
	}
}

// DetectAuth adds to the probes that a login may be where amux does not look: the
// CLI keeps it in the system's keychain, and takes that of gh.
func (Adapter) DetectAuth(_ context.Context, req *pluginapi.AuthRequest) (*pluginapi.AuthResponse, error) {
	caller := req.GetCaller()
	states := authprobe.Evaluate(authProbes(), caller, authprobe.Options{})
	own := slices.ContainsFunc(states, func(s *pluginapi.AuthState) bool {
		return s.Provider == "own" && s.Status == authprobe.Authenticated
	})
	kept := states[:0]
	for _, state := range states {
		switch {
		case state.Status == authprobe.Authenticated:
		case state.Provider == "own" || own:
			continue // one way to sign in is enough
		case wasStarted(caller):
			state.Status, state.Found = authprobe.Unknown, "perhaps the keychain, which amux does not read"
		}
		kept = append(kept, state)
	}
	return &pluginapi.AuthResponse{States: kept, Guidance: authGuidance}, nil
}

// wasStarted reports whether the CLI or gh has left a file, and so may have a login.
func wasStarted(caller *pluginapi.Caller) bool {
	files := []*pluginapi.AuthProbe{
		{Method: "file", Provider: "any", File: "${COPILOT_HOME:-~/.copilot}/config.json"},
		{Method: "file", Provider: "any", File: "${XDG_CONFIG_HOME:-~/.config}/gh/hosts.yml"},
	}
	return slices.ContainsFunc(authprobe.Evaluate(files, caller, authprobe.Options{}), func(s *pluginapi.AuthState) bool {
		return s.Status != authprobe.Unauthenticated
	})
}

// Describe implements sdk.Adapter.
func (Adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:          agentID,
		DisplayName: "GitHub Copilot CLI",
		Summary:     "GitHub's coding agent, by the Agent Client Protocol",
		Program:     "copilot",
		Versions: &pluginapi.Versions{
			Minimum: minimumVersion, Tested: testedVersion,
			Args: []string{"--version"}, Pattern: `(\d+\.\d+\.\d+)`,
		},
		Platforms: []string{"linux", "darwin", "windows"},
		Capabilities: &pluginapi.Capabilities{
			Resume: true, ContinueLast: true, MultiTurn: true, TextStreaming: true, Thinking: true, Tools: true, Approvals: true,
			Interrupt: true, Model: true, SetModel: true, SystemAppend: true, Mcp: true, AttachFiles: true, AttachImages: true,
			Subagents: true, ListSessions: true, ReadSession: true, ListPlugins: true,
			McpSettings: true, ChangePlugins: true,
		},
		Installs: []*pluginapi.Install{{
			Kind: "npm", Argv: []string{"npm", "install", "-g", "@github/copilot@" + testedVersion},
			Note:          "A native binary of 189 MB, and a launcher that runs on Node.js.",
			Prerequisites: []*pluginapi.Prerequisite{{Program: "npm"}, {Program: "node", Minimum: "22.0.0", Args: []string{"--version"}, Pattern: `^v(\d+\.\d+\.\d+)`}},
		}},
		AuthProbes:       authProbes(),
		AuthGuidance:     slices.Clone(authGuidance),
		SessionLocations: []string{"~/.copilot/session-state (or $COPILOT_HOME/session-state)"},
		ConfigLocations:  []string{"~/.copilot/settings.json", "~/.copilot/mcp-config.json", ".github/copilot-instructions.md in the project"},
		Notes: []string{
			"With a provider of one's own (COPILOT_PROVIDER_BASE_URL) it needs no account; that is how it is tested.",
			"Besides the portable efforts it has none, minimal and xhigh. A model that has no efforts is refused with one.",
			"With the driver acp the errors of a provider come as text, which amux knows by its words, and what a sub-agent says comes as if the agent said it. The driver json tells both.",
			"Its --add-dir changes nothing by ACP, so that amux does not offer it; what is outside of the folder it asks about.",
			"With the driver json it cannot ask or be told more; approvals are then auto or deny. Of a session that goes on it does not tell the tokens of the turn.",
		},
		HomePaths:         []string{"${COPILOT_HOME:-~/.copilot}/"},
		McpFiles:          mcpFiles(),
		SkillFolders:      skillFolders(),
		CallerEnv:         []string{"COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "XDG_CONFIG_HOME"},
		InactivitySeconds: inactivitySeconds,
		Drivers:           []string{driverACP, driverJSON},
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
	"session_start", "session_resume", "session_end", "session_title", "user_message", "turn_start", "turn_end", "step_start", "step_end",
	"message_start", "text_delta", "message_stop", "context_limit_warning", "stream_fallback", "skill_loaded", "thinking_start", "thinking_delta", "thinking_stop",
	"tool_call_start", "tool_input_delta", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_create", "file_patch", "shell_start", "shell_stdout_delta", "shell_exit",
	"mcp_tool_call_start", "mcp_tool_result", "mcp_tool_error", "subagent_spawn", "subagent_result", "subagent_error", "token_usage",
	"approval_request", "approval_granted", "approval_denied", "interrupted", "retry", "rate_limited",
	"auth_error", "rate_limit_error", "context_exceeded", "error", "debug", "log",
}
