package fakemodel

import (
	"fmt"
	"slices"
	"strings"
)

// tool is what one kind of call is named by an agent, and how its input looks.
type tool struct {
	name  string
	input func(args map[string]any) map[string]any
	// beside is a tool that must be offered too: agents have one name for different
	// inputs.
	beside string
}

// tools by kind: of those with the names an agent offers the first is taken. An
// agent whose tools are named otherwise gets a line here.
var tools = map[string][]tool{
	"shell": {
		{"Bash", func(a map[string]any) map[string]any {
			return map[string]any{"command": a["command"], "description": "Run a scripted command"}
		}, ""},
		{"bash", func(a map[string]any) map[string]any {
			return map[string]any{"command": a["command"], "description": "Run a scripted command"}
		}, ""},
		{"run_shell_command", func(a map[string]any) map[string]any {
			return map[string]any{"command": a["command"], "description": "Run a scripted command", "is_background": false}
		}, ""},
		{"exec_command", func(a map[string]any) map[string]any { return map[string]any{"cmd": a["command"]} }, ""},
		{"exec", func(a map[string]any) map[string]any { return map[string]any{"command": a["command"]} }, "process"},
		{"terminal", func(a map[string]any) map[string]any { return map[string]any{"command": a["command"]} }, ""},
	},
	"write": {
		{"Write", func(a map[string]any) map[string]any {
			return map[string]any{"file_path": a["path"], "content": a["content"]}
		}, ""},
		{"write", func(a map[string]any) map[string]any {
			return map[string]any{"filePath": a["path"], "path": a["path"], "content": a["content"]}
		}, "bash"},
		{"create", func(a map[string]any) map[string]any {
			return map[string]any{"path": a["path"], "file_text": a["content"]}
		}, ""},
		{"write_file", func(a map[string]any) map[string]any {
			return map[string]any{"path": a["path"], "content": a["content"]}
		}, "terminal"},
		{"write_file", func(a map[string]any) map[string]any {
			return map[string]any{"file_path": a["path"], "content": a["content"]}
		}, ""},
		{"apply_patch", func(a map[string]any) map[string]any {
			return patch("Add File", a["path"], "+"+strings.ReplaceAll(strings.TrimSuffix(a["content"].(string), "\n"), "\n", "\n+"))
		}, ""},
	},
	"edit": {
		// omp names a line, and what the file held: 3030 is its word for that of the
		// script edit.
		{"edit", func(a map[string]any) map[string]any {
			return map[string]any{"input": fmt.Sprintf("[%s#3030]\nPUT 1.=1:\n+%s", a["path"], a["new"])}
		}, "hub"},
		{"Edit", func(a map[string]any) map[string]any {
			return map[string]any{"file_path": a["path"], "old_string": a["old"], "new_string": a["new"]}
		}, ""},
		{"edit", func(a map[string]any) map[string]any {
			return map[string]any{"filePath": a["path"], "oldString": a["old"], "newString": a["new"]}
		}, "todowrite"},
		{"edit", func(a map[string]any) map[string]any {
			return map[string]any{"path": a["path"], "old_str": a["old"], "new_str": a["new"]}
		}, "create"},
		{"edit", func(a map[string]any) map[string]any {
			return map[string]any{"path": a["path"], "edits": []any{map[string]any{"oldText": a["old"], "newText": a["new"]}}}
		}, "bash"},
		{"patch", func(a map[string]any) map[string]any {
			return map[string]any{"mode": "replace", "path": a["path"], "old_string": a["old"], "new_string": a["new"]}
		}, "terminal"},
		{"replace", func(a map[string]any) map[string]any {
			return map[string]any{"file_path": a["path"], "instruction": "replace it", "old_string": a["old"], "new_string": a["new"]}
		}, ""},
		{"edit", func(a map[string]any) map[string]any {
			return map[string]any{"file_path": a["path"], "old_string": a["old"], "new_string": a["new"]}
		}, ""},
		{"apply_patch", func(a map[string]any) map[string]any {
			return patch("Update File", a["path"], fmt.Sprintf("@@\n-%s\n+%s", a["old"], a["new"]))
		}, ""},
	},
	"read": {
		{"Read", func(a map[string]any) map[string]any { return map[string]any{"file_path": a["path"]} }, ""},
		{"read", func(a map[string]any) map[string]any { return map[string]any{"filePath": a["path"], "path": a["path"]} }, "bash"},
		{"view", func(a map[string]any) map[string]any { return map[string]any{"path": a["path"]} }, ""},
		{"read_file", func(a map[string]any) map[string]any { return map[string]any{"path": a["path"]} }, "terminal"},
		{"read_file", func(a map[string]any) map[string]any { return map[string]any{"file_path": a["path"]} }, ""},
		{"exec_command", func(a map[string]any) map[string]any { return map[string]any{"cmd": fmt.Sprint("cat ", a["path"])} }, ""},
	},
	"agent": {
		{"task", subagentNamed("general"), "todowrite"},
		{"task", func(a map[string]any) map[string]any {
			return map[string]any{"name": "inner", "description": a["description"], "prompt": a["prompt"], "agent_type": "general-purpose", "mode": "sync"}
		}, "read_agent"},
		{"Agent", subagent, ""},
		{"Task", subagent, ""},
		{"agent", subagent, ""},
		{"collaboration.spawn_agent", func(a map[string]any) map[string]any {
			return map[string]any{"task_name": "inner_job", "message": a["prompt"], "fork_turns": "none"}
		}, ""},
	},
	"ask": {
		{"AskUserQuestion", question, ""},
		{"ask_user_question", question, ""},
		{"request_user_input", question, ""},
		{"question", question, "todowrite"},
	},
	"structured": {
		{structuredTool, structured, ""},
		{"structured_output", structured, ""},
	},
}

