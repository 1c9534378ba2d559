package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/amux-dev/amux/host"
)

// TestQuestions shows each testdata/questions/*: whole and without colours, and as it is
// asked at a terminal.
func TestQuestions(t *testing.T) {
	const file = "testdata/questions/questions.txtar"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(data)
	want := map[string]string{}
	for _, f := range archive.Files {
		want[f.Name] = string(f.Data)
	}
	var questions []host.Question
	if err := json.Unmarshal([]byte(want["questions.json"]), &questions); err != nil {
		t.Fatal(err)
	}
	if len(questions) < 8 {
		t.Fatalf("only %d questions", len(questions))
	}
	got := []txtar.File{archive.Files[0]}
	for _, q := range questions {
		var asked bytes.Buffer
		New(Options{Err: &asked, Color: true}).AskApproval(q, "nightly 86CCFA")
		got = append(got, txtar.File{Name: q.ID, Data: []byte(Question(q, "", false))},
			txtar.File{Name: q.ID + " asked", Data: append(visible(asked.Bytes()), '\n')})
	}
	if *update {
		archive.Files = got
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if len(archive.Files) != len(got) {
		t.Errorf("%d sections, want %d: go test -update", len(archive.Files), len(got))
	}
	for _, f := range got {
		if diff := cmp.Diff(want[f.Name], string(f.Data)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
}

// What does not fit is counted, and is there in full where everything is asked for.
func TestQuestionsAreNotCutSilently(t *testing.T) {
	t.Parallel()
	var command strings.Builder
	for i := range 150 {
		fmt.Fprintf(&command, "echo %d\n", i)
	}
	event := func(input any) host.Question {
		raw, err := json.Marshal(map[string]any{"tool_name": "Bash", "action": "Bash", "input": input})
		if err != nil {
			t.Fatal(err)
		}
		return host.Question{ID: "1", Approval: true, Event: raw}
	}
	for name, test := range map[string]struct {
		q            host.Question
		left, hidden string
	}{
		"lines":      {event(map[string]string{"command": command.String()}), "… 120 more lines, d shows all", "echo 149"},
		"characters": {event(map[string]string{"command": strings.Repeat("日", mostColumns) + "漢字"}), "… 2 more characters, d shows all", "漢字"},
		"diff":       {event(map[string]string{"old_string": "", "new_string": command.String()}), "… 120 more lines, d shows all", "+echo 149"},
	} {
		asked := showQuestion(test.q, "", "d shows all", false)
		if !strings.Contains(asked, test.left) || strings.Contains(asked, test.hidden) {
			t.Errorf("%s: asked as %s", name, asked)
		}
		if whole := Question(test.q, "", false); !strings.Contains(whole, test.hidden) || strings.Contains(whole, "more") {
			t.Errorf("%s: the whole is %s", name, whole)
		}
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("same\n", 20)
	for _, test := range []struct{ before, after, want string }{
		{"a\n", "a\n", ""},
		{"", "a\nb\n", "+a|+b"},
		{"a\nb", "", "-a|-b"},
		{"a\nb\nc\n", "a\nB\nc\n", " a|-b|+B| c"},
		{"a\nb\nc\nd\n", "b\nc\nx\nd\n", "-a| b| c|+x| d"},
		{long + "a\n" + long, long + "b\n" + long, "@@| same| same| same|-a|+b| same| same| same"},
		{"a\n" + long + "c\n", "b\n" + long + "d\n", "-a|+b| same| same| same|@@| same| same| same|-c|+d"},
		{strings.Repeat("a\n", 3000) + "x", strings.Repeat("b\n", 3000) + "y", "-a*3000-x|+b*3000"},
	} {
		got := strings.Join(diff(test.before, test.after), "|")
		if strings.Contains(test.want, "*") {
			if strings.Count(got, "-a") != 3000 || strings.Count(got, "+b") != 3000 || !strings.HasSuffix(got, "+y") {
				t.Errorf("a large change: %d bytes", len(got))
			}
			continue
		}
		if got != test.want {
			t.Errorf("%q → %q: %s, want %s", test.before, test.after, got, test.want)
		}
	}
}
