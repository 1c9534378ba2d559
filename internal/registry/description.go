package registry

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fastjson"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/amux-dev/amux/pluginapi"
)

// parseDescription reads describe.json. A start waits for it, and protojson takes 1.6 ms for
// the agents of one plugin, most of it to learn what its messages look like. So a file as amux
// itself writes it is read plainly, in half a millisecond; whatever is else in one is for protojson to judge.
func parseDescription(data []byte) (*pluginapi.Description, error) {
	if d, ok := plainDescription(data); ok {
		return d, nil
	}
	d := &pluginapi.Description{}
	return d, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, d)
}

// plainDescription reads a description that has known fields only, by the names of the proto
// file, each once and with a value of its plain form. ok is false for any other, valid or not.
func plainDescription(data []byte) (d *pluginapi.Description, ok bool) {
	if !utf8.Valid(data) || odd(data) {
		return nil, false
	}
	var parser fastjson.Parser
	root, err := parser.ParseBytes(data)
	if err != nil {
		return nil, false
	}
	d = &pluginapi.Description{}
	return d, plain{}.read(root, reflect.ValueOf(d).Elem())
}

// odd finds what need not be in a description, or what fastjson reads more leniently than protojson.
func odd(data []byte) bool {
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c < ' ' && c != '\n':
			return true
		case c == '\\':
			if i++; i == len(data) || data[i] != '"' && data[i] != '\\' && data[i] != '/' {
				return true
			}
		}
	}
	return false
}

// plain has the fields of each message that it has met: their index by their name in the proto file, which is
// that of their struct tag.
type plain map[reflect.Type]map[string]int

// read reads a value into a field, or an object into a message, and reports whether all of it was
// of the plain form.
func (p plain) read(v *fastjson.Value, to reflect.Value) bool {
	switch to.Kind() {
	case reflect.String:
		text, err := v.StringBytes()
		to.SetString(string(text))
		return err == nil && !bytes.ContainsRune(text, '\n')
	case reflect.Bool:
		is, err := v.Bool()
		to.SetBool(is)
		return err == nil
	case reflect.Uint32:
		if v.Type() != fastjson.TypeNumber {
			return false
		}
		text := string(v.MarshalTo(nil)) // as it is written
		n, err := strconv.ParseUint(text, 10, 32)
		to.SetUint(n)
		return err == nil && strconv.FormatUint(n, 10) == text
	case reflect.Slice:
		values, err := v.Array()
		if err != nil {
			return false
		}
		if len(values) > 0 { // an empty list is as none
			to.Set(reflect.MakeSlice(to.Type(), len(values), len(values)))
		}
		for i, value := range values {
			if !p.read(value, to.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return p.read(v, to.Elem())
	case reflect.Struct:
		return p.fields(v, to)
	}
	return false
}

// fields reads an object of known fields, each there once.
func (p plain) fields(v *fastjson.Value, to reflect.Value) bool {
	object, err := v.Object()
	if err != nil {
		return false
	}
	ok, seen := true, make([]bool, to.NumField())
	names := p.names(to.Type())
	object.Visit(func(key []byte, value *fastjson.Value) {
		i, known := names[string(key)]
		ok = ok && known && !seen[i] && p.read(value, to.Field(i))
		seen[i] = true
	})
	return ok
}

func (p plain) names(message reflect.Type) map[string]int {
	if p[message] == nil {
		p[message] = map[string]int{}
		for i := range message.NumField() {
			if name, _, _ := strings.Cut(message.Field(i).Tag.Get("json"), ","); name != "" {
				p[message][name] = i
			}
		}
	}
	return p[message]
}
