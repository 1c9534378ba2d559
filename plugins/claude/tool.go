package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// tool is one use of a tool, from its beginning to its result.
type tool struct {
	id, name, parent string

	ready bool
	// answered: its result has come, but its work goes on in the background.
	answered bool

	server, mcpTool string               // mcp__server__tool
	agent           string               // the kind of sub-agent; empty for other tools
	path            string               // of a file tool
	written         *int64               // bytes that Write writes
	diff            string               // what Edit changes, as far as its input tells
	todos           []pluginapi.TodoItem // of TodoWrite
}

func (t *tool) nest() pluginapi.Nested { return pluginapi.Nested{ParentID: t.parent} }

const mcpPrefix = "mcp__"

// toolName is the name of a tool_use block; the API's own MCP connector names
// the server beside it.
func toolName(content jsonl.Value) string {
	name := content.Text("name")
	if server := content.Text("server_name"); server != "" && content.Text("type") == "mcp_tool_use" {
		return mcpPrefix + server + "__" + name
	}
	return name
}

func isSubagent(name string) bool { return name == "Task" || name == "Agent" }

func (d *decoder) tool(id string) *tool {
	for _, t := range d.tools {
		if t.id == id {
			return t
		}
	}
	return nil
}

// endTool marks that a tool has its result, the only one.
func (d *decoder) endTool(t *tool) {
	if d.ended == nil {
		d.ended = map[string]bool{}
	}
	d.ended[t.id] = true
}

func (d *decoder) removeTool(t *tool) {
	if i := slices.Index(d.tools, t); i >= 0 {
		d.tools = slices.Delete(d.tools, i, i+1)
	}
}

// startTool begins a tool once.
func (d *decoder) startTool(id, name, parent string, out events) *tool {
	if t := d.tool(id); t != nil {
		return t
	}
	t := &tool{id: id, name: name, parent: parent}
	if d.ended[id] {
		t.ready = true // told twice; there is nothing to add
		return t
	}
	if rest, ok := strings.CutPrefix(name, mcpPrefix); ok {
		t.server, t.mcpTool, _ = strings.Cut(rest, "__")
	}
	d.tools = append(d.tools, t)
	out.Event(pluginapi.ToolCallStart{ToolCallID: id, ToolName: name, Nested: t.nest()})
	return t
}

// readyTool tells the whole input of a tool, once, and what it means.
func (d *decoder) readyTool(t *tool, input jsonl.Value, out events) {
	if t.ready {
		return
	}
	t.ready = true
	raw := input.Raw()
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	out.Event(pluginapi.ToolCallReady{ToolCallID: t.id, ToolName: t.name, Input: raw, Nested: t.nest()})
	switch {
	case t.name == "Bash":
		out.Event(pluginapi.ShellStart{ToolCallID: t.id, Command: input.Text("command"), Nested: t.nest()})
	case t.server != "":
		out.Event(pluginapi.McpToolCallStart{ToolCallID: t.id, Server: t.server, ToolName: t.mcpTool, Input: raw, Nested: t.nest()})
	case isSubagent(t.name):
		// Without a type the CLI takes this one (measured).
		t.agent = "general-purpose"
		if kind := input.Text("subagent_type"); kind != "" {
			t.agent = kind
		}
		out.Event(pluginapi.SubagentSpawn{SubagentID: t.id, AgentName: t.agent, Prompt: input.Text("prompt"), Nested: t.nest()})
	case t.name == "Skill":
		name := input.Text("skill")
		if name == "" {
			name = input.Text("command")
		}
		out.Event(pluginapi.SkillInvoked{SkillName: name, Nested: t.nest()})
	case t.name == "TodoWrite":
		for _, todo := range input.Items("todos") {
			t.todos = append(t.todos, pluginapi.TodoItem{Text: todo.Text("content"), Status: todo.Text("status")})
		}
	case t.name == "Read", t.name == "Write", t.name == "Edit", t.name == "MultiEdit":
		t.path = input.Text("file_path")
		switch t.name {
		case "Write":
			n := int64(len(input.Bytes("content")))
			t.written = &n
		case "Edit":
			t.diff = replacement(input)
		case "MultiEdit":
			for _, edit := range input.Items("edits") {
				t.diff += replacement(edit)
			}
		}
	case t.name == "NotebookEdit":
		t.path = input.Text("notebook_path")
		t.diff = prefixLines("+", input.Text("new_source"))
	}
}

