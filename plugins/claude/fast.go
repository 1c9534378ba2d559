package main

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/amux-dev/amux/sdk/turn"
)

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
func (d *decoder) fastDelta(line []byte, out turn.RawEvents) bool {
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
		if b == nil || b.kind != shape.kind || !b.open {
			return false
		}
		if b.kind != kindTool {
			return d.w.Main().Raw(text[:end], out)
		}
		d.w.RawInput(b.tool, text[:end], out)
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
