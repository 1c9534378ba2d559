//go:build unix

package compat

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// tree is what a reader of v0.1.0 finds in messages: those of a stream as one, fields
// that it does not know left out.
func tree(t *testing.T, d protoreflect.MessageDescriptor, messages [][]byte) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, message := range messages {
		m := dynamicpb.NewMessage(d)
		if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(message, m); err != nil {
			t.Fatal(err)
		}
		encoded, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(encoded, &fields); err != nil {
			t.Fatal(err)
		}
		for name, value := range fields {
			if list, ok := value.([]any); ok {
				earlier, _ := all[name].([]any)
				value = append(earlier, list...)
			}
			all[name] = value
		}
	}
	return opened(all).(map[string]any)
}

// opened has the JSON that data holds in the place of its bytes.
func opened(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			v[name] = opened(value)
			if encoded, ok := value.(string); ok && name == "data" {
				data, err := base64.StdEncoding.DecodeString(encoded)
				var object map[string]any
				if err == nil && json.Unmarshal(data, &object) == nil {
					v[name] = object
				} else if err == nil {
					v[name] = string(data)
				}
			}
		}
	case []any:
		for i := range v {
			v[i] = opened(v[i])
		}
	}
	return v
}

// free are fields that a plugin may say otherwise in its next version. What it can do
// and emits is not among them.
var free = map[string]bool{
	"Describe.version": true, "Describe.sdk": true, "Describe.protocol_minor": true,
	"Describe.agents.display_name": true, "Describe.agents.summary": true, "Describe.agents.notes": true,
	"Describe.agents.models": true, "Describe.agents.versions": true, "Describe.agents.installs": true,
	"Describe.agents.auth_guidance": true, "Describe.agents.config_locations": true, "Describe.agents.efforts": true,
	"Describe.agents.platforms": true, "Describe.agents.inactivity_seconds": true,
	"Converse.outputs.k": true, // more outputs move the number of those that follow
}

// lacks returns where is has not what was has: "" if it has all, perhaps with more
// between. path names the place.
func lacks(was, is any, path string) string {
	if free[path] {
		return ""
	}
	switch was := was.(type) {
	case map[string]any:
		object, ok := is.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: %v in the place of %v", path, is, was)
		}
		for _, name := range slices.Sorted(maps.Keys(was)) {
			if missing := lacks(was[name], object[name], path+"."+name); missing != "" {
				return missing
			}
		}
		return ""
	case []any:
		list, _ := is.([]any)
		at := 0
		for i, want := range was {
			first := ""
			for {
				if at == len(list) {
					return fmt.Sprintf("%s[%d]: no %.300v follows; %s", path, i, want, first)
				}
				at++
				missing := lacks(want, list[at-1], path)
				if missing == "" {
					break
				}
				if first == "" {
					first = missing
				}
			}
		}
		return ""
	}
	if was != is {
		return fmt.Sprintf("%s: %v in the place of %v", path, is, was)
	}
	return ""
}

// What is missing is found, and what is only more is not.
func TestLacks(t *testing.T) {
	t.Parallel()
	parse := func(text string) (v any) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	const was = `{"outputs":[{"n":"1","type":"a","data":{"x":1}},{"n":"2","type":"b"}],"done":"2"}`
	for is, says := range map[string]string{
		was: "",
		`{"outputs":[{"n":"1","type":"a","data":{"x":1,"y":2}},{"n":"1","type":"new"},{"n":"2","type":"b","more":true}],"done":"2"}`: "",
		`{"outputs":[{"n":"1","type":"a","data":{"x":1}}],"done":"2"}`:                                                               "Converse.outputs[1]: no map[n:2 type:b] follows",
		`{"outputs":[{"n":"2","type":"b"},{"n":"1","type":"a","data":{"x":1}}],"done":"2"}`:                                          "Converse.outputs[1]",
		`{"outputs":[{"n":"1","type":"a","data":{"x":2}},{"n":"2","type":"b"}],"done":"2"}`:                                          "Converse.outputs[0]",
		`{"outputs":[{"n":"1","type":"a","data":"x"},{"n":"2","type":"b"}],"done":"2"}`:                                              "x in the place of map[x:1]",
		`{"outputs":[{"n":"1","type":"a","data":{"x":1}},{"n":"2","type":"b"}],"done":"1"}`:                                          "Converse.done: 1 in the place of 2",
		`{}`: "Converse.done",
	} {
		if got := lacks(parse(was), parse(is), "Converse"); says == "" && got != "" || !strings.Contains(got, says) {
			t.Errorf("%s: %q, want %q", is, got, says)
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// refusal is the code of the Error in a status, as a reader of v0.1.0 finds it.
func refusal(t *testing.T, old protoreflect.FileDescriptor, s *statuspb.Status) string {
	t.Helper()
	d := old.Messages().ByName("Error")
	for _, detail := range s.GetDetails() {
		if detail.MessageName() == d.FullName() {
			m := dynamicpb.NewMessage(d)
			if err := proto.Unmarshal(detail.Value, m); err != nil {
				t.Fatal(err)
			}
			return m.Get(d.Fields().ByName("code")).String()
		}
	}
	return ""
}
