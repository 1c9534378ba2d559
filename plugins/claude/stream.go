package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// events is where events go: to the host in a run, to a reader of sessions else.
type events interface {
	Event(pluginapi.Payload)
	RawEvent(pluginapi.Type, []byte)
}

// decoder turns messages of the model, of the main conversation and of
// sub-agents, into events. A message arrives in two ways: as stream_event lines
// while the model speaks (main conversation only), and as one assistant line for
// each finished block. Where both come they become the same events once.
type decoder struct {
	main    stream
	nested  []*stream       // by sub-agents, should they ever stream
	tools   []*tool         // those without a result, in the order they began
	ended   map[string]bool // tools that have theirs
	effort  string
	scratch []byte // of a delta event
}

// stream is the message that is being streamed for one parent.
type stream struct {
	parent    string // tool_call_id of the sub-agent; empty: the main conversation
	messageID string
	blocks    []block
}

// block is one content block of a streamed message.
type block struct {
	index int
	kind  string // text, thinking, tool_use; empty for what has no events
	tool  *tool
	done  bool // its last event has been emitted
	seen  bool // its assistant line has come
	// stopped: it has come to its end, and may have been cut off there.
	stopped bool
	// text has the deltas as the inside of a JSON string. It is needed only if
	// the assistant line does not come.
	text []byte
}

const (
	kindText     = "text"
	kindThinking = "thinking"
	kindTool     = "tool_use"
)

func (d *decoder) stream(parent string) *stream {
	if parent == "" {
		return &d.main
	}
	for _, s := range d.nested {
		if s.parent == parent {
			return s
		}
	}
	s := &stream{parent: parent}
	d.nested = append(d.nested, s)
	return s
}

func (s *stream) nest() pluginapi.Nested { return pluginapi.Nested{ParentID: s.parent} }

func (s *stream) block(index int) *block {
	for i := range s.blocks {
		if s.blocks[i].index == index {
			return &s.blocks[i]
		}
	}
	return nil
}

// streamEvent handles one stream_event line; false means that it knows no such
// event.
func (d *decoder) streamEvent(line jsonl.Value, out events) bool {
	event := line.Get("event")
	s := d.stream(line.Text("parent_tool_use_id"))
	index, _ := event.Int("index")
	switch string(event.Bytes("type")) {
	case "content_block_delta":
		return d.blockDelta(s, s.block(int(index)), event.Get("delta"), out)
	case "message_start":
		d.closeStream(s, true, out)
		s.messageID = event.Text("message", "id")
	case "content_block_start":
		return d.blockStart(s, int(index), event.Get("content_block"), out)
	case "content_block_stop":
		// The CLI may yet take it back, if its assistant line has not come before.
		if b := s.block(int(index)); b != nil {
			b.stopped = true
		}
	case "message_stop":
		if lost := line.Get("abandoned_blocks"); lost.IsObject() {
			from, _ := lost.Int("from_block_index")
			d.abandon(s, int(from), "the connection broke", out)
		}
		for i := range s.blocks {
			d.closeBlock(s, &s.blocks[i], false, out)
		}
	case "message_delta", "ping":
		// Usage is taken from the result, which counts sub-agents too.
	default:
		return false
	}
	return true
}

