package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

var update = flag.Bool("update", false, "rewrite the golden sections")

// play renders the lines of events to a terminal, or to two pipes.
func play(events []byte, o Options, ask bool) {
	r := New(o)
	for line := range bytes.Lines(events) {
		line = bytes.TrimSpace(line)
		var head struct {
			Type pluginapi.Type `json:"type"`
		}
		if len(line) == 0 || json.Unmarshal(line, &head) != nil {
			continue
		}
		r.Event(head.Type, line)
		switch {
		case ask && head.Type == "approval_request":
			r.AskApproval(host.Question{ID: "i1", Approval: true, Cwd: "/srv", Rules: []string{"Bash(make *)"}, Event: line}, "")
			o.Err.Write([]byte("y\n")) // as the terminal echoes it
			r.Answered()
		case ask && head.Type == "input_required":
			var e pluginapi.InputRequired
			json.Unmarshal(line, &e)
			r.AskQuestion(e.Question, e.Context, []string{"red", "blue"})
			o.Err.Write([]byte("2\n"))
			r.Answered()
		}
	}
}

// visible makes escape characters readable.
func visible(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\x1b"), []byte("␛")) }

// TestGolden renders each testdata/*.txtar at 80 columns: on a terminal with
// colours, and into two pipes.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			archive := txtar.Parse(data)
			sections := map[string][]byte{}
			for _, f := range archive.Files {
				sections[f.Name] = f.Data
			}
			var terminal, stdout, stderr bytes.Buffer
			events := sections["events.ndjson"]
			play(events, Options{Out: &terminal, Err: &terminal, Color: true, Width: 80, Terminal: true, Live: true, Shared: true}, true)
			play(events, Options{Out: &stdout, Err: &stderr, Width: 80}, false)
			got := map[string][]byte{"terminal": visible(terminal.Bytes()), "stdout": stdout.Bytes(), "stderr": stderr.Bytes()}
			if *update {
				archive.Files = []txtar.File{{Name: "events.ndjson", Data: events}}
				for _, name := range []string{"terminal", "stdout", "stderr"} {
					archive.Files = append(archive.Files, txtar.File{Name: name, Data: got[name]})
				}
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for name, text := range got {
				if diff := cmp.Diff(string(sections[name]), string(text)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			for name, text := range got {
				for line := range strings.Lines(string(text)) {
					if (strings.Contains(line, "● ") || strings.Contains(line, " turn")) && Columns(String(strings.ReplaceAll(line, "␛", "\x1b"))) > 80 {
						t.Errorf("%s: wider than 80 columns: %q", name, line)
					}
				}
			}
		})
	}
}

// TestCutsMakeNoDifference cuts the text of all deltas into single bytes' worth
// of runes: what is written must be the same.
func TestCutsMakeNoDifference(t *testing.T) {
	text := "one \x1b[31mred\x1b[0m \x1b]0;title\x07two\r\nthree\x1b]8;;http://x\x1b\\link 日本 \u202eevil\u202c\tend"
	render := func(deltas []string) string {
		var out bytes.Buffer
		r := New(Options{Out: &out, Err: &out, Shared: true})
		for _, d := range deltas {
			raw, _ := pluginapi.AppendPayload(nil, pluginapi.TextDelta{Delta: d})
			r.Event("text_delta", raw)
		}
		raw, _ := pluginapi.AppendPayload(nil, pluginapi.MessageStop{Text: text})
		r.Event("message_stop", raw)
		return out.String()
	}
	want := "one red two\nthreelink 日本 evil\tend\n"
	if got := render([]string{text}); got != want {
		t.Errorf("whole: %q, want %q", got, want)
	}
	if got := render(strings.Split(text, "")); got != want {
		t.Errorf("by runes: %q, want %q", got, want)
	}
	if got := render(nil); got != want {
		t.Errorf("without deltas: %q, want %q", got, want)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestErr(t *testing.T) {
	r := New(Options{Out: brokenPipe{}, Err: new(bytes.Buffer)})
	r.Event("text_delta", []byte(`{"delta":"x"}`))
	if r.Err() == nil {
		t.Error("the error of Out is lost")
	}
}

func TestQuiet(t *testing.T) {
	var out bytes.Buffer
	r := New(Options{Out: &out, Err: &out, Quiet: true})
	r.Event("text_delta", []byte(`{"delta":"x"}`))
	r.Event("run_end", []byte(`{"state":"completed"}`))
	if out.Len() > 0 {
		t.Errorf("wrote %q", out.String())
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := Number(n); got != want {
			t.Errorf("Number(%d) = %q", n, got)
		}
	}
	if got := clip("日本語日本語", 7); got != "日本語…" {
		t.Errorf("clip: %q", got)
	}
}

// An event of a delta is shown as it is decoded whole, whatever it looks like.
func TestDeltas(t *testing.T) {
	const head = `{"type":"text_delta","run_id":"01M88EQX0N2TBQ3JMMDHCPP0AK","seq":18,"time":"2026-11-25T04:17:08Z","agent":"claude"`
	for _, raw := range []string{
		head + `,"delta":"plain"}`, head + `,"delta":""}`, head + `,"delta":"a\"b\\\u00e9\ud83d\ude00\n"}`, head + `,"delta":"\ud800"}`,
		head + ",\"delta\":\"\xff\"}", head + `,"delta":"a","parent_id":"t1"}`, head + `,"parent_id":"t1","delta":"a"}`,
		head + `,"delta":"a","delta":"b"}`, head + `,"delta":"a","x":"b"}`, head + `,"delta":7}`, head + `,"delta":null}`,
		head + `,"x":{"a":1,"delta":"inner"}}`, head + `,"x":{"a":1,"delta":"inner"},"delta":"outer"}`,
		head + `,"x":",\"delta\":\"inner\"","delta":"outer"}`, head + `}`, head + `,"delta":"}`,
	} {
		var want event
		valid := json.Unmarshal([]byte(raw), &want) == nil
		got, ok := decode("text_delta", []byte(raw))
		if ok != valid || ok && (got.Delta != want.Delta || got.ParentID != want.ParentID) {
			t.Errorf("%s: %q of %q, %v; want %q of %q, %v", raw, got.Delta, got.ParentID, ok, want.Delta, want.ParentID, valid)
		}
	}
}
