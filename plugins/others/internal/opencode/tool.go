package opencode

import (
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// Detail is what a tool is for, by its name and input.
func Detail(name string, input jsonl.Value) turn.Detail {
	path := input.Text("filePath")
	switch name {
	case "bash":
		return turn.Detail{Kind: turn.Shell, Command: input.Text("command"), Cwd: input.Text("workdir")}
	case "read":
		return turn.Detail{Kind: turn.Read, Path: path}
	case "write":
		n := int64(len(input.Bytes("content")))
		return turn.Detail{Kind: turn.Write, Path: path, Bytes: &n}
	case "edit":
		return turn.Detail{Kind: turn.Edit, Path: path, Diff: turn.Replacement(input.Text("oldString"), input.Text("newString"))}
	case "task":
		return turn.Detail{Kind: turn.Subagent, Agent: input.Text("subagent_type"), Prompt: input.Text("prompt")}
	case "skill":
		return turn.Detail{Kind: turn.Skill, Agent: input.Text("name")}
	case "todowrite":
		d := turn.Detail{Kind: turn.Todo}
		for _, todo := range input.Items("todos") {
			d.Todos = append(d.Todos, pluginapi.TodoItem{Text: todo.Text("content"), Status: todo.Text("status")})
		}
		return d
	}
	return turn.Detail{}
}

// Finish adds to a result what the CLI notes beside the tool's answer.
func Finish(r *turn.Result, d turn.Detail, metadata jsonl.Value) {
	switch d.Kind {
	case turn.Shell:
		r.Quiet = true
		r.Stdout = metadata.Text("output")
		if n, ok := metadata.Int("exit"); ok {
			code := int(n)
			r.ExitCode = &code
			// A command that fails is told as one that has ended.
			if code != 0 {
				r.Failed = true
			}
		}
	case turn.Write:
		r.Created = metadata.Exists("exists") && !metadata.Bool("exists")
	case turn.Edit:
		r.Diff = metadata.Text("diff")
	}
}

// Tokens are those of a step. The CLI's output lacks the thoughts.
func Tokens(t jsonl.Value, model string) pluginapi.TokenUsage {
	u := pluginapi.TokenUsage{
		InputTokens: t.IntPtr("input"), OutputTokens: t.IntPtr("output"), ThinkingTokens: t.IntPtr("reasoning"),
		CacheReadTokens: t.IntPtr("cache", "read"), CacheWriteTokens: t.IntPtr("cache", "write"), Model: model,
	}
	withThoughts(&u)
	return u
}

func withThoughts(u *pluginapi.TokenUsage) {
	if u.OutputTokens != nil && u.ThinkingTokens != nil {
		sum := *u.OutputTokens + *u.ThinkingTokens
		u.OutputTokens = &sum
	}
}
