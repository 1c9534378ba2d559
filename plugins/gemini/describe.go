package main

import (
	"slices"

	"github.com/amux-dev/amux/pluginapi"
)

const (
	agentID        = "gemini"
	driverACP      = "acp"
	driverStream   = "stream-json"
	minimumVersion = "0.60.0"
	testedVersion  = "0.61.0"

	// The CLI tries a limited request for longer than 100 seconds without a line.
	inactivitySeconds = 660
)

var authGuidance = []string{
	"Set GEMINI_API_KEY to a key from https://aistudio.google.com/apikey",
	"or run `gemini` once and sign in with Google",
	"or, for Vertex AI, set GOOGLE_GENAI_USE_VERTEXAI=true and GOOGLE_API_KEY",
}

// Describe says what Gemini CLI is and can do.
func (adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:          agentID,
		DisplayName: "Gemini CLI",
		Summary:     "Google's coding agent, by the Agent Client Protocol",
		Program:     "gemini",
		Versions: &pluginapi.Versions{
			Minimum: minimumVersion, Tested: testedVersion,
			Args: []string{"--version"}, Pattern: `^(\d+\.\d+\.\d+)`,
		},
		Platforms: []string{"linux", "darwin", "windows"},
		Capabilities: &pluginapi.Capabilities{
			Resume: true, MultiTurn: true, TextStreaming: true, Thinking: true, Tools: true, Approvals: true,
			Interrupt: true, Model: true, SetModel: true, SystemReplace: true, Mcp: true, AddDirs: true,
			AttachFiles: true, AttachImages: true, ListSessions: true, ReadSession: true, ListPlugins: true,
			McpSettings: true, ChangePlugins: true,
		},
		Models: []*pluginapi.Model{
			{Id: "auto", DisplayName: "Auto", IsDefault: true},
			{Id: "gemini-3.1-pro-preview", DisplayName: "Gemini 3.1 Pro"},
			{Id: "gemini-3.8-flash", DisplayName: "Gemini 3.8 Flash"},
			{Id: "gemini-2.5-pro", DisplayName: "Gemini 2.5 Pro"},
		},
		Installs: []*pluginapi.Install{
			{
				Kind: "npm",
				Argv: []string{"npm", "install", "-g", "@google/gemini-cli@" + testedVersion},
				Note: "About 100 MB.",
				Prerequisites: []*pluginapi.Prerequisite{
					{Program: "npm"},
					{Program: "node", Minimum: "20.0.0", Args: []string{"--version"}, Pattern: `^v(\d+\.\d+\.\d+)`},
				},
			},
			{
				Kind: "brew", Platforms: []string{"darwin", "linux"}, Argv: []string{"brew", "install", "gemini-cli"},
				Prerequisites: []*pluginapi.Prerequisite{{Program: "brew"}},
			},
		},
		AuthProbes: []*pluginapi.AuthProbe{
			{Method: "api_key", Provider: "google", Env: "GEMINI_API_KEY", Meaning: "a key of the Gemini API"},
			{Method: "oauth", Provider: "google", File: "${GEMINI_CLI_HOME:-~}/.gemini/oauth_creds.json", JsonPath: "access_token", Meaning: "signed in with Google"},
			{Method: "config_file", Provider: "google", File: "${GEMINI_CLI_HOME:-~}/.gemini/gemini-credentials.json", Meaning: "a key that the CLI keeps encrypted"},
			{Method: "cloud", Provider: "vertex", Env: "GOOGLE_GENAI_USE_VERTEXAI", EnvValue: "true", Meaning: "models of Vertex AI, with Google's own credentials"},
		},
		AuthGuidance:     slices.Clone(authGuidance),
		SessionLocations: []string{"~/.gemini/tmp/PROJECT/chats (or $GEMINI_CLI_HOME/.gemini/…)"},
		ConfigLocations:  []string{"~/.gemini/settings.json", ".gemini/settings.json in the project"},
		Notes: []string{
			"A base URL in GOOGLE_GEMINI_BASE_URL needs security.auth.selectedType \"gemini-api-key\" in ~/.gemini/settings.json, else the CLI refuses to start.",
			"With the driver acp, input_tokens include what came from a cache: the CLI does not tell them apart. With stream-json it does.",
			"With the driver stream-json it cannot ask, think aloud or be told more; approvals are then auto or deny.",
			"With the driver acp neither output nor exit code of a command is told, with stream-json no exit code.",
			"A session that is resumed within the minute it began in is overwritten: a bug of the CLI, which names its files by the minute.",
			"Its npm program is a launcher that loses signals; amux starts it so that it becomes the agent itself.",
		},
		HomePaths:         []string{"${GEMINI_CLI_HOME:-~}/.gemini/"},
		McpFiles:          mcpFiles(),
		SkillFolders:      skillFolders(),
		CallerEnv:         []string{"GEMINI_*", "GOOGLE_*"},
		InactivitySeconds: inactivitySeconds,
		Drivers:           []string{driverACP, driverStream},
	}
	for _, t := range eventTypes {
		agent.EventTypes = append(agent.EventTypes, string(t))
	}
	return agent
}

// eventTypes is what this adapter can emit, and nothing else: a test compares the
// transcripts with it.
var eventTypes = []pluginapi.Type{
	"session_start", "skill_loaded", "session_resume", "session_end", "user_message", "turn_start", "turn_end",
	"message_start", "text_delta", "message_stop", "thinking_start", "thinking_delta", "thinking_stop",
	"tool_call_start", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_write", "file_create", "file_patch", "shell_start", "shell_stdout_delta", "shell_exit",
	"mcp_tool_call_start", "mcp_tool_result", "token_usage", "todo_update", "approval_request", "approval_granted", "approval_denied", "mode_changed",
	"interrupted", "auth_error", "rate_limited", "rate_limit_error", "retry", "context_exceeded", "error", "debug", "log",
}
