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
			r.AskApproval(line)
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
			play(events, Options{Out: &terminal, Err: &terminal, Color: true, Width: 80, Terminal: true, Shared: true}, true)
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

func TestSanitizer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, in, want string }{
		{"plain", "hello\n\tworld", "hello\n\tworld"},
		{"colour", "\x1b[1;31mred\x1b[m", "red"},
		{"cursor", "a\x1b[2J\x1b[Hb", "ab"},
		{"private", "\x1b[?1049hx", "x"},
		{"title by BEL", "\x1b]0;evil\x07ok", "ok"},
		{"clipboard by ST", "\x1b]52;c;ZXZpbA==\x1b\\ok", "ok"},
		{"device control", "\x1bPq#0\x1b\\ok", "ok"},
		{"unfinished string ends with the line", "\x1b]0;evil\nok", "\nok"},
		{"escape inside a string", "\x1b]0;a\x1b[31mb", "b"},
		{"two characters", "\x1bcx\x1b(By", "xy"},
		{"C1 as UTF-8", "a\u009b31mb\u009d0;t\u009cc\u0085d", "abcd"},
		{"bell, backspace, CR", "a\ab\bc\rd", "abcd"},
		{"delete", "a\x7fb", "ab"},
		{"bidi", "a\u202eb\u2066c", "abc"},
		{"torn at the end", "a\x1b[31", "a"},
		{"control sequence cut by a line", "a\x1b[31\nb", "a\nb"},
		{"escape twice", "\x1b\x1b[31mx", "x"},
		{"invalid UTF-8", "a\xffb\xc3(", "a\ufffdb\ufffd("},
		{"emoji", "👍🏽 ok", "👍🏽 ok"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := String(test.in); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			var s Sanitizer
			var got []byte
			for i := range len(test.in) {
				got = s.Append(got, test.in[i:i+1])
			}
			if string(got) != test.want {
				t.Errorf("by bytes: got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzSanitizer(f *testing.F) {
	f.Add("a\x1b[31mb\x1b]0;t\x07c\xff\xe6\x97", 3)
	f.Add("\xe6a\xe6\x97b", 1)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		whole := String(text)
		for _, r := range whole {
			if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f {
				t.Fatalf("%q is left in %q", r, whole)
			}
		}
		if len(text) == 0 {
			return
		}
		cut = (cut%len(text) + len(text)) % len(text)
		var s Sanitizer
		split := s.Append(s.Append(nil, text[:cut]), text[cut:])
		if string(split) != whole {
			t.Fatalf("cut at %d: %q, whole %q", cut, split, whole)
		}
	})
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
