package copilot

import (
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// talk reads what the lines of a run and those of a stored session have in common:
// messages, thoughts and tools, also of sub-agents. A stored session has no pieces.
type talk struct {
	turn *turn.Writer
	// agents by their id: the tool_call_id of the tool that started each.
	agents map[string]string
	told   map[string]bool   // messages told in pieces
	mused  map[string]bool   // streams with a thought told in pieces
	shown  map[string]string // of a tool's output
}

func newTalk(w *turn.Writer) talk {
	return talk{turn: w, agents: map[string]string{}, told: map[string]bool{}, mused: map[string]bool{}, shown: map[string]string{}}
}

// parent is the tool_call_id of the sub-agent that a line is of; "": none.
func (k *talk) parent(line jsonl.Value) string { return k.agents[line.Text("agentId")] }

// line reports whether the line is one of these.
func (k *talk) line(line jsonl.Value, out turn.Events) bool {
	data, parent := line.Get("data"), k.parent(line)
	stream := k.turn.Stream(parent)
	switch string(line.Bytes("type")) {
	case "subagent.started":
		k.agents[line.Text("agentId")] = data.Text("toolCallId")
	case "assistant.message_delta":
		id := data.Text("messageId")
		k.told[id] = true
		stream.Text(id, data.Text("deltaContent"), out)
	case "assistant.reasoning_delta":
		k.mused[parent] = true
		stream.Think(data.Text("deltaContent"), out)
	case "assistant.message":
		k.message(data, parent, stream, out)
	case "assistant.tool_call_delta":
		if t := k.turn.StartTool(data.Text("toolCallId"), data.Text("toolName"), parent, out); t != nil {
			t.Input(data.Text("inputDelta"), out)
		}
	case "tool.execution_start":
		if t := k.turn.StartTool(data.Text("toolCallId"), data.Text("toolName"), parent, out); t != nil {
			input := data.Get("arguments")
			d := detail(t.Name, input)
			if server := data.Text("mcpServerName"); server != "" {
				d = turn.Detail{Kind: turn.MCP, Server: server, Tool: data.Text("mcpToolName")}
			}
			k.turn.ReadyTool(t, input.Raw(), d, out)
		}
	case "tool.execution_partial_result":
		if t := k.turn.Tool(data.Text("toolCallId")); t != nil {
			k.shown[t.ID] = data.Text("partialOutput")
			k.turn.Printed(t, k.shown[t.ID], out)
		}
	case "tool.execution_complete":
		if t := k.turn.Tool(data.Text("toolCallId")); t != nil {
			if data.Text("error", "code") == "denied" {
				// By a rule of the CLI's own: nobody was asked.
				out.Event(pluginapi.ApprovalDenied{
					InteractionID: t.ID, Reason: data.Text("error", "message"), Nested: pluginapi.Nested{ParentID: parent},
				})
			}
			k.turn.EndTool(t, k.result(t, data), out)
			delete(k.shown, t.ID)
		}
	default:
		return false
	}
	return true
}

// message has a message whole; what was not told in pieces is told now.
func (k *talk) message(data jsonl.Value, parent string, stream *turn.Stream, out turn.Events) {
	id := data.Text("messageId")
	if text := data.Text("reasoningText"); text != "" && !k.mused[parent] {
		stream.Think(text, out)
		stream.End(out)
	}
	if text := data.Text("content"); text != "" && !k.told[id] {
		stream.Text(id, text, out)
	}
	stream.End(out)
	delete(k.told, id)
	delete(k.mused, parent)
}

// result is how a tool ended.
func (k *talk) result(t *turn.Tool, data jsonl.Value) turn.Result {
	text := data.Text("result", "content")
	r := turn.Result{Text: text, Output: pluginapi.AppendString(nil, text)}
	if !data.Bool("success") {
		r.Failed, r.Text = true, data.Text("error", "message")
	}
	switch t.Detail.Kind {
	case turn.Shell:
		r.Quiet, r.Stdout = true, printed(text, k.shown[t.ID])
		if n, ok := data.Int("shellExecution", "exitCode"); ok {
			exited(&r, int(n))
		}
	case turn.Write:
		r.Created = true // it refuses a file that is there
	case turn.Edit:
		r.Diff = strings.TrimPrefix(data.Text("result", "detailedContent"), "\n")
	}
	return r
}
