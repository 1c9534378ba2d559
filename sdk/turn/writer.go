package turn

import (
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// Events is where events go: an *sdk.Out in a run, a reader of sessions else.
type Events interface {
	Event(pluginapi.Payload)
}

// Writer emits messages, thinking and tools. The zero value is ready.
type Writer struct {
	// Effort is named by thinking_start.
	Effort string

	main   Stream
	nested []*Stream
	tools  []*Tool         // those that have not ended, in the order they began
	ended  map[string]bool // tools that have
	raw    []byte          // of an event that is being made
}

// Stream is the conversation of one parent: text and thinking that follow each
// other. At most one message or thought is open at a time.
type Stream struct {
	w      *Writer
	parent string // tool_call_id of the sub-agent; empty: the main conversation
	open   kind
	id     string // of the open message
	text   speech
	cut    kind // what Abort has ended last
}

type kind int

const (
	nothing kind = iota
	message
	thinking
)

// Main is the main conversation.
func (w *Writer) Main() *Stream { return w.Stream("") }

// Stream is the conversation inside a tool call; "" is the main one.
func (w *Writer) Stream(parent string) *Stream {
	if parent == "" {
		w.main.w = w
		return &w.main
	}
	for _, s := range w.nested {
		if s.parent == parent {
			return s
		}
	}
	s := &Stream{w: w, parent: parent}
	w.nested = append(w.nested, s)
	return s
}

func (s *Stream) nest() pluginapi.Nested { return pluginapi.Nested{ParentID: s.parent} }

// Text says a piece of a message. A message of another id ends the one before.
func (s *Stream) Text(id, delta string, out Events) {
	if s.open != message || s.id != id {
		s.End(out)
		s.open, s.id, s.cut = message, id, nothing
		out.Event(pluginapi.MessageStart{MessageID: id, Nested: s.nest()})
	}
	if delta != "" {
		s.text.WriteString(delta)
		if raw, ok := out.(RawEvents); ok {
			s.delta(textDelta, delta, raw) // so delta may be on the caller's stack
		} else {
			out.Event(pluginapi.TextDelta{Delta: strings.Clone(delta), Nested: s.nest()})
		}
	}
}

// Think says a piece of a thought.
func (s *Stream) Think(delta string, out Events) {
	if s.open != thinking {
		s.End(out)
		s.open, s.cut = thinking, nothing
		out.Event(pluginapi.ThinkingStart{Effort: s.w.Effort, Nested: s.nest()})
	}
	if delta != "" {
		s.text.WriteString(delta)
		if raw, ok := out.(RawEvents); ok {
			s.delta(thinkingDelta, delta, raw)
		} else {
			out.Event(pluginapi.ThinkingDelta{Delta: strings.Clone(delta), Nested: s.nest()})
		}
	}
}

// End ends what is open, if anything is.
func (s *Stream) End(out Events) { s.end(false, out) }

// EndAs is End for a message that the agent gives once more, as it keeps it: where that
// differs in blanks alone, it is the message. Text of another message is left alone.
func (s *Stream) EndAs(text string, out Events) {
	if s.open == message && slices.Equal(strings.Fields(text), strings.Fields(s.text.String())) {
		s.text.Reset()
		s.text.WriteString(text)
	}
	s.end(false, out)
}

// Finish ends a message with its whole text, of which all, a part or nothing has come in
// pieces.
func (s *Stream) Finish(id, text string, out Events) {
	s.Text(id, "", out)
	if rest, ok := strings.CutPrefix(text, s.text.String()); ok {
		s.Text(id, rest, out)
	} else {
		s.text.Reset()
		s.text.WriteString(text)
	}
	s.end(false, out)
}

// Abort ends what is open as something that was cut off.
func (s *Stream) Abort(out Events) {
	if s.open != nothing {
		s.cut = s.open
	}
	s.end(true, out)
}

// Abandon takes back what the model has said in a request that is made again: what is
// open ends as aborted, and tools whose input is not whole end without having run. A
// message that ended before such a tool began is of the same answer, so it is taken back
// too.
func (s *Stream) Abandon(reason string, out Events) {
	capability := ""
	s.Abort(out)
	switch s.cut {
	case message:
		capability = "text"
	case thinking:
		capability = "thinking"
	}
	s.cut = nothing
	var lost []*Tool
	for _, t := range s.w.tools {
		if t.parent == s.parent && !t.ready {
			lost = append(lost, t)
			capability = "tool_calls"
		}
	}
	if capability != "" {
		out.Event(pluginapi.StreamFallback{Capability: capability, Reason: reason, Nested: s.nest()})
	}
	for _, t := range lost {
		s.w.EndTool(t, Result{Failed: true, CutOff: true, Text: "not run: the answer that called it was cut off"}, out)
	}
}

func (s *Stream) end(aborted bool, out Events) {
	switch s.open {
	case message:
		if long, ok := out.(longEvents); ok && s.text.Long() {
			s.stopLong(aborted, long)
			break
		}
		out.Event(pluginapi.MessageStop{MessageID: s.id, Text: s.text.String(), Aborted: aborted, Nested: s.nest()})
	case thinking:
		out.Event(pluginapi.ThinkingStop{Thinking: s.text.String(), Nested: s.nest()})
	}
	s.open, s.id = nothing, ""
	s.text.Reset()
}

// Said reports whether a message is open, and what it says so far.
func (s *Stream) Said() (string, bool) { return s.text.String(), s.open == message }

// AbortStreams ends all streams: what they said is cut off.
func (w *Writer) AbortStreams(out Events) {
	w.abortStreams(func(*Stream) bool { return true }, out)
}

// abortStreams is AbortStreams for the main stream and those inside tools that are named.
func (w *Writer) abortStreams(which func(*Stream) bool, out Events) {
	w.main.end(true, out)
	w.main.cut = nothing
	w.endNested(which, true, out)
}

// endNested ends the streams inside tools that are named.
func (w *Writer) endNested(which func(*Stream) bool, aborted bool, out Events) {
	w.nested = slices.DeleteFunc(w.nested, func(s *Stream) bool {
		ends := which(s)
		if ends {
			s.end(aborted, out)
		}
		return ends
	})
}

// Tool returns an open tool, nil if there is none of that id.
func (w *Writer) Tool(id string) *Tool {
	for _, t := range w.tools {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// foreground reports whether a tool neither goes on in the background nor is part of what
// does.
func (w *Writer) foreground(t *Tool) bool {
	// Bounded, should the agent say that a tool is part of itself.
	for range w.tools {
		if t == nil || t.answered {
			return t == nil
		}
		t = w.Tool(t.parent)
	}
	return true
}

// Newest is the open tool of a name, or of any if that is empty, that began last; nil if
// none is open.
func (w *Writer) Newest(name string) *Tool {
	for _, t := range slices.Backward(w.tools) {
		if name == "" || t.Name == name {
			return t
		}
	}
	return nil
}

// Ended reports whether a tool of that id has had its result.
func (w *Writer) Ended(id string) bool { return w.ended[id] }

// StartTool begins a tool once: it returns the open one of that id if there is
// one, and nil if it has ended.
func (w *Writer) StartTool(id, name, parent string, out Events) *Tool {
	if t := w.Tool(id); t != nil {
		return t
	}
	if w.ended[id] {
		return nil
	}
	w.Stream(parent).End(out)
	t := &Tool{ID: id, Name: name, parent: parent}
	w.tools = append(w.tools, t)
	out.Event(pluginapi.ToolCallStart{ToolCallID: id, ToolName: name, Nested: t.nest()})
	return t
}

// forget ends what is open inside a tool, and remembers only that the tool has its result.
func (w *Writer) forget(t *Tool, cutOff bool, out Events) {
	if w.ended == nil {
		w.ended = map[string]bool{}
	}
	w.ended[t.ID] = true
	if i := slices.Index(w.tools, t); i >= 0 {
		w.tools = slices.Delete(w.tools, i, i+1)
	}
	w.endNested(func(s *Stream) bool { return s.parent == t.ID }, cutOff, out)
}

// CloseTools ends all open tools, which will have no result any more, the inner
// ones first.
func (w *Writer) CloseTools(why string, out Events) {
	w.CloseToolsWhere(func(*Tool) bool { return true }, why, out)
}

// CloseToolsWhere is CloseTools for some of them.
func (w *Writer) CloseToolsWhere(which func(*Tool) bool, why string, out Events) {
	for _, t := range slices.Backward(slices.Clone(w.tools)) {
		if which(t) {
			w.EndTool(t, Result{Failed: true, Text: why, CutOff: true}, out)
		}
	}
}