func (d *decoder) blockStart(s *stream, index int, content jsonl.Value, out events) bool {
	if old := s.block(index); old != nil {
		// A message begun anew under its old id.
		d.closeBlock(s, old, true, out)
		*old = block{index: -1, done: true, seen: true}
	}
	for i := range s.blocks {
		if old := &s.blocks[i]; old.stopped {
			d.closeBlock(s, old, false, out)
		}
	}
	b := block{index: index}
	switch string(content.Bytes("type")) {
	case "text":
		b.kind = kindText
		out.Event(pluginapi.MessageStart{MessageID: s.messageID, Nested: s.nest()})
	case "thinking":
		b.kind = kindThinking
		out.Event(pluginapi.ThinkingStart{Effort: d.effort, Nested: s.nest()})
	case "tool_use", "server_tool_use", "mcp_tool_use":
		b.kind = kindTool
		b.tool = d.startTool(content.Text("id"), toolName(content), s.parent, out)
	case "redacted_thinking":
		b.done, b.seen = true, true // encrypted: nothing to show
	case "":
		return false
	default:
		// Its assistant line has it whole.
		b.done = true
	}
	s.blocks = append(s.blocks, b)
	first := content.Bytes("text")
	if b.kind == kindThinking {
		first = content.Bytes("thinking")
	}
	if len(first) > 0 {
		d.delta(s, &s.blocks[len(s.blocks)-1], first, out)
	}
	return true
}

func (d *decoder) blockDelta(s *stream, b *block, delta jsonl.Value, out events) bool {
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
	if b == nil {
		return false
	}
	if len(text) > 0 && !b.done {
		d.delta(s, b, text, out)
	}
	return true
}

// delta emits a piece of a block.
func (d *decoder) delta(s *stream, b *block, text []byte, out events) {
	start := len(b.text)
	b.text = pluginapi.AppendString(b.text, string(text))
	quoted := b.text[start:]
	d.emitDelta(s, b, quoted[1:len(quoted)-1], out)
	// What is kept is the inside of the string.
	b.text = append(b.text[:start], quoted[1:len(quoted)-1]...)
}

// emitDelta emits the event for a piece given as the inside of a JSON string.
func (d *decoder) emitDelta(s *stream, b *block, inside []byte, out events) {
	var t pluginapi.Type
	e := append(d.scratch[:0], '{')
	switch b.kind {
	case kindText:
		t = "text_delta"
	case kindThinking:
		t = "thinking_delta"
	case kindTool:
		t = "tool_input_delta"
		e = pluginapi.AppendString(append(e, `"tool_call_id":`...), b.tool.id)
		e = append(e, ',')
	default:
		return
	}
	e = append(append(append(e, `"delta":"`...), inside...), '"')
	if s.parent != "" {
		e = pluginapi.AppendString(append(e, `,"parent_id":`...), s.parent)
	}
	e = append(e, '}')
	out.RawEvent(t, e)
	if d.scratch = e; cap(e) > 4<<10 {
		d.scratch = nil
	}
}

// How a line with a delta of the main conversation begins and goes on. The CLI
// passes the API's events on as they are, so the keys have the API's order or,
// behind some gateways, that of the alphabet.
var deltaShapes = []struct {
	kind         string
	before, next string
	alphabetic   bool
}{
	{kindText, `"delta":{"type":"text_delta","text":"`, `"}`, false},
	{kindTool, `"delta":{"type":"input_json_delta","partial_json":"`, `"}`, false},
	{kindThinking, `"delta":{"type":"thinking_delta","thinking":"`, `"}`, false},
	{kindText, `"delta":{"text":"`, `","type":"text_delta"}`, true},
	{kindTool, `"delta":{"partial_json":"`, `","type":"input_json_delta"}`, true},
	{kindThinking, `"delta":{"thinking":"`, `","type":"thinking_delta"}`, true},
}

const (
	eventPrefix = `{"type":"stream_event","event":{`
	apiOrder    = `"type":"content_block_delta","index":`
	alphaIndex  = `,"index":`
	alphaEnd    = `,"type":"content_block_delta"},"session_id":"`
	apiEnd      = `},"session_id":"`
	mainThread  = `","parent_tool_use_id":null,`
)

