package sdk

import (
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// An invalid byte in a protobuf string ends the whole stream, and texts of agents
// and names of files may have some. They become U+FFFD here; what must keep its
// bytes is of type bytes.

func validText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// makeValid does so for all strings of a message. It is not for the hot path.
func makeValid(m protoreflect.Message) {
	if !m.IsValid() {
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
			fixMap(field, value.Map())
		case field.IsList():
			list := value.List()
			for i := range list.Len() {
				switch field.Kind() {
				case protoreflect.StringKind:
					list.Set(i, protoreflect.ValueOfString(validText(list.Get(i).String())))
				case protoreflect.MessageKind:
					makeValid(list.Get(i).Message())
				}
			}
		case field.Kind() == protoreflect.StringKind:
			if text := value.String(); !utf8.ValidString(text) {
				m.Set(field, protoreflect.ValueOfString(validText(text)))
			}
		case field.Kind() == protoreflect.MessageKind:
			makeValid(value.Message())
		}
		return true
	})
}

// fixMap replaces the entries of a map<string, string> that are not valid; the
// protocol has no other maps.
func fixMap(field protoreflect.FieldDescriptor, entries protoreflect.Map) {
	if field.MapKey().Kind() != protoreflect.StringKind || field.MapValue().Kind() != protoreflect.StringKind {
		return
	}
	fixed := map[string]string{}
	entries.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		k, v := key.String(), value.String()
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			fixed[k] = v
		}
		return true
	})
	for k, v := range fixed {
		entries.Clear(protoreflect.ValueOfString(k).MapKey())
		entries.Set(protoreflect.ValueOfString(validText(k)).MapKey(), protoreflect.ValueOfString(validText(v)))
	}
}
