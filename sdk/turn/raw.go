package turn

import (
	"bytes"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// RawEvents is where events go whose JSON is made already: an *sdk.Out.
type RawEvents interface {
	RawEvent(pluginapi.Type, []byte)
}

// longEvents is where events go that are too long to be made whole: an *sdk.Out.
type longEvents interface {
	Long(pluginapi.Type) *sdk.Long
}

// Raw is Text or Think for a piece of what is open, given as the inside of a JSON string:
// valid UTF-8 without \u escapes. An agent that streams small pieces is so read without
// parsing them. It reports whether anything is open.
func (s *Stream) Raw(inside []byte, out RawEvents) bool {
	switch s.open {
	case message:
		s.w.rawDelta(textDelta, "", inside, s.parent, out)
	case thinking:
		s.w.rawDelta(thinkingDelta, "", inside, s.parent, out)
	default:
		return false
	}
	if bytes.IndexByte(inside, '\\') >= 0 {
		s.w.raw = unescape(s.w.raw[:0], inside)
		inside = s.w.raw
	}
	s.text.Write(inside)
	return true
}

// RawInput is Input for a piece given as the inside of a JSON string, as Raw takes it.
func (w *Writer) RawInput(t *Tool, inside []byte, out RawEvents) {
	if t.ready {
		return
	}
	w.rawDelta(toolInputDelta, t.ID, inside, t.parent, out)
	t.streamed = unescape(t.streamed, inside)
}

// The types of events that are made as raw JSON.
var (
	textDelta      = pluginapi.TextDelta{}.EventType()
	thinkingDelta  = pluginapi.ThinkingDelta{}.EventType()
	toolInputDelta = pluginapi.ToolInputDelta{}.EventType()
)

func (w *Writer) rawDelta(kind pluginapi.Type, toolID string, inside []byte, parent string, out RawEvents) {
	if long, ok := out.(longEvents); ok && len(inside) > partSize {
		l := long.Long(kind)
		l.Raw(append(w.object(toolID), '"'))
		l.Raw(inside)
		l.Raw([]byte{'"'})
		endLong(l, parent)
		return
	}
	if len(inside) > 0 {
		w.emit(kind, append(append(append(w.object(toolID), '"'), inside...), '"'), parent, out)
	}
}

// delta emits a piece of text, as raw JSON. It is part of s.text already.
func (s *Stream) delta(kind pluginapi.Type, text string, out RawEvents) {
	if long, ok := out.(longEvents); ok && len(text) > partSize {
		l := long.Long(kind)
		l.Raw(append(s.w.object(""), '"'))
		said := s.text.last.String()
		l.Text(said[len(said)-len(text):]) // not text, which may be on a stack
		l.Raw([]byte{'"'})
		endLong(l, s.parent)
		return
	}
	s.w.emit(kind, pluginapi.AppendString(s.w.object(""), text), s.parent, out)
}

// object begins the JSON of a delta, in memory that is used again.
func (w *Writer) object(toolID string) []byte {
	e := append(w.raw[:0], '{')
	if toolID != "" {
		e = append(pluginapi.AppendString(append(e, `"tool_call_id":`...), toolID), ',')
	}
	return append(e, `"delta":`...)
}

// emit ends and emits what object has begun.
func (w *Writer) emit(kind pluginapi.Type, e []byte, parent string, out RawEvents) {
	if parent != "" {
		e = pluginapi.AppendString(append(e, `,"parent_id":`...), parent)
	}
	e = append(e, '}')
	out.RawEvent(kind, e)
	if w.raw = e; cap(e) > 4<<10 {
		w.raw = nil
	}
}

// stopLong ends a message with its text, part by part.
func (s *Stream) stopLong(aborted bool, out longEvents) {
	l := out.Long(pluginapi.MessageStop{}.EventType())
	head := []byte{'{'}
	if s.id != "" {
		head = append(pluginapi.AppendString(append(head, `"message_id":`...), s.id), ',')
	}
	l.Raw(append(head, `"text":"`...))
	for part := range s.text.Parts() {
		l.Text(part)
	}
	l.Raw([]byte{'"'})
	if aborted {
		l.Raw([]byte(`,"aborted":true`))
	}
	endLong(l, s.parent)
}

// endLong ends an event with the tool call that it is part of, as emit does.
func endLong(l *sdk.Long, parent string) {
	if parent != "" {
		l.Raw(pluginapi.AppendString([]byte(`,"parent_id":`), parent))
	}
	l.Raw([]byte{'}'})
	l.End()
}

// unescape appends the text of the inside of a JSON string.
func unescape(text, inside []byte) []byte {
	for {
		i := bytes.IndexByte(inside, '\\')
		if i < 0 || i+1 == len(inside) {
			return append(text, inside...)
		}
		c := inside[i+1]
		if n := strings.IndexByte("bfnrt", c); n >= 0 {
			c = "\b\f\n\r\t"[n]
		}
		text = append(append(text, inside[:i]...), c)
		inside = inside[i+2:]
	}
}
