package main

import (
	"regexp"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// retryText is a request that is tried again, with its reason in brackets.
var retryText = regexp.MustCompile(`^Reconnecting\.\.\. .*?\((.*)\)$`)

// execItem handles an item of `codex exec`, which has the same ones as app-server
// under names of its own and with less in them.
func (c *execConversation) execItem(item jsonl.Value, completed bool, out *sdk.Out) bool {
	t, id := c.main, item.Text("id")
	switch item.Text("type") {
	case "agent_message":
		if completed {
			c.messageDone(t, id, item.Text("text"), out)
		}
	case "reasoning":
		if completed {
			c.thinkingDone(t, id, item.Text("text"), out)
		}
	case "command_execution":
		open := t.tool(id)
		if open == nil {
			open = &tool{id: id, name: shellTool, kind: "commandExecution", command: plainCommand(item)}
			open.input = inputObject("command", open.command)
			c.begin(t, open, out)
			c.shellStart(t, open, out)
		}
		if completed {
			c.execShellDone(open, item, out)
		}
	case "file_change":
		open := t.tool(id)
		if open == nil {
			open = &tool{id: id, name: patchTool, kind: "fileChange", input: append(append([]byte(`{"changes":`), item.Get("changes").AppendRaw(nil)...), '}')}
			c.begin(t, open, out)
		}
		if completed {
			c.execPatchDone(open, item, out)
		}
	case "mcp_tool_call":
		open := t.tool(id)
		if open == nil {
			open = &tool{id: id, kind: "mcpToolCall", server: item.Text("server"), tool: item.Text("tool"), input: item.Raw("arguments")}
			open.name = "mcp__" + open.server + "__" + open.tool
			c.begin(t, open, out)
			out.Event(pluginapi.McpToolCallStart{ToolCallID: id, Server: open.server, ToolName: open.tool, Input: open.input})
		}
		if completed {
			c.mcpDone(t, open, item, out)
		}
	case "error":
		if completed {
			out.Event(pluginapi.Debug{Level: "warn", Message: item.Text("message")})
		}
	default:
		return false
	}
	return true
}

func (c *execConversation) execShellDone(open *tool, item jsonl.Value, out *sdk.Out) {
	output := item.Text("aggregated_output")
	c.shellOutput(c.main, open, output, out)
	var code *int
	if n, ok := item.Int("exit_code"); ok {
		exit := int(n)
		code = &exit
	}
	out.Event(pluginapi.ShellExit{ToolCallID: open.id, ExitCode: code})
	if item.Text("status") == "completed" {
		c.result(c.main, open, pluginapi.AppendString(nil, output), nil, out)
		return
	}
	c.fail(c.main, open, shellFailure(code, output), out)
}

func (c *execConversation) execPatchDone(open *tool, item jsonl.Value, out *sdk.Out) {
	if item.Text("status") != "completed" {
		c.fail(c.main, open, "the patch could not be applied", out)
		return
	}
	for _, change := range item.Items("changes") {
		path := change.Text("path")
		switch change.Text("kind") {
		case "add":
			out.Event(pluginapi.FileCreate{ToolCallID: open.id, Path: path})
		case "delete":
			out.Event(pluginapi.FileDelete{ToolCallID: open.id, Path: path})
		default:
			out.Event(pluginapi.FilePatch{ToolCallID: open.id, Path: path})
		}
	}
	c.result(c.main, open, item.Get("changes").AppendRaw(nil), nil, out)
}
