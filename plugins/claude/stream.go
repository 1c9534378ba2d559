package main

import (
	"slices"

	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// decoder turns messages of the model, of the main conversation and of
// sub-agents, into events. A message arrives in two ways: as stream_event lines
// while the model speaks (main conversation only), and as one assistant line for
// each finished block. Where both come they become the same events once.
type decoder struct {
	w      *turn.Writer
	spent  *spending
	main   draft
	nested map[string]*draft // by sub-agents, should they ever stream
}

// draft is the message that is being streamed for one parent.
type draft struct {
	parent string // tool_call_id of the sub-agent; empty: the main conversation
	id     string // of the message
	blocks []block
	call   call // what the message takes
}

// block is one content block of a streamed message.
type block struct {
	index int
	kind  string     // text, thinking, tool_use; empty for what has no events
	tool  *turn.Tool // nil: another kind, or a tool that has ended
	open  bool       // its last event has not been emitted
	seen  bool       // its assistant line has come
}

const (
	kindText     = "text"
	kindThinking = "thinking"
	kindTool     = "tool_use"
)

func (d *decoder) draft(parent string) *draft {
	if parent == "" {
		return &d.main
	}
	m := d.nested[parent]
	if m == nil {
		if d.nested == nil {
			d.nested = map[string]*draft{}
		}
		m = &draft{parent: parent}
		d.nested[parent] = m
	}
	return m
}

func (m *draft) block(index int) *block {
	for i := range m.blocks {
		if m.blocks[i].index == index {
			return &m.blocks[i]
		}
	}
	return nil
}

// streamEvent handles one stream_event line. It reports whether it knows such an
// event, and whether a message of the main conversation has come to its end.
func (d *decoder) streamEvent(line jsonl.Value, out turn.Events) (known, whole bool) {
	event := line.Get("event")
	m := d.draft(line.Text("parent_tool_use_id"))
	index, _ := event.Int("index")
	switch string(event.Bytes("type")) {
	case "content_block_delta":
		return d.blockDelta(m, m.block(int(index)), event.Get("delta"), out), false
	case "message_start":
		d.cutOff(m, out)
		m.id = event.Text("message", "id")
		m.call = call{model: event.Text("message", "model")}
		m.call.read(event.Get("message", "usage"))
	case "content_block_start":
		return d.blockStart(m, int(index), event.Get("content_block"), out), false
	case "message_stop":
		if lost := line.Get("abandoned_blocks"); lost.IsObject() {
			from, _ := lost.Int("from_block_index")
			d.abandon(m, int(from), "the connection broke", out)
		}
		d.closeBlocks(m, out)
		if !slices.ContainsFunc(m.blocks, func(b block) bool { return b.kind != kindText && b.kind != kindTool }) {
			m.call.thinks = true // none
		}
		d.spent.call(m.call, m == &d.main, out)
		m.call = call{}
		return true, m == &d.main
	case "message_delta":
		m.call.read(event.Get("usage"))
	case "content_block_stop":
		// The CLI may yet take the block back, if its assistant line has not come before.
	case "ping":
	default:
		return false, false
	}
	return true, false
}

func (d *decoder) blockStart(m *draft, index int, content jsonl.Value, out turn.Events) bool {
	s := d.w.Stream(m.parent)
	if m.block(index) != nil {
		// A message begun once more under its old id.
		s.Abort(out)
		m.blocks = m.blocks[:0]
	}
	d.closeBlocks(m, out)
	b := block{index: index}
	switch string(content.Bytes("type")) {
	case "text":
		b.kind, b.open = kindText, true
		s.Text(m.id, content.Text("text"), out)
	case "thinking":
		b.kind, b.open = kindThinking, true
		s.Think(content.Text("thinking"), out)
	case "tool_use", "server_tool_use", "mcp_tool_use":
		b.kind = kindTool
		b.tool = d.w.StartTool(content.Text("id"), toolName(content), m.parent, out)
		b.open = b.tool != nil
	case "redacted_thinking": // encrypted: nothing to show
	case "":
		return false
	default:
		// Its assistant line has it whole.
	}
	m.blocks = append(m.blocks, b)
	return true
}

func (d *decoder) blockDelta(m *draft, b *block, delta jsonl.Value, out turn.Events) bool {
	var text []byte
	switch string(delta.Bytes("type")) {
	case "text_delta":
		text = delta.Bytes("text")
	case "thinking_delta":
		text = delta.Bytes("thinking")
	case "input_json_delta":
		text = delta.Bytes("partial_json")
	case "signature_delta", "citations_delta":
		return true // the model's own proof of its thinking; sources of a search
	default:
		return false
	}
	switch {
	case b == nil:
		return false
	case len(text) == 0 || !b.open:
	case b.kind == kindText:
		d.w.Stream(m.parent).Text(m.id, string(text), out)
	case b.kind == kindThinking:
		d.w.Stream(m.parent).Think(string(text), out)
	case b.kind == kindTool:
		b.tool.Input(string(text), out)
	}
	return true
}

// assistant handles an assistant line: finished blocks of one message.
func (d *decoder) assistant(line jsonl.Value, out turn.Events) bool {
	return d.assistantOf(line, line.Text("parent_tool_use_id"), out)
}

// assistantOf is assistant for a line whose parent is known in another way.
func (d *decoder) assistantOf(line jsonl.Value, parent string, out turn.Events) bool {
	message := line.Get("message")
	id := message.Text("id")
	aborted := line.Bool("aborted")
	known := true
	if message.IsString("content") {
		d.text(parent, id, message.Text("content"), aborted, out)
		return true
	}
	for _, content := range message.Items("content") {
		switch string(content.Bytes("type")) {
		case "text":
			d.text(parent, id, content.Text("text"), aborted, out)
		case "thinking":
			d.thinking(parent, id, content.Text("thinking"), out)
		case "tool_use", "server_tool_use", "mcp_tool_use":
			d.toolUse(parent, content, out)
		case "redacted_thinking":
		default:
			// What a tool of the provider's own has found.
			if content.IsString("tool_use_id") {
				d.toolResult(content, jsonl.Value{}, parent, out)
			} else {
				known = false
			}
		}
	}
	return known
}

// streamed returns the streamed block which an assistant line has now whole, nil
// if it was not streamed.
func (d *decoder) streamed(parent, messageID, kind string) *block {
	m := d.draft(parent)
	if m.id != messageID || messageID == "" {
		return nil
	}
	for i := range m.blocks {
		if b := &m.blocks[i]; b.kind == kind && !b.seen {
			b.seen = true
			return b
		}
	}
	return nil
}

func (d *decoder) text(parent, messageID, text string, aborted bool, out turn.Events) {
	s := d.w.Stream(parent)
	switch b := d.streamed(parent, messageID, kindText); {
	case b == nil:
		s.End(out)
		s.Text(messageID, text, out)
	case !b.open:
		return
	default:
		b.open = false
	}
	if aborted {
		s.Abort(out)
	} else {
		s.End(out)
	}
}

func (d *decoder) thinking(parent, messageID, text string, out turn.Events) {
	s := d.w.Stream(parent)
	switch b := d.streamed(parent, messageID, kindThinking); {
	case b == nil:
		s.End(out)
		s.Think(text, out)
	case !b.open:
		return
	default:
		b.open = false
	}
	s.End(out)
}

func (d *decoder) toolUse(parent string, content jsonl.Value, out turn.Events) {
	if t := d.w.StartTool(content.Text("id"), toolName(content), parent, out); t != nil {
		d.ready(t, content.Get("input"), out)
	}
}

// ready tells the whole input of a tool.
func (d *decoder) ready(t *turn.Tool, input jsonl.Value, out turn.Events) {
	if !t.Ready() {
		d.w.ReadyTool(t, input.Raw(), detail(t.Name, input), out)
	}
}

// closeBlocks ends the blocks whose assistant lines have not come.
func (d *decoder) closeBlocks(m *draft, out turn.Events) {
	for i := range m.blocks {
		b := &m.blocks[i]
		if !b.open {
			continue
		}
		b.open = false
		if b.kind != kindTool {
			d.w.Stream(m.parent).End(out)
			continue
		}
		input := b.tool.Streamed()
		if len(input) == 0 {
			input = []byte("{}")
		}
		if doc, err := jsonl.Parse(input); err == nil {
			d.ready(b.tool, doc.Value, out)
			doc.Release()
		}
	}
}

// cutOff ends what is open of the message that was streamed so far.
func (d *decoder) cutOff(m *draft, out turn.Events) {
	d.w.Stream(m.parent).Abort(out)
	clear(m.blocks)
	m.id, m.blocks, m.call = "", m.blocks[:0], call{}
}

// abandon takes back the blocks of a streamed message from one on: the CLI asks the
// model again, or goes on from the blocks before them.
func (d *decoder) abandon(m *draft, from int, reason string, out turn.Events) {
	lost := false
	for i := range m.blocks {
		if b := &m.blocks[i]; b.open && b.index >= from {
			b.open, lost = false, true
		}
	}
	if lost {
		d.closeBlocks(m, out) // those before it are whole
		d.w.Stream(m.parent).Abandon(reason, out)
	}
}
