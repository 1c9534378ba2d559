package main

import (
	"slices"

	"github.com/amux-dev/amux/pluginapi"
)

const (
	agentID = "claude"
	driver  = "stream-json"

	minimumVersion = "2.1.0"
	testedVersion  = "2.1.329"

	// A shell command of the agent may run for ten minutes without a line.
	inactivitySeconds = 660
)

// efforts are the portable levels; the CLI has the same words for them.
var efforts = []string{"low", "medium", "high", "max"}

// nativeEfforts is what --effort takes. A value it does not know is ignored with
// a warning, so Plan checks first.
var nativeEfforts = []string{"low", "medium", "high", "xhigh", "max"}

var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// Describe says what Claude Code is and can do.
func (adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:          agentID,
		DisplayName: "Claude Code",
		Summary:     "Anthropic's coding agent, by its stream-json protocol",
		Program:     "claude",
		Versions: &pluginapi.Versions{
			Minimum: minimumVersion,
			Tested:  testedVersion,
			Args:    []string{"--version"},
			Pattern: `^(\d+\.\d+\.\d+)`,
		},
		Platforms: slices.Clone(platforms),
		Capabilities: &pluginapi.Capabilities{
			Resume: true, ContinueLast: true, Fork: true, NoSession: true, MultiTurn: true,
			TextStreaming: true, Thinking: true, Tools: true, Approvals: true, Questions: true,
			Interrupt: true, Model: true, SetModel: true, SystemAppend: true, SystemReplace: true,
			Mcp: true, AddDirs: true, MaxTurns: true, MaxBudget: true, JsonSchema: true,
			AttachFiles: true, AttachImages: true, Subagents: true, ListSessions: true,
			ReadSession: true, ListPlugins: true, ToolRules: true,
			McpSettings: true, ChangePlugins: true, EditApprovals: true,
		},
		// The CLI resolves an alias to the newest model of that name. Which one it
		// takes without --model depends on the account.
		Models: []*pluginapi.Model{
			{Id: "opus", DisplayName: "Claude Opus", Aliases: []string{"claude-opus-5-5"}},
			{Id: "sonnet", DisplayName: "Claude Sonnet", Aliases: []string{"claude-sonnet-5-5"}},
			{Id: "haiku", DisplayName: "Claude Haiku", Aliases: []string{"claude-haiku-5-5"}},
			{Id: "fable", DisplayName: "Claude Fable"},
		},
		Installs: []*pluginapi.Install{
			{
				Kind: "npm",
				Argv: []string{"npm", "install", "-g", "@anthropic-ai/claude-code@" + testedVersion},
				Note: "A native binary of about 380 MB. Node.js is needed for npm only, not to run it.",
				Prerequisites: []*pluginapi.Prerequisite{
					{Program: "npm"},
					{Program: "node", Minimum: "22.0.0", Args: []string{"--version"}, Pattern: `^v(\d+\.\d+\.\d+)`},
				},
			},
			{
				Kind:          "brew",
				Platforms:     []string{"darwin"},
				Argv:          []string{"brew", "install", "--cask", "claude-code"},
				Prerequisites: []*pluginapi.Prerequisite{{Program: "brew"}},
			},
			{
				Kind:      "manual",
				Platforms: []string{"linux", "darwin"},
				Note:      "The native installer: curl -fsSL https://claude.ai/install.sh | bash",
			},
			{
				Kind:      "manual",
				Platforms: []string{"windows"},
				Note:      "The native installer, in PowerShell: irm https://claude.ai/install.ps1 | iex",
			},
		},
		AuthProbes:       authProbes(),
		AuthGuidance:     slices.Clone(authGuidance),
		SessionLocations: []string{"~/.claude/projects (or $CLAUDE_CONFIG_DIR/projects)"},
		ConfigLocations: []string{
			"~/.claude/settings.json (or $CLAUDE_CONFIG_DIR/settings.json)",
			"~/.claude.json",
			".claude/settings.json and .claude/settings.local.json in the project",
			".mcp.json in the project",
		},
		Notes: []string{
			"Besides the portable efforts it has xhigh, between high and max.",
			"A session keeps the system prompt of its first run: on --resume, Claude Code ignores another --system until the conversation is compacted.",
			"Money is the list price that Claude Code computes, also where a subscription pays.",
		},
		HomePaths:         []string{"${CLAUDE_CONFIG_DIR:-~/.claude}/", "${CLAUDE_CONFIG_DIR:-~}/.claude.json"},
		McpFiles:          mcpFiles(),
		SkillFolders:      skillFolders(),
		CallerEnv:         []string{"ANTHROPIC_*", "CLAUDE_*", "DISABLE_AUTOUPDATER"},
		InactivitySeconds: inactivitySeconds,
		Drivers:           []string{driver},
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
	"turn_start", "turn_end", "step_start", "step_end",
	"message_start", "text_delta", "message_stop", "context_limit_warning", "stream_fallback", "thinking_start", "thinking_delta", "thinking_stop",
	"tool_call_start", "tool_input_delta", "tool_call_ready", "tool_result", "tool_error",
	"file_read", "file_write", "file_create", "file_patch",
	"shell_start", "shell_stdout_delta", "shell_stderr_delta", "shell_exit",
	"mcp_tool_call_start", "mcp_tool_result", "mcp_tool_error",
	"subagent_spawn", "subagent_result", "subagent_error", "plugin_loaded", "skill_loaded", "skill_invoked",
	"image_output", "todo_update", "cost", "token_usage",
	"input_required", "input_answered", "approval_request", "approval_granted", "approval_denied",
	"mode_changed", "rate_limited", "context_compacted", "retry", "interrupted",
	"auth_error", "rate_limit_error", "context_exceeded", "error", "debug", "log",
}
