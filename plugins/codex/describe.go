package main

import (
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/pattern"
)

const (
	agentID = "codex"

	driverServer = "app-server"
	driverExec   = "exec"

	// Older ones lack app-server's requests for approval as they are now.
	minimumVersion = "0.169.0"
	testedVersion  = "0.169.0"

	// A command of the agent may run for long without a line, and so does a model
	// that thinks hard.
	inactivitySeconds = 900
)

var drivers = []string{driverServer, driverExec}

// efforts are the portable levels.
var efforts = []string{"low", "medium", "high", "max"}

// nativeEfforts are the words of the CLI's models, the least first. "ultra" is no
// more thinking than max: with it the agent hands work to sub-agents by itself.
var nativeEfforts = []string{"low", "medium", "high", "xhigh", "max", "ultra"}

// nativeEffort is the word for an effort that a model has, of which has is the
// list; empty: not known. max is the most that the model thinks.
func nativeEffort(effort, model string, has []string) (string, error) {
	switch {
	case len(has) == 0 && effort == "max":
		return "", sdk.Cannot(agentID, "effort \"max\" with the model "+model+", whose efforts it does not know", "use low, medium or high")
	case len(has) == 0 || slices.Contains(has, effort):
		return effort, nil
	case effort == "max":
		for _, word := range slices.Backward(nativeEfforts) {
			if word != "ultra" && slices.Contains(has, word) {
				return word, nil
			}
		}
	}
	return "", sdk.Cannot(agentID, "effort \""+effort+"\" with the model "+model, "it has "+strings.Join(has, ", "))
}

var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// userAgent is how the CLI tells its version: after the client's name.
var userAgent = pattern.New(`/(\d+\.\d+\.\d+)`)

func versionOf(agent string) string {
	if m := userAgent.FindStringSubmatch(agent); m != nil {
		return m[1]
	}
	return ""
}

// Describe says what Codex is and can do.
func (adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:          agentID,
		DisplayName: "Codex",
		Summary:     "OpenAI's coding agent, by its app-server protocol",
		Program:     "codex",
		Versions: &pluginapi.Versions{
			Minimum: minimumVersion,
			Tested:  testedVersion,
			Args:    []string{"--version"},
			Pattern: `^codex-cli (\d+\.\d+\.\d+)`,
		},
		Platforms: slices.Clone(platforms),
		Capabilities: &pluginapi.Capabilities{
			Resume: true, ContinueLast: true, Fork: true, NoSession: true, MultiTurn: true,
			TextStreaming: true, Thinking: true, Tools: true, Approvals: true, Questions: true,
			Interrupt: true, Model: true, SetModel: true, SystemAppend: true, SystemReplace: true,
			Mcp: true, AddDirs: true, MaxTurns: true, JsonSchema: true, AttachFiles: true, AttachImages: true,
			Subagents: true, ListSessions: true, ReadSession: true, ListPlugins: true,
			McpSettings: true, ChangePlugins: true,
		},
		// Those that the CLI's own catalog lists; which one it takes without --model
		// depends on its configuration.
		Models: []*pluginapi.Model{
			{Id: "gpt-6.1-sol", DisplayName: "GPT-6.1-Sol", IsDefault: true},
			{Id: "gpt-6-astra", DisplayName: "GPT-6-Astra"},
			{Id: "gpt-6-sol", DisplayName: "GPT-6-Sol"},
			{Id: "gpt-6-luna", DisplayName: "GPT-6-Luna"},
			{Id: "gpt-5.6-sol", DisplayName: "GPT-5.6-Sol"},
			{Id: "gpt-6.1-terra", DisplayName: "GPT-6.1 Terra"},
			{Id: "gpt-5.6-terra", DisplayName: "GPT-5.6-Terra"},
			{Id: "gpt-5.6-luna", DisplayName: "GPT-5.6-Luna"},
			{Id: "gpt-5.5", DisplayName: "GPT-5.5"},
		},
		Installs: []*pluginapi.Install{
			{
				Kind: "npm",
				Argv: []string{"npm", "install", "-g", "@openai/codex@" + testedVersion},
				Note: "About 400 MB. Node.js is needed for npm and its launcher, not by the program itself.",
				Prerequisites: []*pluginapi.Prerequisite{
					{Program: "npm"},
					{Program: "node", Minimum: "16.0.0", Args: []string{"--version"}, Pattern: `^v(\d+\.\d+\.\d+)`},
				},
			},
		},
		AuthProbes:       authProbes(),
		AuthGuidance:     slices.Clone(authGuidance),
		SessionLocations: []string{"~/.codex/sessions (or $CODEX_HOME/sessions)"},
		ConfigLocations:  []string{"~/.codex/config.toml (or $CODEX_HOME/config.toml)"},
		Notes: []string{
			"Besides the portable efforts it has xhigh and ultra, by model. max is the most that the model thinks, not ultra, which hands work to sub-agents.",
			"With --approve ask, deny and rules it asks before every command but those that it knows only to read (ls, cat, grep …); with auto only for what its sandbox (the project and the added directories) keeps from it.",
			"It asks the person questions in its Plan mode, or with its feature default_mode_request_user_input, which is under development.",
			"Without a network it would wait forever: amux gives the turn up at the third try, after about 16 seconds, or two minutes with the built-in provider, which it first tries by WebSocket.",
			"The driver exec runs one turn of `codex exec` and asks nobody: --approve deny means a sandbox that only reads, auto means no sandbox.",
			"When a session is resumed without --model, it goes on with the model of Codex's configuration.",
			"The built-in provider takes what `codex login` left; the driver exec also CODEX_API_KEY. OPENAI_API_KEY is not used.",
		},
		HomePaths:         []string{"${CODEX_HOME:-~/.codex}/"},
		McpFiles:          mcpFiles(),
		SkillFolders:      skillFolders(),
		CallerEnv:         []string{"CODEX_*", "OPENAI_*"},
		InactivitySeconds: inactivitySeconds,
		Drivers:           slices.Clone(drivers),
	}
	for _, level := range efforts {
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
	"session_start", "session_resume", "session_fork", "session_end", "session_title", "user_message",
	"turn_start", "turn_end",
	"message_start", "text_delta", "message_stop", "stream_fallback", "context_limit_warning", "thinking_start", "thinking_delta", "thinking_stop",
	"tool_call_start", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_create", "file_delete", "file_patch",
	"shell_start", "shell_stdout_delta", "shell_exit",
	"mcp_tool_call_start", "mcp_tool_result", "mcp_tool_error",
	"subagent_spawn", "subagent_result", "subagent_error",
	"todo_update", "token_usage",
	"input_required", "input_answered", "approval_request", "approval_granted", "approval_denied",
	"rate_limited", "context_compacted", "retry", "interrupted",
	"auth_error", "rate_limit_error", "context_exceeded", "error", "debug", "log",
}
