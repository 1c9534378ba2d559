package sessions

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

func sessionEvents(payloads ...pluginapi.Payload) (events []host.Event) {
	for i, p := range payloads {
		object, err := pluginapi.AppendPayload(nil, p)
		if err != nil {
			panic(err)
		}
		raw := fmt.Sprintf(`{"type":%q,"seq":%d,"agent":"a",%s`, p.EventType(), i+1, object[1:])
		events = append(events, host.Event{Type: p.EventType(), Seq: uint64(i + 1), Agent: "a", Raw: json.RawMessage(raw)})
	}
	return events
}

// What was said in a session may itself hold fences and control sequences.
func TestMarkdownHoldsWhatWasSaid(t *testing.T) {
	b := clitest.New(t, "", clitest.Commands(NewCmd))
	b.Host.SessionList = []host.Session{{Agent: "a", ID: "s-12345", Title: "A\ntitle"}}
	b.Host.Talks = map[string][]host.Event{"s-12345": sessionEvents(
		pluginapi.UserMessage{Text: "run it"},
		pluginapi.ToolCallReady{ToolCallID: "1", ToolName: "sh\x1b[2J", Input: json.RawMessage(`{"c":"ls"}`)},
		pluginapi.ToolResult{ToolCallID: "1", ToolName: "sh", Output: json.RawMessage(`"a ` + "```" + ` b"`)},
		pluginapi.MessageStop{Text: "done\x1b]0;x\x07"},
	)}
	if code := b.Main("sessions", "export", "s-12345", "--agent", "a"); code != 0 {
		t.Fatalf("code %d: %s", code, b.Err)
	}
	got := b.Out.String()
	want := "# A title\n\n- Agent: a\n- Session: s-12345\n\n## User\n\nrun it\n\n" +
		"**Tool sh**\n\n```\n{\"c\":\"ls\"}\n```\n\n**Result**\n\n````\na ``` b\n````\n\n## Assistant\n\ndone\n\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// An id may be shortened, as long as it names one session.
func TestSessionRefs(t *testing.T) {
	h := &clitest.Host{SessionList: []host.Session{{Agent: "a", ID: "abcd-1111"}, {Agent: "a", ID: "abcd-2222"}, {Agent: "a", ID: "abcd"}}}
	f := &Finder{}
	for ref, want := range map[string]string{"abcd": "abcd", "1111": "abcd-1111", "abcd-2": "abcd-2222", "222": "", "abcd-": "", "x": ""} {
		found, err := f.One(h, "a", ref)
		if found.ID != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", ref, found.ID, err, want)
		}
	}
}

func TestFileWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	changed := fileWatch(path)
	if !changed() {
		t.Error("no file says nothing")
	}
	write := func(text string, at int64) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(at, 0), time.Unix(at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	write("a", 1)
	for i, want := range []bool{true, false, true, true} {
		if i == 2 {
			write("ab", 1)
		}
		if i == 3 {
			write("cd", 2)
		}
		if changed() != want {
			t.Errorf("look %d: %v", i, !want)
		}
	}
}
