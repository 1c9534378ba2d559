package main

import (
	"encoding/json"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// decoder turns what the agent does into events, in a run and in a stored session.
type decoder struct {
	threads
	meter
	w       *turn.Writer
	retries int // in a row
}

// notification handles what an item says while it goes on; false means that the
// method is not one of those.
func (d *decoder) notification(t *thread, method string, p jsonl.Value, out turn.Events) bool {
	switch method {
	case "item/agentMessage/delta", "item/plan/delta":
		d.message(t, p.Text("itemId"), p.Text("delta"), out)
	case "item/reasoning/summaryTextDelta":
		part, _ := p.Int("summaryIndex")
		d.think(t, p.Text("itemId"), part, p.Text("delta"), out)
	case "item/reasoning/textDelta":
		part, _ := p.Int("contentIndex")
		d.think(t, p.Text("itemId"), part, p.Text("delta"), out)
	case "item/commandExecution/outputDelta":
		if tool := d.w.Tool(p.Text("itemId")); tool != nil {
			d.w.Run(tool, out)
			d.w.Print(tool, p.Text("delta"), out)
		}
	case "account/rateLimits/updated":
		d.limits(p.Get("rateLimits"))
	case "turn/plan/updated":
		update := pluginapi.TodoUpdate{Items: []pluginapi.TodoItem{}, Nested: t.nested()}
		for _, step := range p.Items("plan") {
			status := step.Text("status")
			if status == "inProgress" {
				status = "in_progress"
			}
			update.Items = append(update.Items, pluginapi.TodoItem{Text: step.Text("step"), Status: status})
		}
		out.Event(update)
	default:
		return false
	}
	return true
}

// item handles the start or the end of an item; false means that its type is not
// known.
func (d *decoder) item(t *thread, item jsonl.Value, completed bool, out turn.Events) bool {
	kind := item.Text("type")
	id := item.Text("id")
	switch kind {
	case "agentMessage", "plan":
		if completed {
			d.messageDone(t, id, item.Text("text"), out)
		} else {
			d.message(t, id, "", out)
		}
	case "reasoning":
		if completed {
			d.thought(t, id, reasoningText(item), out)
		}
	case "commandExecution", "fileChange", "mcpToolCall", "webSearch", "imageView", "collabAgentToolCall", "dynamicToolCall":
		tool := d.w.Tool(id)
		if tool == nil {
			tool = d.toolStart(t, kind, item, out)
		}
		if tool != nil && completed {
			d.w.EndTool(tool, toolResult(tool, kind, item), out)
		}
	case "subAgentActivity":
		d.subagent(t, item, completed, out)
	case "contextCompaction":
		if completed {
			out.Event(pluginapi.ContextCompacted{})
		}
	default:
		_, known := ignoredItems[kind]
		return known
	}
	return true
}

// message says a piece of a message.
func (d *decoder) message(t *thread, id, delta string, out turn.Events) {
	t.thinks = false
	if delta != "" {
		d.retries = 0
	}
	d.w.Stream(t.parent).Text(id, delta, out)
}

// messageDone ends a message with its whole text.
func (d *decoder) messageDone(t *thread, id, text string, out turn.Events) {
	t.thinks, t.last, d.retries = false, text, 0
	d.w.Stream(t.parent).Finish(id, text, out)
}

// think adds to the thinking; the parts of a summary are paragraphs.
func (d *decoder) think(t *thread, id string, part int64, delta string, out turn.Events) {
	if delta == "" {
		return
	}
	d.retries = 0
	s := d.w.Stream(t.parent)
	switch {
	case !t.thinks || t.thought != id:
		s.End(out)
	case t.part != part:
		delta = "\n\n" + delta
	}
	t.thinks, t.thought, t.part = true, id, part
	s.Think(delta, out)
}

// thought ends the thinking. Of some models nothing of it is told.
func (d *decoder) thought(t *thread, id, text string, out turn.Events) {
	if !t.thinks || t.thought != id {
		if text == "" {
			return
		}
		d.think(t, id, 0, text, out)
	}
	t.thinks = false
	d.w.Stream(t.parent).End(out)
}

func reasoningText(item jsonl.Value) string {
	for _, key := range []string{"summary", "content"} {
		if text := joined(item, key); text != "" {
			return text
		}
	}
	return ""
}

// joined are the texts of a list as paragraphs.
func joined(item jsonl.Value, path ...string) string {
	var parts []string
	for _, part := range item.Items(path...) {
		parts = append(parts, part.Text())
	}
	return strings.Join(parts, "\n\n")
}

// inputText is the text of a prompt's pieces.
func inputText(content jsonl.Value) string {
	var texts []string
	for _, piece := range content.Items() {
		if text := piece.Text("text"); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// begin starts a tool, whose input is known from the beginning; nil: it has ended before.
func (d *decoder) begin(t *thread, id, name string, input json.RawMessage, detail turn.Detail, out turn.Events) *turn.Tool {
	tool := d.w.StartTool(id, name, t.parent, out)
	if tool == nil {
		return nil
	}
	t.called, t.thinks = true, false
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	tool.Note = input
	d.w.ReadyTool(tool, input, detail, out)
	return tool
}

// subagent tells of an agent that the agent has begun. What it was asked is
// encrypted; what it does are items of a thread of its own.
func (d *decoder) subagent(t *thread, item jsonl.Value, completed bool, out turn.Events) {
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
		d.begin(t, child.parent, spawnTool, inputObject("agent", child.name), turn.Detail{Kind: turn.Subagent, Agent: child.name}, out)
	case "completed", "interrupted":
		child := d.byID[agent]
		if !completed || child == nil {
			return
		}
		child.active = false
		failure := ""
		if item.Text("kind") == "interrupted" {
			failure = "interrupted"
		}
		d.subagentDone(child, failure, out)
	}
}

// subagentDone ends a sub-agent and its tool; without a failure it did its work.
func (d *decoder) subagentDone(child *thread, failure string, out turn.Events) {
	child.told = true
	tool := d.w.Tool(child.parent)
	if tool == nil {
		return
	}
	d.close(child, "the sub-agent ended before the tool did", out)
	r := turn.Result{Output: pluginapi.AppendString(nil, child.last), Text: child.last}
	if failure != "" {
		r = failed(failure)
	}
	d.w.EndTask(tool, r, out)
	d.w.EndTool(tool, r, out)
}

// close ends what a sub-agent says, and its tools, but for the sub-agents of its own.
func (d *decoder) close(child *thread, why string, out turn.Events) {
	if child.parent == "" {
		return
	}
	s := d.w.Stream(child.parent)
	if text, open := s.Said(); open {
		child.last = text
	}
	s.Abort(out)
	child.thinks = false
	d.w.CloseToolsWhere(func(tool *turn.Tool) bool {
		return tool.Parent() == child.parent && d.begunBy(tool.ID) == nil
	}, why, out)
}

// endQuiet ends the sub-agents whose turn is over and of which nothing more was told.
func (d *decoder) endQuiet(out turn.Events) {
	for _, child := range d.order {
		if child.parent != "" && !child.active && !child.told {
			d.subagentDone(child, "", out)
		}
	}
}
