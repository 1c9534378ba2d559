package pirpc

import (
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// detail is what a tool is for, by its name and input.
func detail(name string, input jsonl.Value) turn.Detail {
	path := input.Text("path")
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		server, tool, _ := strings.Cut(rest, "__")
		return turn.Detail{Kind: turn.MCP, Server: server, Tool: tool}
	}
	switch name {
	case "bash":
		return turn.Detail{Kind: turn.Shell, Command: input.Text("command")}
	case "read":
		return turn.Detail{Kind: turn.Read, Path: path}
	case "write":
		n := int64(len(input.Bytes("content")))
		return turn.Detail{Kind: turn.Write, Path: path, Bytes: &n}
	case "edit":
		d := turn.Detail{Kind: turn.Edit, Path: path}
		for _, edit := range input.Items("edits") {
			d.Diff += turn.Replacement(edit.Text("oldText"), edit.Text("newText"))
		}
		return d
	}
	return turn.Detail{}
}

func (c *conversation) ready(t *turn.Tool, input jsonl.Value, out turn.Events) {
	c.ReadyTool(t, input.Raw(), c.dialect.ToolDetail(t.Name, input), out)
}

// contentText is the text of a list of blocks.
func contentText(content jsonl.Value) string {
	var texts []string
	for _, block := range content.Items() {
		if block.IsString("text") {
			texts = append(texts, block.Text("text"))
		}
	}
	return strings.Join(texts, "\n")
}

func (c *conversation) toolEnd(line jsonl.Value, out turn.Events) {
	if t := c.StartTool(line.Text("toolCallId"), line.Text("toolName"), "", out); t != nil {
		c.EndTool(t, c.dialect.result(t, line.Get("result"), line.Bool("isError"), line.IntPtr("durationMs")), out)
	}
}

// ToolDetail is what a tool is for, by its name and input.
func (d Dialect) ToolDetail(name string, input jsonl.Value) turn.Detail {
	if d.Detail != nil {
		if own := d.Detail(name, input); own.Kind != turn.Other {
			return own
		}
	}
	return detail(name, input)
}

func (d Dialect) output(text string) string {
	if d.Output != nil {
		return d.Output(text)
	}
	return text
}

// result is how a tool ended.
func (d Dialect) result(t *turn.Tool, v jsonl.Value, failed bool, ms *int64) turn.Result {
	text := contentText(v.Get("content"))
	r := turn.Result{Text: text, Failed: failed, Output: pluginapi.AppendString(nil, text), DurationMS: ms}
	if t.Detail.Kind == turn.Shell {
		r.Quiet = true
		if r.Stdout = v.Text("structuredContent", "output"); r.Stdout == "" && !failed {
			r.Stdout = d.output(text)
		}
		if n, ok := v.Int("structuredContent", "exit_code"); ok {
			code := int(n)
			r.ExitCode = &code
		}
	}
	if d.Complete != nil {
		d.Complete(t, v, &r)
	}
	return r
}