// toolResult handles a tool_result block. extra is the CLI's own account of it,
// which sub-agents' results lack; it may be an object, a string or an array.
func (d *decoder) toolResult(result, extra jsonl.Value, parent string, out events) {
	id := result.Text("tool_use_id")
	if d.ended[id] {
		return
	}
	// A tool that nobody has heard of began before this process.
	t := d.startTool(id, "", parent, out)
	content := result.Get("content")
	text := contentText(content)
	if result.Bool("is_error") {
		d.toolFailed(t, text, extra, out)
		return
	}
	output := content.Raw()
	if output == nil {
		output = json.RawMessage("null")
	}
	for _, image := range content.Items() {
		if image.Text("type") == "image" && image.Text("source", "type") == "base64" {
			out.Event(pluginapi.ImageOutput{
				ToolCallID: t.id, MimeType: image.Text("source", "media_type"),
				Base64: image.Text("source", "data"), Nested: t.nest(),
			})
		}
	}
	switch {
	case t.name == "Bash":
		if d.shellResult(t, text, extra, out) {
			t.answered = true
		}
	case t.server != "":
		out.Event(pluginapi.McpToolResult{ToolCallID: t.id, Server: t.server, ToolName: t.mcpTool, Output: output, Nested: t.nest()})
	case t.path != "":
		fileResult(t, text, extra, out)
	case t.todos != nil:
		out.Event(pluginapi.TodoUpdate{Items: t.todos, Nested: t.nest()})
	case t.agent != "":
		// One in the background goes on; its task_notification ends it.
		if extra.Bool("isAsync") || extra.Text("status") == "async_launched" {
			t.answered = true
		}
	}
	d.endTool(t)
	out.Event(pluginapi.ToolResult{ToolCallID: t.id, ToolName: t.name, Output: output, Nested: t.nest()})
	if t.answered {
		return
	}
	d.endSubagent(t, "completed", text, out)
	d.removeTool(t)
}

// toolFailed ends a tool with an error.
func (d *decoder) toolFailed(t *tool, text string, extra jsonl.Value, out events) {
	text = strings.TrimPrefix(text, "<tool_use_error>")
	text = strings.TrimSuffix(text, "</tool_use_error>")
	switch {
	case t.name == "Bash" && t.ready:
		code, output := exitCode(text)
		// The CLI merges the two streams of a command that failed.
		if code != nil && output != "" {
			out.Event(pluginapi.ShellStdoutDelta{ToolCallID: t.id, Delta: output, Nested: t.nest()})
		}
		out.Event(pluginapi.ShellExit{ToolCallID: t.id, ExitCode: code, Nested: t.nest()})
	case t.server != "" && t.ready:
		out.Event(pluginapi.McpToolError{ToolCallID: t.id, Server: t.server, ToolName: t.mcpTool, Error: text, Nested: t.nest()})
	}
	d.endTool(t)
	out.Event(pluginapi.ToolError{ToolCallID: t.id, ToolName: t.name, Error: text, Nested: t.nest()})
	d.endSubagent(t, "failed", text, out)
	d.removeTool(t)
}

// shellResult tells what a command printed; true means that it still runs.
func (d *decoder) shellResult(t *tool, text string, extra jsonl.Value, out events) bool {
	stdout, stderr := text, ""
	var code *int
	switch {
	case extra.IsObject():
		stdout, stderr = extra.Text("stdout"), extra.Text("stderr")
		// A code that the CLI reads as success, like grep's 1, is not told.
		if !extra.Bool("interrupted") && extra.Text("returnCodeInterpretation") == "" {
			code = new(int)
		}
	case text == "(Bash completed with no output)":
		stdout = ""
	}
	if stdout != "" {
		out.Event(pluginapi.ShellStdoutDelta{ToolCallID: t.id, Delta: stdout, Nested: t.nest()})
	}
	if stderr != "" {
		out.Event(pluginapi.ShellStderrDelta{ToolCallID: t.id, Delta: stderr, Nested: t.nest()})
	}
	if extra.Text("backgroundTaskId") != "" {
		return true
	}
	out.Event(pluginapi.ShellExit{ToolCallID: t.id, ExitCode: code, Nested: t.nest()})
	return false
}

