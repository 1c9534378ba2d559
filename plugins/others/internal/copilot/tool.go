package copilot

import (
	"strings"

	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/turn"
)

// detail is what a tool is for, by its name and input.
func detail(name string, input jsonl.Value) turn.Detail {
	path := input.Text("path")
	switch name {
	case "bash":
		return turn.Detail{Kind: turn.Shell, Command: input.Text("command")}
	case "view":
		return turn.Detail{Kind: turn.Read, Path: path}
	case "create":
		n := int64(len(input.Bytes("file_text")))
		return turn.Detail{Kind: turn.Write, Path: path, Bytes: &n}
	case "edit":
		return turn.Detail{Kind: turn.Edit, Path: path, Diff: turn.Replacement(input.Text("old_str"), input.Text("new_str"))}
	case "task":
		return turn.Detail{Kind: turn.Subagent, Agent: input.Text("agent_type"), Prompt: input.Text("prompt")}
	}
	return turn.Detail{}
}

var exitPattern = pattern.New(`<shellId: \S+ completed with exit code -?\d+>$`)

// printed is what a command has printed, of the answer of its tool: the CLI adds a
// line about the exit, after a line break of its own where none was. shown is what
// it has told of the output before.
func printed(text, shown string) string {
	text = exitPattern.ReplaceAllString(text, "")
	if text == shown+"\n" {
		return shown
	}
	return text
}

// exited ends a command: one that fails is told as one that has ended.
func exited(r *turn.Result, code int) {
	r.ExitCode = &code
	if code != 0 && !r.Failed {
		r.Failed = true
		r.Text = strings.TrimPrefix(r.Text, "\n")
	}
}
