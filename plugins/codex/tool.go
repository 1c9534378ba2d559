package main

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// What the tools are called by the models of Codex.
const (
	shellTool  = "exec_command"
	patchTool  = "apply_patch"
	searchTool = "web_search"
	imageTool  = "view_image"
	askTool    = "request_user_input"
	spawnTool  = "spawn_agent"
)

func (t *thread) tool(id string) *tool {
	for _, tool := range t.tools {
		if tool.id == id {
			return tool
		}
	}
	return nil
}

func (t *thread) drop(tool *tool) {
	if i := slices.Index(t.tools, tool); i >= 0 {
		t.tools = slices.Delete(t.tools, i, i+1)
	}
}

// begin tells that a tool starts, and its input.
func (d *decoder) begin(t *thread, tool *tool, out sink) {
	d.closeMessage(t, false, out)
	t.tools = append(t.tools, tool)
	t.called = true
	if len(tool.input) == 0 {
		tool.input = json.RawMessage("{}")
	}
	out.Event(pluginapi.ToolCallStart{ToolCallID: tool.id, ToolName: tool.name, Nested: t.nested()})
	out.Event(pluginapi.ToolCallReady{ToolCallID: tool.id, ToolName: tool.name, Input: tool.input, Nested: t.nested()})
}

// toolStart begins a tool of one of the items that are tools.
func (d *decoder) toolStart(t *thread, kind string, item jsonl.Value, out sink) *tool {
	tool := &tool{id: item.Text("id"), kind: kind}
	switch kind {
	case "commandExecution":
		tool.name, tool.command, tool.cwd = shellTool, plainCommand(item), item.Text("cwd")
		tool.input = inputObject("command", tool.command, "cwd", tool.cwd)
	case "fileChange":
		tool.name = patchTool
		tool.input = append(append([]byte(`{"changes":`), item.Get("changes").AppendRaw(nil)...), '}')
	case "mcpToolCall", "dynamicToolCall":
		tool.server, tool.tool = item.Text("server"), item.Text("tool")
		tool.name = tool.tool
		if kind == "mcpToolCall" {
			tool.name = "mcp__" + tool.server + "__" + tool.tool
		}
		tool.input = item.Raw("arguments")
	case "webSearch":
		tool.name, tool.input = searchTool, inputObject("query", item.Text("query"))
	case "imageView":
		tool.name, tool.input = imageTool, inputObject("path", item.Text("path"))
	case "collabAgentToolCall":
		tool.name, tool.input = item.Text("tool"), inputObject("prompt", item.Text("prompt"))
	}
	d.begin(t, tool, out)
	switch kind {
	case "commandExecution":
		// Without a process it waits for somebody's leave.
		if item.Text("processId") != "" {
			d.shellStart(t, tool, out)
		}
	case "mcpToolCall":
		out.Event(pluginapi.McpToolCallStart{ToolCallID: tool.id, Server: tool.server, ToolName: tool.tool, Input: tool.input, Nested: t.nested()})
	case "imageView":
		out.Event(pluginapi.FileRead{ToolCallID: tool.id, Path: item.Text("path"), Nested: t.nested()})
	}
	return tool
}

// inputObject makes an object of names and values; empty values are left out.
func inputObject(pairs ...string) json.RawMessage {
	b := []byte{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(pluginapi.AppendString(b, pairs[i]), ':')
		b = pluginapi.AppendString(b, pairs[i+1])
	}
	return append(b, '}')
}

// plainCommand is the command without the shell that the CLI runs it by.
func plainCommand(item jsonl.Value) string {
	command := item.Text("command")
	words := shellWords(command)
	if len(words) == 3 && (words[1] == "-lc" || words[1] == "-c") && shells[path.Base(words[0])] {
		return words[2]
	}
	return command
}

// shells are those that the CLI runs commands by. What another program takes as its
// -c is none.
var shells = map[string]bool{"bash": true, "zsh": true, "sh": true, "dash": true, "ash": true, "ksh": true}

// shellWords splits a command as a shell does; nil if it is none of its words
// and quotes alone.
func shellWords(text string) []string {
	var words []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		case '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return nil
			}
			word.WriteString(text[i+1 : i+1+end])
			i, inWord = i+1+end, true
		case '"':
			closed := false
			for i++; i < len(text) && !closed; i++ {
				switch {
				case text[i] == '"':
					closed = true
					i--
				case text[i] == '\\' && i+1 < len(text) && strings.IndexByte("\"\\$`", text[i+1]) >= 0:
					i++
					word.WriteByte(text[i])
				default:
					word.WriteByte(text[i])
				}
			}
			if !closed {
				return nil
			}
			inWord = true
		case '\\':
			if i+1 == len(text) {
				return nil
			}
			i++
			word.WriteByte(text[i])
			inWord = true
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}

