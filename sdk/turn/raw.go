package turn

import (
	"bytes"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// RawEvents is where events go whose JSON is made already: an *sdk.Out.
type RawEvents interface {
	RawEvent(pluginapi.Type, []byte)
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
	if len(inside) > 0 {
		w.emit(kind, append(append(append(w.object(toolID), '"'), inside...), '"'), parent, out)
	}
}

// delta emits a piece of text, as raw JSON.
func (s *Stream) delta(kind pluginapi.Type, text string, out RawEvents) {
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
