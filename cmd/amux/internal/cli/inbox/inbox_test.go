package inbox

import (
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

func newBench(t *testing.T, asked ...pluginapi.Payload) *clitest.Bench {
	b := clitest.New(t, "", clitest.Commands(NewCmd))
	b.Host.Run = clitest.NewRun(asked...)
	b.Host.Run.Rules = []string{"Bash(make *)"}
	b.Host.RunList = []host.RunInfo{
		{ID: "01M7X9DSQ827BHWDSGN2DGXP99", Agent: "alpha", State: "running"},
		{ID: clitest.RunID, Name: "nightly", Agent: "alpha", State: "waiting", Tags: []string{"x"}},
	}
	return b
}

func approval(id string) pluginapi.Payload {
	return pluginapi.ApprovalRequest{InteractionID: id, Action: "Bash", ToolName: "Bash", Input: []byte(`{"command":"make"}`)}
}

var colour = pluginapi.InputRequired{InteractionID: "q", Question: "Colour?", Context: "日本語 \x1b[31mred"}

func TestAnswerOneAfterTheOther(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, typed string
		asked       []pluginapi.Payload
		calls       []string
		shows       []string
	}{
		{"all kinds", "y\nblue\nn not now\n", []pluginapi.Payload{approval("a"), colour, approval("b")},
			[]string{"approve a", "answer q: blue", "deny b: not now"}, []string{"? Bash asks for approval · nightly DGXP98 · alpha · ", "$ make", "日本語 red"}},
		{"a rule", "a\n", []pluginapi.Payload{approval("a")}, []string{"allow a Bash(make *)"}, nil},
		{"left for later", "\ny\n", []pluginapi.Payload{approval("a"), approval("b")}, []string{"approve b"}, []string{"left for later"}},
		{"stdin ends", "", []pluginapi.Payload{approval("a")}, nil, nil},
		{"nothing", "", nil, nil, []string{"amux: no open questions"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, test.asked...)
			typist, stdin := clitest.NewTypist(test.typed)
			b.Terminal(stdin)
			b.IO.Err, b.Err = typist, typist
			code := b.Main("inbox")
			if code != 0 || b.Out.String() != "" || !cmp.Equal(b.Host.Run.Calls(), test.calls) {
				t.Errorf("code %d, stdout %q, calls %q, stderr %s", code, b.Out, b.Host.Run.Calls(), b.Err)
			}
			for _, want := range test.shows {
				if !strings.Contains(b.Err.String(), want) {
					t.Errorf("no %q in %s", want, b.Err)
				}
			}
		})
	}
}

// Whoever comes second gets one line, whether the question is still on the screen or
// the answer is under way.
func TestSomebodyElseIsFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t, approval("a"))
	typist, stdin := clitest.NewTypist("y\n")
	b.Terminal(stdin)
	b.IO.Err, b.Err = typist, typist
	b.Host.Run.Fail["approve"] = pluginapi.CodeAlreadyAnswered
	if code := b.Main("inbox"); code != 0 || strings.Count(b.Err.String(), "somebody else was first") != 1 || strings.Contains(b.Err.String(), "error") {
		t.Errorf("code %d, stderr %s", code, b.Err)
	}

	b = newBench(t, approval("a"))
	silent, typing := io.Pipe()
	defer typing.Close()
	b.Terminal(silent)
	asked := &watcher{on: "[?]: ", then: func() {
		b.Host.RunList[1].Events++
		b.Host.Run.Emit(pluginapi.ApprovalGranted{InteractionID: "a"})
	}}
	b.IO.Err, b.Err = asked, asked
	if code := b.Main("inbox"); code != 0 || strings.Count(b.Err.String(), "answered elsewhere") != 1 || len(b.Host.Run.Calls()) > 0 {
		t.Errorf("code %d, calls %q, stderr %s", code, b.Host.Run.Calls(), b.Err)
	}
}

// watcher does something when a text is written for the first time.
type watcher struct {
	text strings.Builder
	on   string
	then func()
}

func (w *watcher) Write(p []byte) (int, error) {
	n, err := w.text.Write(p)
	if then := w.then; then != nil && strings.Contains(string(p), w.on) {
		w.then = nil
		then()
	}
	return n, err
}

func (w *watcher) String() string { return w.text.String() }

// Ctrl-C leaves, and answers nothing; another signal is told by the exit code.
func TestLeave(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"inbox"}, {"inbox", "--follow"}, {"inbox", "--follow", "--list"}} {
		b := newBench(t, approval("a"))
		silent, typing := io.Pipe()
		defer typing.Close()
		b.Terminal(silent)
		b.Signals <- os.Interrupt
		if code := b.Main(args...); code != 0 || len(b.Host.Run.Calls()) > 0 {
			t.Errorf("%v: code %d, calls %q, stderr %s", args, code, b.Host.Run.Calls(), b.Err)
		}
	}
}

var age = regexp.MustCompile(`[0-9]+d\b`)

func TestList(t *testing.T) {
	t.Parallel()
	b := newBench(t, approval("a"), colour)
	want := "? Bash asks for approval · nightly DGXP98 · alpha · AGE\n    $ make\n    in /work\n  a allows for the rest of the run: Bash(make *)\n" +
		"  amux approve DGXP98 a; amux deny DGXP98 a\n" +
		"? Colour? · nightly DGXP98 · alpha · AGE\n    日本語 red\n  amux answer DGXP98 q TEXT\n"
	code := b.Main("inbox", "--tag", "x")
	if got := age.ReplaceAllString(b.Out.String(), "AGE"); code != 0 || got != want || b.Err.String() != "" {
		t.Errorf("code %d, stderr %s, stdout (-want +got):\n%s", code, b.Err, cmp.Diff(want, got))
	}
	for _, test := range []struct{ args, out, err string }{
		{"inbox --tag y", "", "amux: no open questions\n"},
		{"inbox --tag y --json", "[]\n", ""},
	} {
		b := newBench(t, approval("a"))
		if code := b.Main(strings.Fields(test.args)...); code != 0 || b.Out.String() != test.out || b.Err.String() != test.err {
			t.Errorf("%s: code %d, stdout %q, stderr %q", test.args, code, b.Out, b.Err)
		}
	}
	b = newBench(t, approval("a"), colour)
	var asked []app.Asked
	if code := b.Main("inbox", "--json"); code != 0 || json.Unmarshal([]byte(b.Out.String()), &asked) != nil ||
		len(asked) != 2 || asked[0].ID != "a" || !asked[0].Approval || asked[0].Name != "nightly" || asked[0].Rules[0] != "Bash(make *)" ||
		asked[1].ID != "q" || !strings.Contains(string(asked[1].Event), "Colour?") {
		t.Errorf("code %d, %s%s", code, b.Out, b.Err)
	}
	b = newBench(t)
	if code := b.Main("inbox", "--filter", "x=y"); code != 2 {
		t.Errorf("code %d", code)
	}
}

// With --follow each question comes once, when it opens.
func TestFollow(t *testing.T) {
	t.Parallel()
	b := newBench(t, approval("a"))
	out := &watcher{on: `"a"`}
	out.then = func() {
		out.on, out.then = `"b"`, func() { b.Signals <- os.Interrupt }
		b.Host.RunList[1].Events++
		b.Host.Run.Emit(approval("b"))
	}
	b.IO.Out = out
	if code := b.Main("inbox", "-f", "--json"); code != 0 || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("code %d, stdout %s, stderr %s", code, out, b.Err)
	}
}