// fastDelta handles a delta line of the main conversation without parsing it,
// if the line has exactly one of the known shapes. Anything else is left to
// streamEvent, which gives the same events.
func (d *decoder) fastDelta(line []byte, out events) bool {
	rest, ok := cutPrefix(line, eventPrefix)
	if !ok || line[len(line)-1] != '}' {
		return false
	}
	index := -1
	rest, api := cutPrefix(rest, apiOrder)
	if api {
		if index, rest = number(rest); index < 0 || len(rest) == 0 || rest[0] != ',' {
			return false
		}
		rest = rest[1:]
	}
	for i := range deltaShapes {
		shape := &deltaShapes[i]
		if shape.alphabetic == api {
			continue
		}
		text, ok := cutPrefix(rest, shape.before)
		if !ok {
			continue
		}
		end := plainString(text)
		if end < 0 {
			return false
		}
		if rest, ok = cutPrefix(text[end:], shape.next); !ok {
			return false
		}
		if api {
			rest, ok = cutPrefix(rest, apiEnd)
		} else if rest, ok = cutPrefix(rest, alphaIndex); ok {
			index, rest = number(rest)
			rest, ok = cutPrefix(rest, alphaEnd)
		}
		if !ok || index < 0 {
			return false
		}
		quote := bytes.IndexByte(rest, '"')
		if quote < 0 {
			return false
		}
		if _, ok := cutPrefix(rest[quote:], mainThread); !ok {
			return false
		}
		b := d.main.block(index)
		if b == nil || b.kind != shape.kind || b.done {
			return false
		}
		if end > 0 {
			b.text = append(b.text, text[:end]...)
			d.emitDelta(&d.main, b, text[:end], out)
		}
		return true
	}
	return false
}

// cutPrefix is bytes.CutPrefix for strings.
func cutPrefix(b []byte, prefix string) ([]byte, bool) {
	if len(b) < len(prefix) || string(b[:len(prefix)]) != prefix {
		return b, false
	}
	return b[len(prefix):], true
}

// number reads a small whole number; -1 if there is none.
func number(b []byte) (int, []byte) {
	n, i := 0, 0
	for i < len(b) && i < 6 && '0' <= b[i] && b[i] <= '9' {
		n = n*10 + int(b[i]-'0')
		i++
	}
	if i == 0 || i > 1 && b[0] == '0' {
		return -1, b
	}
	return n, b[i:]
}

// plainString returns the length of the inside of a JSON string, which may be
// taken as it is: valid UTF-8 without \u escapes, which could name half a
// character. It is -1 for any other.
func plainString(b []byte) int {
	ascii := true
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			if !ascii && !utf8.Valid(b[:i]) {
				return -1
			}
			return i
		case c == '\\':
			i++
			if i >= len(b) || strings.IndexByte(`"\/bfnrt`, b[i]) < 0 {
				return -1
			}
		case c < ' ':
			return -1
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return -1
}

// assistant handles an assistant line: finished blocks of one message.
func (d *decoder) assistant(line jsonl.Value, out events) bool {
	return d.assistantOf(line, line.Text("parent_tool_use_id"), out)
}

