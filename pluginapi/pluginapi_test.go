package pluginapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/amux-dev/amux/pluginapi/code"
)

func TestErrorsCrossTheWire(t *testing.T) {
	t.Parallel()
	seen := map[Code]bool{}
	for _, info := range code.All {
		if seen[info.Code] {
			t.Errorf("%s is twice in the table", info.Code)
		}
		seen[info.Code] = true
		sent := &Error{Code: info.Code, Op: "op", Msg: "message \xe2\x82\xac", Hint: "hint"}
		got := FromStatus(ToStatus(fmt.Errorf("wrapped: %w", sent)))
		e, ok := errors.AsType[*Error](got)
		if !ok || *e != *sent {
			t.Errorf("%s: got %#v", info.Code, got)
		}
		if !errors.Is(got, info.Code) || errors.Is(got, Code("OTHER")) {
			t.Errorf("%s: errors.Is", info.Code)
		}
		// A bare code is an error too.
		if got := FromStatus(ToStatus(info.Code)); !errors.Is(got, info.Code) {
			t.Errorf("%s as an error: %v", info.Code, got)
		}
		if !info.Code.Known() || info.Exit == 0 || info.Meaning == "" {
			t.Errorf("%+v", info)
		}
	}
	if ToStatus(nil) != nil || FromStatus(nil) != nil {
		t.Error("nil is an error")
	}
	if got := FromStatus(ToStatus(io.ErrUnexpectedEOF)); !errors.Is(got, CodeInternal) || got.Error() != "unexpected EOF" {
		t.Errorf("foreign error: %v", got)
	}
	transport := status.Error(codes.Unavailable, "connection refused")
	if got := FromStatus(transport); got != transport {
		t.Errorf("transport error: %v", got)
	}
	// A code of a newer minor version is kept.
	if got := FromStatus(ToStatus(Code("FROM_THE_FUTURE"))); !errors.Is(got, Code("FROM_THE_FUTURE")) || Code("FROM_THE_FUTURE").Known() {
		t.Errorf("unknown code: %v", got)
	}
}

// An agent's message may hold any bytes; they must not hide the code.
func TestErrorWithInvalidText(t *testing.T) {
	t.Parallel()
	got := FromStatus(ToStatus(Errorf(CodeAuth, "no \xff key").WithHint("\xfe")))
	if e := AsError(got); e.Code != CodeAuth || e.Msg != "no \ufffd key" || e.Hint != "\ufffd" {
		t.Errorf("%#v", got)
	}
}

// The version stands in the proto file's header for people who copy it.
func TestProtoVersion(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("amuxplugin1/amuxplugin1.proto")
	if err != nil {
		t.Fatal(err)
	}
	header := regexp.MustCompile(`^// The amux plugin protocol, version (\d+\.\d+)\.`).FindSubmatch(content)
	if want := fmt.Sprintf("%d.%d", ProtocolMajor, ProtocolMinor); header == nil || string(header[1]) != want {
		t.Errorf("the header says %q, the constants %s", header, want)
	}
	if Handshake.ProtocolVersion != ProtocolMajor {
		t.Error("the handshake has another version")
	}
	if readme, err := os.ReadFile("README.md"); err != nil || !strings.Contains(string(readme), fmt.Sprintf("protocol %d.%d", ProtocolMajor, ProtocolMinor)) {
		t.Errorf("README.md does not name the version: %v", err)
	}
}

func TestPayloads(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	seen := map[Type]bool{}
	for _, p := range payloads {
		if seen[p.EventType()] || !name.MatchString(string(p.EventType())) {
			t.Errorf("type %q", p.EventType())
		}
		seen[p.EventType()] = true
		data, err := AppendPayload([]byte("x"), p)
		var object map[string]any
		if err != nil || data[0] != 'x' || json.Unmarshal(data[1:], &object) != nil {
			t.Errorf("%T: %q %v", p, data, err)
		}
		for field := range object {
			switch field {
			case "type", "run_id", "seq", "time", "agent":
				t.Errorf("%T uses the host's field %q", p, field)
			}
			if !name.MatchString(field) {
				t.Errorf("%T: field %q", p, field)
			}
		}
	}
}

// Deltas and long texts are written by hand; encoding/json reads the same.
func TestWrittenByHand(t *testing.T) {
	t.Parallel()
	for _, p := range []Payload{
		TextDelta{}, TextDelta{Delta: "a\"b\n"}, TextDelta{Delta: "é<&>", Nested: Nested{ParentID: "p\\1"}},
		ThinkingDelta{Delta: "x"}, ThinkingDelta{Delta: "x", Nested: Nested{ParentID: "p"}},
		ToolInputDelta{ToolCallID: "t", Delta: `{"a":`}, ToolInputDelta{ToolCallID: "t", Delta: "x", Nested: Nested{ParentID: "p"}},
		ToolInputDelta{Delta: "no id"},
		MessageStop{Text: strings.Repeat("a\n", longText)},
		MessageStop{MessageID: "m", Text: strings.Repeat("é", longText), Aborted: true, Nested: Nested{ParentID: "p"}},
	} {
		data, err := AppendPayload(nil, p)
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(p))
		if err := json.Unmarshal(data, got.Interface()); err != nil || got.Elem().Interface() != p {
			t.Errorf("%T became %.200s", p, data)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "é€😀", "\xff\xc3", "\xed\xa0\x80", "\u2028\u2029<>&", "\xf4\x90\x80\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString(nil, s)
		if !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("%q became %q", s, got)
		}
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var a, b string
		if json.Unmarshal(got, &a) != nil || json.Unmarshal(std, &b) != nil || a != b {
			t.Errorf("%q became %q, encoding/json says %q", s, a, b)
		}
		if utf8.ValidString(s) && a != s {
			t.Errorf("%q became %q", s, a)
		}
	})
}
