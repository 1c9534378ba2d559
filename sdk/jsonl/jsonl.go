// Package jsonl reads lines of JSON fast: several times faster than
// encoding/json, because nothing is decoded that is not asked for. A getter never
// panics and never fails: what is absent or of another type is the zero value.
//
//	doc, err := jsonl.Parse(line)
//	if err != nil {
//		out.Log("stdout", line)
//		return nil
//	}
//	defer doc.Release()
//	switch doc.Text("type") {
//
// A Doc and its Values belong to one goroutine and end with Release. Text and Raw
// are copies and stay; Bytes ends with the Doc.
package jsonl

import (
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"sync"

	"github.com/valyala/fastjson"

	"github.com/amux-dev/amux/pluginapi"
)

// Doc is one parsed line.
type Doc struct {
	Value
	parser fastjson.Parser
	length int
}

// keep is the longest line whose parser is used again: a parser never gives
// memory back by itself.
const keep = 256 << 10

var docs = sync.Pool{New: func() any { return new(Doc) }}

// Parse parses a line of any JSON value. White space around it, such as a
// carriage return, is allowed. line may be reused at once.
func Parse(line []byte) (*Doc, error) {
	doc := docs.Get().(*Doc)
	v, err := doc.parser.ParseBytes(line)
	doc.length = len(line)
	if err != nil {
		doc.Release()
		return nil, err
	}
	doc.Value = Value{v}
	return doc, nil
}

// ParseObject is Parse for protocols whose lines are objects; anything else is
// an error.
func ParseObject(line []byte) (*Doc, error) {
	// A cheap look first: most lines that are not JSON at all end here.
	for _, c := range line {
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			continue
		}
		if c != '{' {
			return nil, errNoObject
		}
		break
	}
	doc, err := Parse(line)
	if err == nil && !doc.IsObject() {
		doc.Release()
		return nil, errNoObject
	}
	return doc, err
}

type parseError string

func (e parseError) Error() string { return string(e) }

const errNoObject = parseError("not a JSON object")

// Release gives the Doc's memory back. The Doc must not be used afterwards.
func (d *Doc) Release() {
	d.Value = Value{}
	if d.length <= keep {
		docs.Put(d)
	}
}

// Value is a JSON value, or nothing. The zero Value is nothing.
type Value struct{ v *fastjson.Value }

// Get goes down by keys, or by indexes ("0") in arrays.
func (v Value) Get(keys ...string) Value {
	if v.v == nil || len(keys) == 0 {
		return v
	}
	return Value{v.v.Get(keys...)}
}

func (v Value) is(t fastjson.Type) bool { return v.v != nil && v.v.Type() == t }

// Exists reports whether there is a value at all; null is one.
func (v Value) Exists(keys ...string) bool { return v.Get(keys...).v != nil }

// IsNull reports whether it is null; nothing is not null.
func (v Value) IsNull(keys ...string) bool { return v.Get(keys...).is(fastjson.TypeNull) }

// IsObject reports whether it is an object.
func (v Value) IsObject(keys ...string) bool { return v.Get(keys...).is(fastjson.TypeObject) }

// IsArray reports whether it is an array.
func (v Value) IsArray(keys ...string) bool { return v.Get(keys...).is(fastjson.TypeArray) }

// IsString reports whether it is a string.
func (v Value) IsString(keys ...string) bool { return v.Get(keys...).is(fastjson.TypeString) }

// Bytes returns a string's bytes, valid until Release; nil if it is no string.
func (v Value) Bytes(keys ...string) []byte {
	v = v.Get(keys...)
	if !v.is(fastjson.TypeString) {
		return nil
	}
	return v.v.GetStringBytes()
}

// Text returns a copy of a string, "" if it is not one.
func (v Value) Text(keys ...string) string { return string(v.Bytes(keys...)) }

// Bool reports whether it is true.
func (v Value) Bool(keys ...string) bool { return v.Get(keys...).is(fastjson.TypeTrue) }

