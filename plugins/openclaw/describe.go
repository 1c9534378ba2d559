package main

import (
	"slices"

	"github.com/amux-dev/amux/pluginapi"
)

const (
	agentID        = "openclaw"
	driverAuto     = "auto" // exec, or local where a session is to go on
	driverExec     = "exec"
	driverLocal    = "local"
	driverACP      = "acp"
	minimumVersion = "2026.9.0"
	testedVersion  = "2026.9.6"

	// It prints nothing before it is done, and tries a provider that refuses for
	// minutes.
	inactivitySeconds = 1800
)

// nativeEfforts are the levels of --thinking.
var nativeEfforts = []string{"off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max", "ultra"}

var authGuidance = []string{
	"Run `openclaw onboard`, or `openclaw models auth login`",
	"or set the key of a provider: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …",
}

// Describe says what OpenClaw is and can do.
func (adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:          agentID,
		DisplayName: "OpenClaw",
		Summary:     "The personal assistant OpenClaw, one prompt at a time, or by a gateway that runs",
		Program:     "openclaw",
		Versions: &pluginapi.Versions{
			Minimum: minimumVersion, Tested: testedVersion,
			Args: []string{"--version"}, Pattern: `^OpenClaw (\d+\.\d+\.\d+)`,
		},
		Platforms: []string{"linux", "darwin", "windows"},
		Capabilities: &pluginapi.Capabilities{
			Resume: true, NoSession: true, MultiTurn: true, TextStreaming: true, Thinking: true, Tools: true, Approvals: true,
			Interrupt: true, Model: true, Mcp: true, AttachFiles: true, AttachImages: true, ListSessions: true, ListModels: true,
			PtyOptional: true, BypassApprovals: true,
			McpSettings: true, ListPlugins: true, ChangePlugins: true,
		},
		Installs: []*pluginapi.Install{{
			Kind: "npm", Argv: []string{"npm", "install", "-g", "openclaw@" + testedVersion},
			Note: "About 650 MB. A gateway, which amux does not start, takes more than 1 GB of memory.",
			Prerequisites: []*pluginapi.Prerequisite{
				{Program: "npm"},
				{Program: "node", Minimum: "24.16.0", Args: []string{"--version"}, Pattern: `^v(\d+\.\d+\.\d+)`},
			},
		}},
		AuthProbes: []*pluginapi.AuthProbe{
			{Method: "config_file", Provider: "openclaw", File: "${OPENCLAW_STATE_DIR:-~/.openclaw}/agents/main/agent/openclaw-agent.sqlite", JsonPath: "credentials", Meaning: "perhaps signed in: its database is there, which amux does not read; `openclaw models status` tells"},
			{Method: "api_key", Provider: "anthropic", Env: "ANTHROPIC_API_KEY", Meaning: "a key of the Anthropic API"},
			{Method: "api_key", Provider: "openai", Env: "OPENAI_API_KEY", Meaning: "a key of the OpenAI API"},
			{Method: "api_key", Provider: "google", Env: "GEMINI_API_KEY", Meaning: "a key of the Gemini API"},
			{Method: "config_file", Provider: "configured", File: "${OPENCLAW_CONFIG_PATH:-~/.openclaw/openclaw.json}", JsonPath: "models.providers", Meaning: "a provider of its settings"},
		},
		AuthGuidance:     slices.Clone(authGuidance),
		SessionLocations: []string{"~/.openclaw/agents/AGENT/agent/openclaw-agent.sqlite (read by the CLI's own command)"},
		HomePaths:        []string{"${OPENCLAW_STATE_DIR:-~/.openclaw}/"},
		ConfigLocations:  []string{"~/.openclaw/openclaw.json (or $OPENCLAW_CONFIG_PATH)"},
		Notes: []string{
			"A run is one prompt and keeps no session (openclaw agent exec). With --driver local it has one, which --resume goes on with; that needs its state for itself, so that it is refused while a gateway runs.",
			"Both print one document at the end: nothing streams, of tools only their names are told, and approvals must be auto.",
			"--driver acp speaks to a gateway that you run, and neither starts nor stops it: the one of OpenClaw's own settings, or that of AMUX_OPENCLAW_URL (ws://…) with its token in the file AMUX_OPENCLAW_TOKEN_FILE. There text streams, tools are told, commands can be asked about, and more prompts can follow. What the provider refuses is not told there: the turn ends without a word.",
			"Models are named provider/model. Besides the portable efforts it has off, minimal, xhigh, adaptive and ultra, each where the model has it.",
			"With --pty it is OpenClaw's own screen, for people: amux attach.",
			"After one refused sign-in it refuses a configured key for about a minute (driver local).",
			"Each of its state directories leaves three empty files in /tmp/openclaw-state-locks-UID, whatever TMPDIR says.",
		},
		McpFiles:          mcpFiles(),
		SkillFolders:      skillFolders(),
		CallerEnv:         []string{"OPENCLAW_*", "AMUX_OPENCLAW_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "NODE_COMPILE_CACHE", "TMPDIR"},
		InactivitySeconds: inactivitySeconds,
		Drivers:           []string{driverAuto, driverExec, driverLocal, driverACP},
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
	"session_start", "skill_loaded", "session_resume", "session_end", "turn_start", "turn_end", "message_start", "text_delta", "message_stop", "context_limit_warning",
	"thinking_start", "thinking_delta", "thinking_stop", "tool_call_start", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_write", "file_patch", "shell_start", "shell_stdout_delta", "shell_exit", "session_title",
	"mode_changed", "token_usage", "cost", "rate_limited", "retry", "approval_request", "approval_granted", "approval_denied", "interrupted",
	"auth_error", "rate_limit_error", "context_exceeded", "error", "debug", "log",
}
