package main

import (
	"encoding/json"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// sink takes events: of a run, or of a stored session.
type sink interface{ Event(p pluginapi.Payload) }

// decoder turns what the agent does into events.
type decoder struct {
	main    *thread
	threads map[string]*thread
	order   []*thread

	model    string
	version  string
	effort   string
	window   *int64 // tokens that the model takes
	context  turn.Context
	retries  int   // in a row
	resetsAt int64 // when the account's limit ends, in seconds since 1970; 0: not known
	failure  *pluginapi.Outcome
}

// thread is a conversation: the main one, or that of a sub-agent.
type thread struct {
	id     string
	parent string // tool_call_id that began it; empty for the main one
	name   string // of a sub-agent
	active bool
	told   bool // that the sub-agent has ended
	called bool // a tool, in the request that goes on
	tools  []*tool
	closed map[string]bool // ids of tools that were ended here, and may be told after
	// The message or the thinking that is being told.
	message  *message
	thinking *message
	last     string // text of the last message
	// Tokens so far, as the CLI counts them; they go on where another run or
	// thread has stopped.
	total    tokens
	hasTotal bool
	inherits bool
}

func (t *thread) nested() pluginapi.Nested { return pluginapi.Nested{ParentID: t.parent} }

// message is a text that comes in pieces.
type message struct {
	id   string
	text strings.Builder
	part int64 // of a summary
}

// tool is one that has not ended.
type tool struct {
	id, name string
	kind     string // of its item
	command  string
	cwd      string
	running  bool // shell_start was told
	output   int  // bytes told
	server   string
	tool     string
	input    json.RawMessage
}

type tokens struct{ input, cached, written, output, thinking int64 }

// thread finds a thread. Without an id it is the main one.
func (d *decoder) thread(id string) *thread {
	if id == "" && d.main != nil {
		return d.main
	}
	t := d.threads[id]
	if t == nil {
		t = &thread{id: id}
		d.threads[id] = t
		d.order = append(d.order, t)
	}
	return t
}

// working reports whether a sub-agent is at work, or about to say what came of it.
func (d *decoder) working() bool {
	for _, t := range d.order {
		if t != d.main && t.parent != "" && (t.active || !t.told) {
			return true
		}
	}
	return false
}

// notification handles what an item says while it goes on; false means that the
// method is none of those.
func (d *decoder) notification(t *thread, method string, p jsonl.Value, out sink) bool {
	switch method {
	case "item/agentMessage/delta", "item/plan/delta":
		d.messageDelta(t, p.Text("itemId"), p.Text("delta"), out)
	case "item/reasoning/summaryTextDelta":
		part, _ := p.Int("summaryIndex")
		d.thinkingDelta(t, p.Text("itemId"), part, p.Text("delta"), out)
	case "item/reasoning/textDelta":
		part, _ := p.Int("contentIndex")
		d.thinkingDelta(t, p.Text("itemId"), part, p.Text("delta"), out)
	case "item/commandExecution/outputDelta":
		if tool := t.tool(p.Text("itemId")); tool != nil {
			d.shellStart(t, tool, out)
			d.shellOutput(t, tool, p.Text("delta"), out)
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
func (d *decoder) item(t *thread, item jsonl.Value, completed bool, out sink) bool {
	kind := item.Text("type")
	id := item.Text("id")
	switch kind {
	case "agentMessage", "plan":
		if completed {
			d.messageDone(t, id, item.Text("text"), out)
		} else {
			d.messageStart(t, id, out)
		}
	case "reasoning":
		if completed {
			d.thinkingDone(t, id, reasoningText(item), out)
		}
	case "commandExecution", "fileChange", "mcpToolCall", "webSearch", "imageView", "collabAgentToolCall", "dynamicToolCall":
		if t.closed[id] {
			return true
		}
		tool := t.tool(id)
		if tool == nil {
			tool = d.toolStart(t, kind, item, out)
		}
		if tool.kind == kind && completed {
			d.toolDone(t, tool, item, out)
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

// Messages.

func (d *decoder) messageStart(t *thread, id string, out sink) {
	d.closeMessage(t, false, out)
	t.message = &message{id: id}
	out.Event(pluginapi.MessageStart{MessageID: id, Nested: t.nested()})
}

func (d *decoder) messageDelta(t *thread, id, delta string, out sink) {
	if t.message == nil || t.message.id != id {
		d.messageStart(t, id, out)
	}
	if delta == "" {
		return
	}
	d.retries = 0
	t.message.text.WriteString(delta)
	out.Event(pluginapi.TextDelta{Delta: delta, Nested: t.nested()})
}

// messageDone ends a message with its whole text, of which all, a part or nothing
// came in pieces.
func (d *decoder) messageDone(t *thread, id, text string, out sink) {
	if t.message == nil || t.message.id != id {
		d.messageStart(t, id, out)
	}
	if rest, ok := strings.CutPrefix(text, t.message.text.String()); ok && rest != "" {
		d.messageDelta(t, id, rest, out)
	}
	t.message = nil
	t.last = text
	out.Event(pluginapi.MessageStop{MessageID: id, Text: text, Nested: t.nested()})
}

// closeMessage ends what was being told and will not be told to its end.
func (d *decoder) closeMessage(t *thread, aborted bool, out sink) {
	if m := t.thinking; m != nil {
		t.thinking = nil
		out.Event(pluginapi.ThinkingStop{Thinking: m.text.String(), Nested: t.nested()})
	}
	if m := t.message; m != nil {
		t.message = nil
		t.last = m.text.String()
		out.Event(pluginapi.MessageStop{MessageID: m.id, Text: t.last, Aborted: aborted, Nested: t.nested()})
	}
}

// abandon takes back what the model has said in a request that is made again.
func (d *decoder) abandon(t *thread, reason string, out sink) {
	capability := ""
	switch {
	case t.message != nil:
		capability = "text"
	case t.thinking != nil:
		capability = "thinking"
	default:
		return
	}
	d.closeMessage(t, true, out)
	t.last = ""
	out.Event(pluginapi.StreamFallback{Capability: capability, Reason: reason, Nested: t.nested()})
}

// thinkingDelta adds to the thinking; the parts of a summary are paragraphs.
func (d *decoder) thinkingDelta(t *thread, id string, part int64, delta string, out sink) {
	if delta == "" {
		return
	}
	d.retries = 0
	if t.thinking == nil || t.thinking.id != id {
		d.closeMessage(t, false, out)
		t.thinking = &message{id: id, part: part}
		out.Event(pluginapi.ThinkingStart{Effort: d.effort, Nested: t.nested()})
	}
	if t.thinking.part != part {
		t.thinking.part = part
		delta = "\n\n" + delta
	}
	t.thinking.text.WriteString(delta)
	out.Event(pluginapi.ThinkingDelta{Delta: delta, Nested: t.nested()})
}

// thinkingDone ends the thinking. Of some models nothing of it is told.
func (d *decoder) thinkingDone(t *thread, id, text string, out sink) {
	if t.thinking == nil || t.thinking.id != id {
		if text == "" {
			return
		}
		d.thinkingDelta(t, id, 0, text, out)
	}
	if text == "" {
		text = t.thinking.text.String()
	}
	t.thinking = nil
	out.Event(pluginapi.ThinkingStop{Thinking: text, Nested: t.nested()})
}

func reasoningText(item jsonl.Value) string {
	for _, key := range []string{"summary", "content"} {
		var parts []string
		for _, part := range item.Items(key) {
			parts = append(parts, part.Text())
		}
		if len(parts) > 0 {
			return strings.Join(parts, "\n\n")
		}
	}
	return ""
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

// usage emits the difference to what the thread has taken before. A thread that
// goes on begins with the figures of its past, which the CLI tells before the
// first turn.
//
// It reports whether there was a request since.
func (d *decoder) usage(t *thread, usage jsonl.Value, out sink) bool {
	if window := usage.IntPtr("modelContextWindow"); window != nil {
		d.window = window
	}
	total, ok := readTokens(usage.Get("total"))
	if !ok {
		return false
	}
	if used, ok := usage.Int("last", "totalTokens"); ok && d.window != nil && t == d.main {
		d.context.Used(used, *d.window, out)
	}
	before := t.total
	if t.inherits && !t.hasTotal {
		if !t.active {
			t.total, t.hasTotal = total, true
			return false
		}
		last, _ := readTokens(usage.Get("last"))
		before = total.less(last)
	}
	t.total, t.hasTotal = total, true
	d.tokens(total.less(before), out)
	return total != before
}

// tokens emits what a request took. The CLI's input counts what was cached, its
// output what was thought.
func (d *decoder) tokens(n tokens, out sink) {
	if n == (tokens{}) {
		return
	}
	input := n.input - n.cached - n.written
	out.Event(pluginapi.TokenUsage{
		InputTokens: &input, OutputTokens: &n.output, ThinkingTokens: &n.thinking,
		CacheReadTokens: &n.cached, CacheWriteTokens: &n.written, Model: d.model,
	})
}

func (n tokens) less(o tokens) tokens {
	return tokens{n.input - o.input, n.cached - o.cached, n.written - o.written, n.output - o.output, n.thinking - o.thinking}
}

// readTokens reads figures of app-server, or of a stored session.
func readTokens(v jsonl.Value) (tokens, bool) {
	get := func(names ...string) int64 {
		for _, name := range names {
			if n, ok := v.Int(name); ok {
				return n
			}
		}
		return 0
	}
	return tokens{
		input:    get("inputTokens", "input_tokens"),
		cached:   get("cachedInputTokens", "cached_input_tokens"),
		written:  get("cacheWriteInputTokens", "cache_write_input_tokens"),
		output:   get("outputTokens", "output_tokens"),
		thinking: get("reasoningOutputTokens", "reasoning_output_tokens"),
	}, v.IsObject()
}

// limits keeps when the account may ask again: the end of the window that is used
// up.
func (d *decoder) limits(limits jsonl.Value) {
	d.resetsAt = 0
	for _, window := range []string{"primary", "secondary"} {
		used, _ := limits.Float(window, "usedPercent")
		if at, ok := limits.Int(window, "resetsAt"); ok && used >= 100 {
			d.resetsAt = max(d.resetsAt, at)
		}
	}
}

// retryAfter is how long that is from a time, in seconds since 1970, as the CLI
// tells it: there is no clock here. nil is not known.
func (d *decoder) retryAfter(now int64) *int64 {
	if d.resetsAt == 0 || now == 0 || d.resetsAt <= now {
		return nil
	}
	ms := (d.resetsAt - now) * 1000
	return &ms
}