// shellStart tells once that a command runs.
func (d *decoder) shellStart(t *thread, tool *tool, out sink) {
	if tool.running || tool.kind != "commandExecution" {
		return
	}
	tool.running = true
	out.Event(pluginapi.ShellStart{ToolCallID: tool.id, Command: tool.command, Cwd: tool.cwd, Nested: t.nested()})
}

func (d *decoder) shellOutput(t *thread, tool *tool, delta string, out sink) {
	if delta == "" {
		return
	}
	tool.output += len(delta)
	out.Event(pluginapi.ShellStdoutDelta{ToolCallID: tool.id, Delta: delta, Nested: t.nested()})
}

// toolDone ends a tool.
func (d *decoder) toolDone(t *thread, tool *tool, item jsonl.Value, out sink) {
	switch tool.kind {
	case "commandExecution":
		d.shellDone(t, tool, item, out)
	case "fileChange":
		d.patchDone(t, tool, item, out)
	case "mcpToolCall":
		d.mcpDone(t, tool, item, out)
	case "webSearch":
		output := item.Raw("results")
		if !item.IsArray("results") {
			output = item.Get("action").AppendRaw(nil)
		}
		d.result(t, tool, output, nil, out)
	case "dynamicToolCall":
		if item.Exists("success") && !item.IsNull("success") && !item.Bool("success") {
			d.fail(t, tool, "the tool failed", out)
			return
		}
		d.result(t, tool, item.Get("contentItems").AppendRaw(nil), item.IntPtr("durationMs"), out)
	case "collabAgentToolCall":
		if status := item.Text("status"); status == "failed" || status == "interrupted" {
			d.fail(t, tool, status, out)
			return
		}
		d.result(t, tool, item.Get("agentsStates").AppendRaw(nil), nil, out)
	default:
		d.result(t, tool, json.RawMessage("null"), nil, out)
	}
}

func (d *decoder) result(t *thread, tool *tool, output json.RawMessage, duration *int64, out sink) {
	t.drop(tool)
	if len(output) == 0 {
		output = json.RawMessage("null")
	}
	out.Event(pluginapi.ToolResult{ToolCallID: tool.id, ToolName: tool.name, Output: output, DurationMS: duration, Nested: t.nested()})
}

// fail ends a tool that did not do what it was asked.
func (d *decoder) fail(t *thread, tool *tool, message string, out sink) {
	t.drop(tool)
	if tool.kind == "mcpToolCall" {
		out.Event(pluginapi.McpToolError{ToolCallID: tool.id, Server: tool.server, ToolName: tool.tool, Error: message, Nested: t.nested()})
	}
	out.Event(pluginapi.ToolError{ToolCallID: tool.id, ToolName: tool.name, Error: message, Nested: t.nested()})
}

const declined = "declined"

func (d *decoder) shellDone(t *thread, tool *tool, item jsonl.Value, out sink) {
	status := item.Text("status")
	if status == declined {
		d.fail(t, tool, "it was not allowed to run", out)
		return
	}
	output := item.Text("aggregatedOutput")
	d.shellStart(t, tool, out)
	if len(output) > tool.output {
		d.shellOutput(t, tool, output[tool.output:], out)
	}
	var code *int
	if n, ok := item.Int("exitCode"); ok {
		exit := int(n)
		code = &exit
	}
	out.Event(pluginapi.ShellExit{ToolCallID: tool.id, ExitCode: code, DurationMS: item.IntPtr("durationMs"), Nested: t.nested()})
	if status == "failed" {
		d.fail(t, tool, shellFailure(code, output), out)
		return
	}
	for _, action := range item.Items("commandActions") {
		if action.Text("type") == "read" && action.Text("path") != "" {
			out.Event(pluginapi.FileRead{ToolCallID: tool.id, Path: action.Text("path"), Nested: t.nested()})
		}
	}
	d.result(t, tool, pluginapi.AppendString(nil, output), item.IntPtr("durationMs"), out)
}

// shellFailure is what a command that failed left.
func shellFailure(code *int, output string) string {
	message := strings.TrimSpace(output)
	if code != nil {
		message = strings.TrimSpace("exit code " + strconv.Itoa(*code) + "\n" + message)
	}
	if message == "" {
		message = "the command failed"
	}
	return message
}