func fileResult(t *tool, text string, extra jsonl.Value, out events) {
	path := t.path
	if p := extra.Text("filePath"); p != "" {
		path = p
	} else if p := extra.Text("file", "filePath"); p != "" {
		path = p
	}
	switch t.name {
	case "Read":
		out.Event(pluginapi.FileRead{ToolCallID: t.id, Path: path, Nested: t.nest()})
	case "Write":
		if extra.Text("type") == "create" || strings.HasPrefix(text, "File created") {
			out.Event(pluginapi.FileCreate{ToolCallID: t.id, Path: path, ByteCount: t.written, Nested: t.nest()})
		} else {
			out.Event(pluginapi.FileWrite{ToolCallID: t.id, Path: path, ByteCount: t.written, Nested: t.nest()})
		}
	default:
		diff := unifiedDiff(extra.Get("structuredPatch"))
		if diff == "" {
			diff = t.diff
		}
		out.Event(pluginapi.FilePatch{ToolCallID: t.id, Path: path, Diff: diff, Nested: t.nest()})
	}
}

// endSubagent ends a sub-agent once.
func (d *decoder) endSubagent(t *tool, status, summary string, out events) {
	if t.agent == "" {
		return
	}
	if status == "completed" {
		out.Event(pluginapi.SubagentResult{SubagentID: t.id, AgentName: t.agent, Summary: summary, Nested: t.nest()})
	} else {
		if summary == "" {
			summary = status
		}
		out.Event(pluginapi.SubagentError{SubagentID: t.id, AgentName: t.agent, Error: summary, Nested: t.nest()})
	}
	t.agent = ""
	d.forget(t.id, out)
}

var backgroundExit = regexp.MustCompile(`\(exit code (-?\d{1,9})\)|exit code (-?\d{1,9})$`)

// taskEnded handles the end of background work: a sub-agent's or a command's.
func (d *decoder) taskEnded(line jsonl.Value, out events) {
	if t := d.tool(line.Text("tool_use_id")); t != nil {
		d.endTask(t, line.Text("status"), line.Text("summary"), out)
	}
}

func (d *decoder) endTask(t *tool, status, summary string, out events) {
	switch {
	case t.agent != "":
		d.endSubagent(t, status, summary, out)
	case t.name == "Bash" && t.answered:
		var code *int
		if m := backgroundExit.FindStringSubmatch(summary); m != nil {
			if n, err := strconv.Atoi(m[1] + m[2]); err == nil {
				code = &n
			}
		}
		out.Event(pluginapi.ShellExit{ToolCallID: t.id, ExitCode: code, Nested: t.nest()})
	}
	if t.answered {
		d.removeTool(t)
	}
}

// closeTools ends the tools that will have no result any more, and what they
// began. At the end of a turn those in the background, and those of sub-agents,
// go on.
func (d *decoder) closeTools(all bool, why string, out events) {
	for _, t := range slices.Clone(d.tools) {
		if !all && (t.answered || t.parent != "") {
			continue
		}
		if t.answered {
			if t.name == "Bash" {
				out.Event(pluginapi.ShellExit{ToolCallID: t.id, Nested: t.nest()})
			}
			d.endSubagent(t, "failed", why, out)
			d.removeTool(t)
			continue
		}
		d.toolFailed(t, why, jsonl.Value{}, out)
	}
}

// contentText is the text of a string or of an array of blocks.
func contentText(content jsonl.Value) string {
	if !content.IsArray() {
		return content.Text()
	}
	var texts []string
	for _, block := range content.Items() {
		if block.IsString("text") {
			texts = append(texts, block.Text("text"))
		}
	}
	return strings.Join(texts, "\n")
}

// exitCode reads "Exit code 3\noutput".
func exitCode(text string) (*int, string) {
	rest, ok := strings.CutPrefix(text, "Exit code ")
	if !ok {
		return nil, text
	}
	first, output, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(first)
	if err != nil {
		return nil, text
	}
	return &n, output
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

// replacement is an edit without its place in the file.
func replacement(input jsonl.Value) string {
	return prefixLines("-", input.Text("old_string")) + prefixLines("+", input.Text("new_string"))
}

func prefixLines(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
}
