package compat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

const baseline = "../../pluginapi/testdata/v0.1.0"

// oldSource is the proto file of v0.1.0.
func oldSource(t testing.TB) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(baseline, "amuxplugin1.proto"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// compile makes a descriptor of a proto file.
func compile(t testing.TB, source string) protoreflect.FileDescriptor {
	t.Helper()
	const name = "x.proto"
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{
		Accessor: protocompile.SourceAccessorFromMap(map[string]string{name: source}),
	}}
	files, err := compiler.Compile(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return files[0]
}

// breaks returns what of old is not in new as it was. What is added breaks nothing.
func breaks(old, new protoreflect.FileDescriptor) []string {
	var found []string
	broken := func(d protoreflect.Descriptor, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s %s", d.FullName(), fmt.Sprintf(format, args...)))
	}
	if old.Package() != new.Package() {
		broken(old, "is package %s", new.Package())
	}
	if old.Syntax() != new.Syntax() {
		broken(old, "has the syntax %s, had %s", new.Syntax(), old.Syntax())
	}
	enums := func(old, new protoreflect.EnumDescriptors) {
		for i := range old.Len() {
			was := old.Get(i)
			is := new.ByName(was.Name())
			if is == nil {
				broken(was, "is gone")
				continue
			}
			for j := range was.Values().Len() {
				value := was.Values().Get(j)
				if now := is.Values().ByNumber(value.Number()); now == nil {
					broken(value, "= %d is gone", value.Number())
				} else if now.Name() != value.Name() {
					broken(value, "= %d is called %s", value.Number(), now.Name())
				}
			}
		}
	}
	var messages func(old, new protoreflect.MessageDescriptors)
	messages = func(old, new protoreflect.MessageDescriptors) {
		for i := range old.Len() {
			was := old.Get(i)
			is := new.ByName(was.Name())
			if is == nil {
				broken(was, "is gone")
				continue
			}
			for j := range was.Fields().Len() {
				field := was.Fields().Get(j)
				now := is.Fields().ByNumber(field.Number())
				if now == nil {
					broken(field, "= %d is gone", field.Number())
				} else if is, was := shape(now), shape(field); is != was {
					broken(field, "= %d is %q, was %q", field.Number(), is, was)
				}
			}
			enums(was.Enums(), is.Enums())
			messages(was.Messages(), is.Messages())
		}
	}
	enums(old.Enums(), new.Enums())
	messages(old.Messages(), new.Messages())
	for i := range old.Services().Len() {
		was := old.Services().Get(i)
		is := new.Services().ByName(was.Name())
		if is == nil {
			broken(was, "is gone")
			continue
		}
		for j := range was.Methods().Len() {
			method := was.Methods().Get(j)
			if now := is.Methods().ByName(method.Name()); now == nil {
				broken(method, "is gone")
			} else if is, was := call(now), call(method); is != was {
				broken(method, "is %q, was %q", is, was)
			}
		}
	}
	return found
}

// shape is all that bytes and JSON of a field depend on, but for its number.
func shape(f protoreflect.FieldDescriptor) string {
	text := fmt.Sprint(f.Name(), " json=", f.JSONName(), " ", f.Cardinality(), " ", f.Kind())
	switch {
	case f.IsMap():
		text += fmt.Sprintf(" map of %s to %s", shape(f.MapKey()), shape(f.MapValue()))
	case f.Message() != nil:
		text += " " + string(f.Message().FullName())
	case f.Enum() != nil:
		text += " " + string(f.Enum().FullName())
	}
	if f.IsPacked() {
		text += " packed"
	}
	if f.HasPresence() {
		text += " with presence"
	}
	if one := f.ContainingOneof(); one != nil {
		text += " one of " + string(one.Name())
	}
	return text
}

func call(m protoreflect.MethodDescriptor) string {
	return fmt.Sprint("in ", m.Input().FullName(), " stream=", m.IsStreamingClient(), ", out ", m.Output().FullName(), " stream=", m.IsStreamingServer())
}

// Nothing in today's protocol breaks who speaks that of v0.1.0.
func TestProtocol(t *testing.T) {
	t.Parallel()
	for _, broken := range breaks(compile(t, oldSource(t)), pb.File_amuxplugin1_proto) {
		t.Errorf("%s: a change for a new major, see pluginapi/README.md", broken)
	}
}

// What would break somebody is found, and what is only added is not.
func TestBreaksAreFound(t *testing.T) {
	t.Parallel()
	source := oldSource(t)
	old := compile(t, source)
	for _, test := range []struct{ name, from, to, says string }{
		{"removed field", "  string cwd = 5; // absolute; empty: the caller's\n", "", "amux.plugin.v1.SpawnPlan.cwd = 5 is gone"},
		{"renumbered field", "uint64 millis = 7;", "uint64 millis = 10;", "amux.plugin.v1.Output.millis = 7 is gone"},
		{"renamed field", "bool pty = 8;", "bool terminal = 8;", "SpawnPlan.pty = 8 is"},
		{"other type", "uint64 done = 2;", "int64 done = 2;", "ConverseResponse.done = 2 is"},
		{"other message", "Caller caller = 2;\n  RunOptions", "Start caller = 2;\n  RunOptions", "PlanRequest.caller = 2 is"},
		{"other enum", "Stdin stdin = 6;", "Approve stdin = 6;", "SpawnPlan.stdin = 6 is"},
		{"repeated no more", "repeated Output outputs = 1;", "Output outputs = 1;", "ConverseResponse.outputs = 1 is"},
		{"repeated now", "bytes state = 12;", "repeated bytes state = 12;", "SpawnPlan.state = 12 is"},
		{"with presence", "double max_budget_usd = 18;", "optional double max_budget_usd = 18;", "max_budget_usd = 18 is"},
		{"other map", "map<string, string> env_set = 3;", "map<string, bytes> env_set = 3;", "env_set = 3 is"},
		{"out of its oneof", "    SpawnPlan plan = 1;\n", "", "PlanResponse.plan = 1 is gone"},
		{"removed message", "message Versions {", "message Version {", "amux.plugin.v1.Versions is gone"},
		{"removed enum value", "  OUTPUT_SIGNAL = 8;", "", "amux.plugin.v1.OUTPUT_SIGNAL = 8 is gone"},
		{"renumbered enum value", "INPUT_EXIT = 15;", "INPUT_EXIT = 25;", "INPUT_EXIT = 15 is gone"},
		{"renamed enum value", "STDIN_OPEN = 3;", "STDIN_KEPT = 3;", "STDIN_OPEN = 3 is called STDIN_KEPT"},
		{"removed call", "  rpc DetectAuth(DetectAuthRequest) returns (DetectAuthResponse);\n", "", "Adapter.DetectAuth is gone"},
		{"renamed service", "service Adapter {", "service Codec {", "Adapter is gone"},
		{"stream no more", "returns (stream ReadSessionResponse)", "returns (ReadSessionResponse)", "Adapter.ReadSession is"},
		{"other request", "rpc Plan(PlanRequest)", "rpc Plan(DescribeRequest)", "Adapter.Plan is"},
		{"other package", "package amux.plugin.v1;", "package amux.plugin.v2;", "is package amux.plugin.v2"},

		{"added field", "uint64 retry_after_ms = 4;", "uint64 retry_after_ms = 4; string more = 5;", ""},
		{"added message and enum", "message Error {", "message New { string x = 1; } enum Fresh { FRESH_UNKNOWN = 0; }\nmessage Error {", ""},
		{"added enum value", "INPUT_EXIT = 15;", "INPUT_EXIT = 15; INPUT_NEW = 99;", ""},
		{"added call", "rpc Plan(PlanRequest)", "rpc Think(PlanRequest) returns (PlanResponse);\n  rpc Plan(PlanRequest)", ""},
		{"added to a oneof", "Exec exec = 2;\n  }", "Exec exec = 2; Error error = 3;\n  }", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			changed := strings.Replace(source, test.from, test.to, 1)
			if changed == source {
				t.Fatalf("the proto file has no %q", test.from)
			}
			if test.name == "removed message" {
				changed = strings.Replace(changed, "Versions versions", "Version versions", 1)
			}
			found := breaks(old, compile(t, changed))
			if test.says == "" {
				if len(found) > 0 {
					t.Errorf("found %q", found)
				}
			} else if !slices.ContainsFunc(found, func(text string) bool { return strings.Contains(text, test.says) }) {
				t.Errorf("%q is not in %q", test.says, found)
			}
		})
	}
}
