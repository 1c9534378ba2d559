package qwen

import (
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/plugins/internal/streamjson"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/turn"
)

// detail is what the input of a tool means.
func detail(name string, input jsonl.Value) turn.Detail {
	if d, ok := streamjson.MCP(name); ok {
		return d
	}
	switch name {
	case "run_shell_command":
		return turn.Detail{Kind: turn.Shell, Command: input.Text("command"), Cwd: input.Text("directory")}
	case "read_file":
		return turn.Detail{Kind: turn.Read, Path: path(input)}
	case "write_file":
		n := int64(len(input.Bytes("content")))
		return turn.Detail{Kind: turn.Write, Path: path(input), Bytes: &n}
	case "edit":
		return turn.Detail{Kind: turn.Edit, Path: path(input), Diff: turn.Replacement(input.Text("old_string"), input.Text("new_string"))}
	case "notebook_edit":
		return turn.Detail{Kind: turn.Edit, Path: input.Text("notebook_path"), Diff: turn.Replacement("", input.Text("new_source"))}
	case "agent":
		agent := input.Text("subagent_type")
		if agent == "" {
			agent = "general-purpose"
		}
		return turn.Detail{Kind: turn.Subagent, Agent: agent, Prompt: input.Text("prompt")}
	case "skill":
		return turn.Detail{Kind: turn.Skill, Agent: input.Text("skill")}
	case "todo_write":
		return turn.Detail{Kind: turn.Todo, Todos: streamjson.Todos(input)}
	}
	return turn.Detail{}
}

func path(input jsonl.Value) string {
	for _, key := range []string{"file_path", "absolute_path", "path"} {
		if p := input.Text(key); p != "" {
			return p
		}
	}
	return ""
}

// shellBlock is how the CLI words what a command did when there is more to say
// than its output.
var shellBlock = pattern.New(`(?s)^Command: .*?\nDirectory: [^\n]*\nOutput: (.*?)\nError: (.*?)\nExit Code: ([^\n]*)\nSignal: ([^\n]*)`)

// result is how a tool ended, as its tool_result says.
func result(t *turn.Tool, text string, failed bool) turn.Result {
	r := turn.Result{Text: text, Failed: failed, Output: pluginapi.AppendString(nil, text)}
	switch t.Detail.Kind {
	case turn.Shell:
		shell(&r, text, failed)
	case turn.Subagent:
		r.Background = !failed && strings.HasPrefix(text, "Background agent launched")
	case turn.Write:
		r.Created = strings.HasPrefix(text, "Successfully created")
	}
	return r
}

func shell(r *turn.Result, text string, failed bool) {
	m := shellBlock.FindStringSubmatch(text)
	if m == nil {
		// A command that succeeded and said something gives just that; what failed
		// without an account was not run.
		if failed {
			r.Quiet = true
		} else {
			r.ExitCode = new(int)
		}
		return
	}
	r.Quiet = true
	if m[1] != "(empty)" {
		r.Stdout = m[1]
	}
	if n, err := strconv.Atoi(m[3]); err == nil {
		r.ExitCode = &n
	}
}

// risks of the CLI's own tools: reading is low, what runs code is high. All
// others are medium.
var risks = map[string]string{
	"read_file": "low", "grep_search": "low", "glob": "low", "list_directory": "low", "todo_write": "low",
	"tool_search": "low", "get_goal": "low", "zoom_image": "low", "run_shell_command": "high", "monitor": "high",
}