func (d *decoder) patchDone(t *thread, tool *tool, item jsonl.Value, out sink) {
	switch item.Text("status") {
	case declined:
		d.fail(t, tool, "it was not allowed to change files", out)
		return
	case "failed":
		d.fail(t, tool, "the patch could not be applied", out)
		return
	}
	output := []byte{'['}
	for _, change := range item.Items("changes") {
		path, diff := change.Text("path"), change.Text("diff")
		kind := change.Text("kind", "type")
		switch kind {
		case "add":
			var size *int64
			if change.IsString("diff") {
				n := int64(len(diff))
				size = &n
			}
			out.Event(pluginapi.FileCreate{ToolCallID: tool.id, Path: path, ByteCount: size, Nested: t.nested()})
		case "delete":
			out.Event(pluginapi.FileDelete{ToolCallID: tool.id, Path: path, Nested: t.nested()})
		default:
			if moved := change.Text("kind", "move_path"); moved != "" {
				out.Event(pluginapi.FileDelete{ToolCallID: tool.id, Path: path, Nested: t.nested()})
				path = moved
			}
			out.Event(pluginapi.FilePatch{ToolCallID: tool.id, Path: path, Diff: diff, Nested: t.nested()})
		}
		if len(output) > 1 {
			output = append(output, ',')
		}
		output = append(output, inputObject("kind", kind, "path", path)...)
	}
	d.result(t, tool, append(output, ']'), nil, out)
}

func (d *decoder) mcpDone(t *thread, tool *tool, item jsonl.Value, out sink) {
	if message := item.Text("error", "message"); message != "" || item.Text("status") == "failed" {
		if message == "" {
			message = "the tool failed"
		}
		d.fail(t, tool, message, out)
		return
	}
	output := item.Get("result", "content").AppendRaw(nil)
	out.Event(pluginapi.McpToolResult{ToolCallID: tool.id, Server: tool.server, ToolName: tool.tool, Output: output, Nested: t.nested()})
	d.result(t, tool, output, item.IntPtr("durationMs"), out)
}

// subagent tells of an agent that the agent has begun. What it was asked is
// encrypted; what it does are items of a thread of its own.
func (d *decoder) subagent(t *thread, item jsonl.Value, completed bool, out sink) {
	agent := item.Text("agentThreadId")
	if agent == "" {
		return
	}
	switch item.Text("kind") {
	case "started":
		child := d.thread(agent)
		if completed || child.parent != "" || child == d.main {
			return
		}
		child.parent, child.name, child.active = item.Text("id"), item.Text("agentPath"), true
		tool := &tool{id: child.parent, name: spawnTool, kind: "subAgentActivity", input: inputObject("agent", child.name)}
		d.begin(t, tool, out)
		out.Event(pluginapi.SubagentSpawn{SubagentID: child.parent, AgentName: child.name, Nested: t.nested()})
	case "completed", "interrupted":
		child := d.threads[agent]
		if !completed || child == nil {
			return
		}
		child.active = false
		d.subagentDone(t, child, item.Text("kind") == "completed", out)
	}
}

// endSubagents ends those whose turn is over and of which nothing more was told.
func (c *conversation) endSubagents(out *sdk.Out) {
	for _, child := range c.order {
		if child.parent == "" || child.active || child.told {
			continue
		}
		for _, t := range c.order {
			if t.tool(child.parent) != nil {
				c.subagentDone(t, child, true, out)
				break
			}
		}
		child.told = true
	}
}

func (d *decoder) subagentDone(t, child *thread, well bool, out sink) {
	child.told = true
	tool := t.tool(child.parent)
	if tool == nil {
		return
	}
	d.closeMessage(child, true, out)
	d.closeTools(child, "the sub-agent ended before the tool did", out)
	if !well {
		out.Event(pluginapi.SubagentError{SubagentID: child.parent, AgentName: child.name, Error: "interrupted", Nested: t.nested()})
		d.fail(t, tool, "interrupted", out)
		return
	}
	out.Event(pluginapi.SubagentResult{SubagentID: child.parent, AgentName: child.name, Summary: child.last, Nested: t.nested()})
	d.result(t, tool, pluginapi.AppendString(nil, child.last), nil, out)
}

// closeTools ends the tools of a thread that will not be told to their end.
// Sub-agents outlive a turn.
func (d *decoder) closeTools(t *thread, message string, out sink) {
	for _, tool := range slices.Clone(t.tools) {
		if tool.kind == "subAgentActivity" {
			continue
		}
		if t.closed == nil {
			t.closed = map[string]bool{}
		}
		t.closed[tool.id] = true
		d.fail(t, tool, message, out)
	}
}

// closeAll ends everything: the process is gone.
func (d *decoder) closeAll(message string, out sink) {
	for i := len(d.order) - 1; i >= 0; i-- {
		t := d.order[i]
		t.active = false
		d.closeMessage(t, true, out)
		for _, tool := range slices.Clone(t.tools) {
			if tool.kind == "subAgentActivity" {
				out.Event(pluginapi.SubagentError{SubagentID: tool.id, AgentName: d.childName(tool.id), Error: message, Nested: t.nested()})
			}
			d.fail(t, tool, message, out)
		}
	}
}

func (d *decoder) childName(parent string) string {
	for _, t := range d.order {
		if t.parent == parent {
			return t.name
		}
	}
	return ""
}
