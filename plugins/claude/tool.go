package main

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/plugins/internal/streamjson"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/turn"
)

// toolName is the name of a tool_use block; the API's own MCP connector names
// the server beside it.
func toolName(content jsonl.Value) string {
	name := content.Text("name")
	if server := content.Text("server_name"); server != "" && content.Text("type") == "mcp_tool_use" {
		return streamjson.MCPPrefix + server + "__" + name
	}
	return name
}

// detail is what the input of a tool means.
func detail(name string, input jsonl.Value) turn.Detail {
	if d, ok := streamjson.MCP(name); ok {
		return d
	}
	switch name {
	case "Bash":
		return turn.Detail{Kind: turn.Shell, Command: input.Text("command")}
	case "Task", "Agent":
		// Without a type the CLI takes this one (measured).
		return turn.Detail{Kind: turn.Subagent, Agent: cmp.Or(input.Text("subagent_type"), "general-purpose"), Prompt: input.Text("prompt")}
	case "Skill":
		return turn.Detail{Kind: turn.Skill, Agent: cmp.Or(input.Text("skill"), input.Text("command"))}
	case "TodoWrite":
		return turn.Detail{Kind: turn.Todo, Todos: streamjson.Todos(input)}
	case "Read":
		return turn.Detail{Kind: turn.Read, Path: input.Text("file_path")}
	case "Write":
		n := int64(len(input.Bytes("content")))
		return turn.Detail{Kind: turn.Write, Path: input.Text("file_path"), Bytes: &n}
	case "Edit":
		return turn.Detail{Kind: turn.Edit, Path: input.Text("file_path"), Diff: replacement(input)}
	case "MultiEdit":
		d := turn.Detail{Kind: turn.Edit, Path: input.Text("file_path")}
		for _, edit := range input.Items("edits") {
			d.Diff += replacement(edit)
		}
		return d
	case "NotebookEdit":
		return turn.Detail{Kind: turn.Edit, Path: input.Text("notebook_path"), Diff: turn.Replacement("", input.Text("new_source"))}
	}
	return turn.Detail{}
}

func replacement(edit jsonl.Value) string {
	return turn.Replacement(edit.Text("old_string"), edit.Text("new_string"))
}

// toolResult handles a tool_result block. extra is the CLI's own account of it,
// which sub-agents' results lack; it may be an object, a string or an array.
func (d *decoder) toolResult(block, extra jsonl.Value, parent string, out turn.Events) {
	// A tool that nobody has heard of began before this process.
	t := d.w.StartTool(block.Text("tool_use_id"), "", parent, out)
	if t == nil || t.Background() {
		return // told twice
	}
	content := block.Get("content")
	r := turn.Result{Text: streamjson.Text(content), Failed: block.Bool("is_error"), Output: content.Raw()}
	if r.Failed {
		r.Text = strings.TrimSuffix(strings.TrimPrefix(r.Text, "<tool_use_error>"), "</tool_use_error>")
	} else {
		for _, image := range content.Items() {
			if image.Text("type") == "image" && image.Text("source", "type") == "base64" {
				out.Event(pluginapi.ImageOutput{
					ToolCallID: t.ID, MimeType: image.Text("source", "media_type"),
					Base64: image.Text("source", "data"), Nested: pluginapi.Nested{ParentID: t.Parent()},
				})
			}
		}
	}
	switch t.Detail.Kind {
	case turn.Shell:
		shellResult(&r, extra)
	case turn.Subagent:
		// One in the background goes on; its task_notification ends it.
		r.Background = extra.Bool("isAsync") || extra.Text("status") == "async_launched"
	case turn.Read, turn.Write, turn.Edit:
		r.Path = cmp.Or(extra.Text("filePath"), extra.Text("file", "filePath"))
		r.Created = extra.Text("type") == "create" || strings.HasPrefix(r.Text, "File created")
		r.Diff = unifiedDiff(extra.Get("structuredPatch"))
	}
	d.w.EndTool(t, r, out)
	if !t.Background() {
		delete(d.nested, t.ID)
	}
}

// shellResult is what a command printed, and how it ended.
func shellResult(r *turn.Result, extra jsonl.Value) {
	switch {
	case r.Failed:
		// The CLI merges the two streams of a command that failed.
		r.Quiet = true
		r.ExitCode, r.Stdout = exitCode(r.Text)
	case extra.IsObject():
		r.Quiet = true
		r.Stdout, r.Stderr = extra.Text("stdout"), extra.Text("stderr")
		r.Background = extra.Text("backgroundTaskId") != ""
		// A code that the CLI reads as success, like grep's 1, is not told.
		if !extra.Bool("interrupted") && extra.Text("returnCodeInterpretation") == "" {
			r.ExitCode = new(int)
		}
	default:
		r.Quiet = r.Text == "(Bash completed with no output)"
	}
}

// exitCode reads "Exit code 3\noutput"; without a code there is no output.
func exitCode(text string) (*int, string) {
	rest, ok := strings.CutPrefix(text, "Exit code ")
	first, output, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(first)
	if !ok || err != nil {
		return nil, ""
	}
	return &n, output
}

var backgroundExit = pattern.New(`\(exit code (-?\d{1,9})\)|exit code (-?\d{1,9})$`)

// taskEnded handles the end of background work: a sub-agent's or a command's.
func (d *decoder) taskEnded(toolID, status, summary string, out turn.Events) {
	t := d.w.Tool(toolID)
	if t == nil {
		return
	}
	r := turn.Result{Text: summary, Failed: status != "completed", Quiet: true}
	if r.Failed {
		r.Text = cmp.Or(summary, status)
	}
	if m := backgroundExit.FindStringSubmatch(summary); m != nil {
		if n, err := strconv.Atoi(m[1] + m[2]); err == nil {
			r.ExitCode = &n
		}
	}
	d.w.EndTask(t, r, out)
	delete(d.nested, t.ID)
}

// unifiedDiff is the CLI's list of hunks as the text everybody knows.
func unifiedDiff(patch jsonl.Value) string {
	var b strings.Builder
	for _, hunk := range patch.Items() {
		b.WriteString("@@ -")
		b.WriteString(span(hunk, "oldStart", "oldLines"))
		b.WriteString(" +")
		b.WriteString(span(hunk, "newStart", "newLines"))
		b.WriteString(" @@\n")
		for _, line := range hunk.Items("lines") {
			b.Write(line.Bytes())
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func span(hunk jsonl.Value, start, lines string) string {
	from, _ := hunk.Int(start)
	count, _ := hunk.Int(lines)
	return strconv.FormatInt(from, 10) + "," + strconv.FormatInt(count, 10)
}
