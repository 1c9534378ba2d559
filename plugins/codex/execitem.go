package main

import (
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/turn"
)

// retryText is a request that is tried again, with its reason in brackets.
var retryText = pattern.New(`^Reconnecting\.\.\. .*?\((.*)\)$`)

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
			c.thought(t, id, item.Text("text"), out)
		}
	case "command_execution":
		tool := c.w.Tool(id)
		if tool == nil {
			tool = c.shellStart(t, id, plainCommand(item), "", false, out)
		}
		if tool != nil && completed {
			c.EndTool(tool, shellResult(tool, item.Text("aggregated_output"), number(item, "exit_code"), nil, item.Text("status") != "completed", nil), out)
		}
	case "file_change":
		tool := c.w.Tool(id)
		if tool == nil {
			tool = c.patchStart(t, item, out)
		}
		if tool != nil && completed {
			c.EndTool(tool, execPatchResult(tool, item), out)
		}
	case "mcp_tool_call":
		tool := c.w.Tool(id)
		if tool == nil {
			tool = c.mcpStart(t, item, out)
		}
		if tool != nil && completed {
			c.EndTool(tool, mcpResult(item), out)
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

func execPatchResult(tool *turn.Tool, item jsonl.Value) turn.Result {
	if item.Text("status") != "completed" {
		return failed("the patch could not be applied")
	}
	r := turn.Result{Output: item.Get("changes").AppendRaw(nil)}
	for _, change := range item.Items("changes") {
		r.Files = append(r.Files, fileEvent(tool, change.Text("kind"), change.Text("path"), "", nil))
	}
	return r
}
