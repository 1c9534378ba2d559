package registry

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/amux-dev/amux/pluginapi"
)

// fill sets each field of a message, and of those in it.
func fill(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		one := func() protoreflect.Value {
			switch f.Kind() {
			case protoreflect.MessageKind:
				inner := m.NewField(f)
				if f.IsList() {
					inner = inner.List().NewElement()
				}
				fill(inner.Message())
				return inner
			case protoreflect.StringKind:
				return protoreflect.ValueOfString("a \"text\" of " + string(f.Name()) + ` \ ü`)
			case protoreflect.BoolKind:
				return protoreflect.ValueOfBool(true)
			}
			return protoreflect.ValueOfUint32(uint32(7 + i))
		}
		if !f.IsList() {
			m.Set(f, one())
			continue
		}
		list := m.Mutable(f).List()
		list.Append(one())
		list.Append(one())
	}
}

// Each field of the proto file is read plainly, and none is left to protojson by mistake.
func TestPlainDescriptionKnowsEachField(t *testing.T) {
	want := &pluginapi.Description{}
	fill(want.ProtoReflect())
	text, err := protojson.MarshalOptions{UseProtoNames: true, Multiline: true}.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := plainDescription(text)
	if !ok || !proto.Equal(got, want) {
		t.Errorf("read plainly: %v\ngot  %v\nwant %v", ok, got, want)
	}
}

// What is not of the plain form is for protojson, which takes some of it.
func TestDescriptionsOfAnotherForm(t *testing.T) {
	for text, valid := range map[string]bool{
		`{"plugin":"a","agents":[{"displayName":"b"}]}`:         true,
		`{"plugin":"a","novel":[1,{"x":null}]}`:                 true,
		`{"plugin":"a","protocol_minor":"7"}`:                   true,
		`{"plugin":"a","protocol_minor":1e1}`:                   true,
		`{"plugin":"a","protocol_minor":null}`:                  true,
		`{"plugin":"a\u0041\n"}`:                                true,
		`{"plugin":"a","plugin":"b"}`:                           false,
		`{"plugin":"a","agents":{}}`:                            false,
		`{"plugin":"a","agents":[null]}`:                        false,
		`{"plugin":"a","agents":[{"demo":"true"}]}`:             false,
		`{"plugin":1}`:                                          false,
		"{\"plugin\":\"a\nb\"}":                                 false,
		"{\"plugin\":\"\xff\"}":                                 false,
		`{"plugin":"a","protocol_minor":-1}`:                    false,
		`{"plugin":"a","protocol_minor":01}`:                    false,
		`{"plugin":"a"}{}`:                                      false,
		`{"plugin":"a",}`:                                       false,
		`{"plugin":"a","agents":` + strings.Repeat("[", 20_000): false,
		``: false,
	} {
		if _, ok := plainDescription([]byte(text)); ok {
			t.Errorf("%.80s was read plainly", text)
		}
		if _, err := parseDescription([]byte(text)); (err == nil) != valid {
			t.Errorf("%.80s: %v", text, err)
		}
	}
}

// What is read plainly is what protojson reads.
func FuzzDescription(f *testing.F) {
	all := &pluginapi.Description{}
	fill(all.ProtoReflect())
	text, _ := protojson.MarshalOptions{UseProtoNames: true}.Marshal(all)
	f.Add(text)
	f.Add([]byte(`{"plugin":"a \"b\" \\ \/","protocol_minor":12,"agents":[{"id":"x","capabilities":{"resume":true,"fork":false},"models":[{"aliases":["y"]}]}]}`))
	f.Add([]byte(`{"plugin":"a","agents":[{"mcp_files":[{"scope":"user","path":"~/x"}],"inactivity_seconds":0}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := plainDescription(data)
		if !ok {
			return
		}
		want := &pluginapi.Description{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, want); err != nil {
			t.Fatalf("protojson refuses it: %v", err)
		}
		if !proto.Equal(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	})
}
