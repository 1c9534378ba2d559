package main

import (
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/plugins/internal/streamjson"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// risks of the CLI's own tools: reading is low, what runs code is high. All
// others are medium.
var risks = map[string]string{
	"Read": "low", "Grep": "low", "Glob": "low", "LS": "low", "WebSearch": "low",
	"TodoWrite": "low", "ToolSearch": "low", "ExitPlanMode": "low",
	"Bash": "high", "PowerShell": "high", "Workflow": "high",
}

// toolKinds are those of the tools whose input rules look into.
var toolKinds = map[string]string{
	"Bash": pluginapi.ToolShell, "PowerShell": pluginapi.ToolCommand, "WebFetch": pluginapi.ToolFetch,
	"Read": pluginapi.ToolFile, "Write": pluginapi.ToolFile, "Edit": pluginapi.ToolFile, "MultiEdit": pluginapi.ToolFile, "NotebookEdit": pluginapi.ToolFile,
}

// judged are the keys of the input that say what a tool of the kind is asked to do.
var judged = map[string][]string{
	pluginapi.ToolShell: {"command"}, pluginapi.ToolCommand: {"command"}, pluginapi.ToolFetch: {"url"}, pluginapi.ToolFile: {"file_path", "notebook_path"},
}

// question says what the CLI asks permission for, or what it asks.
func question(q *turn.Question, request jsonl.Value) {
	if q.Tool == "AskUserQuestion" {
		if q.Questions = streamjson.Questions(request.Get("input")); len(q.Questions) > 0 {
			return
		}
	}
	if risk := risks[q.Tool]; risk != "" {
		q.Risk = risk
	}
	q.ToolKind = toolKinds[q.Tool]
	q.Detail = subject(q.Tool, request)
}

// subject is the line that somebody has to judge.
func subject(name string, request jsonl.Value) string {
	input := request.Get("input")
	for _, key := range append(judged[toolKinds[name]], "command", "file_path", "notebook_path", "url", "plan", "prompt") {
		if text := input.Text(key); text != "" {
			return text
		}
	}
	if text := request.Text("description"); text != "" {
		return text
	}
	if strings.HasPrefix(name, streamjson.MCPPrefix) {
		return string(input.Raw())
	}
	return name
}