// Float returns a finite number.
func (v Value) Float(keys ...string) (float64, bool) {
	v = v.Get(keys...)
	if !v.is(fastjson.TypeNumber) {
		return 0, false
	}
	f, err := v.v.Float64()
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// Int returns a whole number, also if it is written as 12.0 or 1e3.
func (v Value) Int(keys ...string) (int64, bool) {
	v = v.Get(keys...)
	if !v.is(fastjson.TypeNumber) {
		return 0, false
	}
	if i, err := v.v.Int64(); err == nil {
		return i, true
	}
	f, ok := v.Float()
	if !ok || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// IntPtr is Int for fields where nil means unknown.
func (v Value) IntPtr(keys ...string) *int64 {
	i, ok := v.Int(keys...)
	if !ok {
		return nil
	}
	return &i
}

// FloatPtr is Float for fields where nil means unknown.
func (v Value) FloatPtr(keys ...string) *float64 {
	f, ok := v.Float(keys...)
	if !ok {
		return nil
	}
	return &f
}

// Len is the number of items of an array or fields of an object.
func (v Value) Len(keys ...string) int {
	v = v.Get(keys...)
	switch {
	case v.is(fastjson.TypeArray):
		return len(v.v.GetArray())
	case v.is(fastjson.TypeObject):
		return v.v.GetObject().Len()
	}
	return 0
}

// Items goes through an array.
func (v Value) Items(keys ...string) iter.Seq2[int, Value] {
	v = v.Get(keys...)
	return func(yield func(int, Value) bool) {
		if !v.is(fastjson.TypeArray) {
			return
		}
		for i, item := range v.v.GetArray() {
			if !yield(i, Value{item}) {
				return
			}
		}
	}
}

// Fields goes through an object in the order of its text.
func (v Value) Fields(keys ...string) iter.Seq2[string, Value] {
	v = v.Get(keys...)
	return func(yield func(string, Value) bool) {
		if !v.is(fastjson.TypeObject) {
			return
		}
		stopped := false
		v.v.GetObject().Visit(func(key []byte, field *fastjson.Value) {
			if !stopped {
				stopped = !yield(string(key), Value{field})
			}
		})
	}
}

// Raw returns the value as JSON text of its own, nil if there is none.
func (v Value) Raw(keys ...string) json.RawMessage {
	v = v.Get(keys...)
	if v.v == nil {
		return nil
	}
	return v.AppendRaw(nil)
}

// AppendRaw appends the value as valid JSON without white space, null if there is
// none. The parser is lenient: what it takes for a number but is not becomes a
// string, invalid UTF-8 becomes U+FFFD. (fastjson's own MarshalTo writes Go
// escapes that are no JSON.)
func (v Value) AppendRaw(b []byte) []byte {
	if v.v == nil {
		return append(b, "null"...)
	}
	switch v.v.Type() {
	case fastjson.TypeObject:
		b = append(b, '{')
		start := len(b)
		v.v.GetObject().Visit(func(key []byte, field *fastjson.Value) {
			if len(b) > start {
				b = append(b, ',')
			}
			b = append(pluginapi.AppendString(b, string(key)), ':')
			b = Value{field}.AppendRaw(b)
		})
		return append(b, '}')
	case fastjson.TypeArray:
		b = append(b, '[')
		for i, item := range v.v.GetArray() {
			if i > 0 {
				b = append(b, ',')
			}
			b = Value{item}.AppendRaw(b)
		}
		return append(b, ']')
	case fastjson.TypeString:
		return pluginapi.AppendString(b, string(v.v.GetStringBytes()))
	case fastjson.TypeNumber:
		start := len(b)
		b = v.v.MarshalTo(b)
		if !isNumber(b[start:]) {
			text := string(b[start:])
			return pluginapi.AppendString(b[:start], text)
		}
		return b
	case fastjson.TypeTrue:
		return strconv.AppendBool(b, true)
	case fastjson.TypeFalse:
		return strconv.AppendBool(b, false)
	}
	return append(b, "null"...)
}

// isNumber reports whether b is a number by JSON's grammar.
func isNumber(b []byte) bool {
	digits := func() bool {
		n := 0
		for n < len(b) && '0' <= b[n] && b[n] <= '9' {
			n++
		}
		b = b[n:]
		return n > 0
	}
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	if len(b) > 0 && b[0] == '0' {
		b = b[1:]
	} else if !digits() {
		return false
	}
	if len(b) > 0 && b[0] == '.' {
		if b = b[1:]; !digits() {
			return false
		}
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		if b = b[1:]; len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(b) == 0
}