// structuredTool is what Claude Code names the tool for --json-schema.
const structuredTool = "StructuredOutput"

// isStructured reports whether a tool is for answers by a schema.
func isStructured(name string) bool {
	return slices.ContainsFunc(tools["structured"], func(t tool) bool { return t.name == name })
}

func structured(a map[string]any) map[string]any {
	value, _ := a["value"].(map[string]any)
	return value
}

func question(a map[string]any) map[string]any {
	options := []any{}
	for _, label := range a["options"].([]string) {
		options = append(options, map[string]any{"label": label, "description": "The colour " + label})
	}
	return map[string]any{"questions": []any{map[string]any{
		"id": "it", "question": a["question"], "header": a["header"], "options": options, "multiSelect": false}}}
}

func subagentNamed(kind string) func(map[string]any) map[string]any {
	return func(a map[string]any) map[string]any {
		return map[string]any{"description": a["description"], "prompt": a["prompt"], "subagent_type": kind}
	}
}

func subagent(a map[string]any) map[string]any {
	return map[string]any{"description": a["description"], "prompt": a["prompt"], "subagent_type": "general-purpose"}
}

// catalogTool is how OpenClaw, which is known by its shell tool, has tools called that it
// does not offer. Qwen Code has another tool of that name.
const (
	catalogTool   = "tool_call"
	openclawShell = "exec"
)

// inCode are the tools of Codex that its code mode has without offering them.
var inCode = []string{"exec_command", "apply_patch"}

// patch is the input of Codex's apply_patch, which is text.
func patch(what string, path any, lines string) map[string]any {
	return map[string]any{"input": fmt.Sprintf("*** Begin Patch\n*** %s: %s\n%s\n*** End Patch\n", what, path, lines)}
}

// native gives the tool's name and input in the words of an agent that offers
// the tools of these names.
func (c Call) native(offered []string) (string, map[string]any) {
	if c.Kind == "raw" {
		name, input := c.Args["name"].(string), map[string]any{}
		if given, ok := c.Args["input"].(map[string]any); ok {
			input = given
		}
		if !slices.Contains(offered, name) && slices.Contains(offered, catalogTool) && slices.Contains(offered, openclawShell) {
			return catalogTool, map[string]any{"id": name, "args": input}
		}
		return name, input
	}
	candidates := tools[c.Kind]
	chosen := candidates[0]
	for _, t := range candidates {
		if t.beside != "" && !slices.Contains(offered, t.beside) {
			continue
		}
		if slices.Contains(offered, t.name) || slices.Contains(inCode, t.name) && slices.Contains(offered, codeTool) {
			chosen = t
			break
		}
	}
	return chosen.name, chosen.input(c.Args)
}