// assistantOf is assistant for a line whose parent is known in another way.
func (d *decoder) assistantOf(line jsonl.Value, parent string, out events) bool {
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
			d.toolUse(parent, id, content, out)
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
func (d *decoder) streamed(parent, messageID, kind string) (*stream, *block) {
	s := d.stream(parent)
	if s.messageID != messageID || messageID == "" {
		return s, nil
	}
	for i := range s.blocks {
		if b := &s.blocks[i]; b.kind == kind && !b.seen {
			b.seen = true
			return s, b
		}
	}
	return s, nil
}

func (d *decoder) text(parent, messageID, text string, aborted bool, out events) {
	s, b := d.streamed(parent, messageID, kindText)
	if b != nil && b.done {
		return
	}
	if b == nil {
		out.Event(pluginapi.MessageStart{MessageID: messageID, Nested: s.nest()})
		if text != "" {
			out.Event(pluginapi.TextDelta{Delta: text, Nested: s.nest()})
		}
	} else {
		b.done, b.text = true, nil
	}
	out.Event(pluginapi.MessageStop{MessageID: messageID, Text: text, Aborted: aborted, Nested: s.nest()})
}

func (d *decoder) thinking(parent, messageID, text string, out events) {
	s, b := d.streamed(parent, messageID, kindThinking)
	if b != nil && b.done {
		return
	}
	if b == nil {
		out.Event(pluginapi.ThinkingStart{Effort: d.effort, Nested: s.nest()})
		if text != "" {
			out.Event(pluginapi.ThinkingDelta{Delta: text, Nested: s.nest()})
		}
	} else {
		b.done, b.text = true, nil
	}
	out.Event(pluginapi.ThinkingStop{Thinking: text, Nested: s.nest()})
}

func (d *decoder) toolUse(parent, messageID string, content jsonl.Value, out events) {
	s := d.stream(parent)
	t := d.startTool(content.Text("id"), toolName(content), parent, out)
	if s.messageID == messageID {
		for i := range s.blocks {
			if b := &s.blocks[i]; b.tool == t {
				b.done, b.seen, b.text = true, true, nil
			}
		}
	}
	d.readyTool(t, content.Get("input"), out)
}

// closeBlock ends a streamed block whose assistant line has not come.
func (d *decoder) closeBlock(s *stream, b *block, aborted bool, out events) {
	if b.done {
		return
	}
	b.done = true
	text := unquote(b.text)
	b.text = nil
	switch b.kind {
	case kindText:
		out.Event(pluginapi.MessageStop{MessageID: s.messageID, Text: text, Aborted: aborted, Nested: s.nest()})
	case kindThinking:
		out.Event(pluginapi.ThinkingStop{Thinking: text, Nested: s.nest()})
	case kindTool:
		if aborted {
			return // its input is not whole
		}
		if text == "" {
			text = "{}"
		}
		if doc, err := jsonl.Parse([]byte(text)); err == nil {
			d.readyTool(b.tool, doc.Value, out)
			doc.Release()
		}
	}
}

// closeStream ends what is open of the message that a stream has so far.
func (d *decoder) closeStream(s *stream, aborted bool, out events) {
	for i := range s.blocks {
		d.closeBlock(s, &s.blocks[i], aborted, out)
	}
	clear(s.blocks)
	s.messageID, s.blocks = "", s.blocks[:0]
}

// abandon takes back the blocks of a streamed message from one on: the CLI asks the
// model again, or goes on from the blocks before them.
func (d *decoder) abandon(s *stream, from int, reason string, out events) {
	capability := ""
	var lost []*tool
	for i := range s.blocks {
		b := &s.blocks[i]
		if b.index < from || b.done {
			continue
		}
		switch b.kind {
		case kindTool:
			capability = "tool_calls"
			lost = append(lost, b.tool)
		case kindText, kindThinking:
			capability = b.kind
		}
		d.closeBlock(s, b, true, out)
	}
	if capability != "" {
		out.Event(pluginapi.StreamFallback{Capability: capability, Reason: reason, Nested: s.nest()})
	}
	for _, t := range lost {
		if !t.ready {
			d.toolFailed(t, "not run: the answer that called it was cut off", jsonl.Value{}, out)
		}
	}
}

// closeStreams ends all streamed messages: the process is gone.
func (d *decoder) closeStreams(out events) {
	d.closeStream(&d.main, true, out)
	for _, s := range d.nested {
		d.closeStream(s, true, out)
	}
	d.nested = nil
}

// forget drops the stream of a sub-agent that has ended.
func (d *decoder) forget(parent string, out events) {
	for i, s := range d.nested {
		if s.parent == parent {
			d.closeStream(s, true, out)
			d.nested = slices.Delete(d.nested, i, i+1)
			return
		}
	}
}

// unquote reads the inside of a JSON string.
func unquote(inside []byte) string {
	if bytes.IndexByte(inside, '\\') < 0 {
		return string(inside)
	}
	quoted := make([]byte, 0, len(inside)+2)
	quoted = append(append(append(quoted, '"'), inside...), '"')
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return string(inside)
	}
	return text
}
