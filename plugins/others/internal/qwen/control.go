package qwen

import (
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/plugins/internal/streamjson"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// question says what the CLI asks permission for, or what it asks.
func question(q *turn.Question, request jsonl.Value) {
	input := request.Get("input")
	if risk := risks[q.Tool]; risk != "" {
		q.Risk = risk
	}
	if q.Tool == "ask_user_question" {
		q.Questions = streamjson.Questions(input)
		return
	}
	q.Detail = subject(q.Tool, request)
	d := detail(q.Tool, input)
	switch q.ToolKind = d.ToolKind(); {
	case q.ToolKind == pluginapi.ToolShell:
		q.Detail = d.Command
	case q.ToolKind == pluginapi.ToolFile:
		q.Detail = d.Path
	case q.Tool == "web_fetch" && q.Detail == input.Text("url"):
		q.ToolKind = pluginapi.ToolFetch
	}
}

// subject is the line that somebody has to judge.
func subject(name string, request jsonl.Value) string {
	input := request.Get("input")
	for _, key := range []string{"command", "file_path", "notebook_path", "url", "plan", "prompt"} {
		if text := input.Text(key); text != "" {
			return text
		}
	}
	for _, suggestion := range request.Items("permission_suggestions") {
		if suggestion.Text("type") == "allow" && suggestion.Text("description") != "" {
			return suggestion.Text("description")
		}
	}
	return name
}
