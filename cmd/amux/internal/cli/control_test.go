package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// What each command asks of the run, and what it refuses before it asks.
func TestControlCommands(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args  string
		stdin string
		code  int
		calls []string
		err   string
	}{
		{"interrupt RUN", "", 0, []string{"interrupt"}, ""},
		{"pause RUN", "", 0, []string{"pause"}, ""},
		{"resume RUN", "", 0, []string{"resume"}, ""},
		{"send RUN hello", "", 0, []string{"send hello"}, ""},
		{"send RUN -", "two\nlines", 0, []string{"send two\nlines"}, ""},
		{"send RUN -", "", 2, nil, "stdin is empty"},
		{"send RUN \xff", "", 2, nil, "not valid UTF-8"},
		{"send RUN", "", 2, nil, "needs a prompt"},
		{"send RUN --end", "", 0, []string{"end"}, ""},
		{"send RUN last --end", "", 0, []string{"send last", "end"}, ""},
		{"send RUN \xff --end", "", 2, nil, "not valid UTF-8"},
		{"send --end", "", 2, nil, "needs a run"},
		{"send RUN --end --keys Enter", "", 2, nil, "excludes --end"},
		{"send RUN --keys C-c =text Enter", "", 0, []string{`keys "\x03text\r"`}, ""},
		{"send RUN --keys Entr", "", 2, nil, `no key has the name "Entr"`},
		{"send RUN --keys", "", 2, nil, "needs a key"},
		{"send RUN --keys Up", "", 6, nil, "has no terminal"},
		{"screen RUN", "", 6, nil, "has no terminal"},
		{"attach RUN", "", 0, []string{"lease false", "give back"}, ""},
		{"attach RUN --steal", "", 0, []string{"lease true", "give back"}, ""},
		{"attach RUN --read-only", "", 0, nil, ""},
		{"attach RUN --read-only --steal", "", 2, nil, "exclude each other"},
		{"attach RUN --detach-key x", "", 2, nil, "want a control character"},
		{"approve RUN", "", 0, []string{"approve "}, ""},
		{"approve RUN id", "", 0, []string{"approve id"}, ""},
		{`approve RUN id --input {"a":1}`, "", 0, []string{`approve id{"a":1}`}, ""},
		{"approve RUN id more", "", 2, nil, `takes no argument "more"`},
		{"approve", "", 2, nil, "needs a run"},
		{"deny RUN", "", 0, []string{"deny : "}, ""},
		{"deny RUN id --reason no", "", 0, []string{"deny id: no"}, ""},
		{"answer RUN blue", "", 0, []string{"answer : blue"}, ""},
		{"answer RUN id blue", "", 0, []string{"answer id: blue"}, ""},
		{"answer RUN", "", 2, nil, "needs an answer"},
		{"kill RUN --signal INT", "", 0, []string{"signal INT"}, ""},
		{"pause gone", "", 2, nil, `there is no run "gone"`},
		{"logs RUN -n -1", "", 2, nil, "want a number of lines"},
		{"logs RUN -n 2 -f", "", 2, nil, "not events"},
		{"wait RUN", "", 0, nil, ""},
		{"rm", "", 2, nil, "needs a run"},
	} {
		b := newBench(t, test.stdin)
		code := b.main(strings.Fields(strings.Replace(test.args, "RUN", runID, 1))...)
		if code != test.code || !cmp.Equal(b.host.run.all(), test.calls) || !strings.Contains(b.err.String(), test.err) || test.err == "" && b.err.String() != "" {
			t.Errorf("%s: code %d, calls %q, stderr %s", test.args, code, b.host.run.all(), b.err)
		}
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	gone := pluginapi.Errorf(pluginapi.CodeValidation, "there is no run x")
	for _, test := range []struct {
		args    string
		outcome host.Outcome
		refuse  error
		code    int
		asked   string
		err     string
	}{
		{"stop x", host.CancelRequested, nil, 0, "cancel x false recover x", ""},
		{"kill x", host.CancelRequested, nil, 0, "cancel x true recover x", ""},
		{"stop x", host.AlreadyFinished, nil, 0, "cancel x false recover x", "amux: run x has already finished\n"},
		{"stop x", host.NotFound, gone, 2, "cancel x false", "amux: error: there is no run x\n"},
		{"rm x y", host.Deleted, nil, 0, "recover x delete x recover y delete y", ""},
		{"rm x y", host.NotFound, gone, 2, "recover x delete x recover y delete y", "amux: error: there is no run x\namux: error: there is no run x\n"},
		{"clean", "", nil, 0, "clean false", "amux: removed 1 thing, 7 bytes\n"},
		{"clean --dry-run", "", nil, 0, "clean true", "amux: would remove 1 thing, 7 bytes\n"},
	} {
		b := newBench(t, "")
		b.host.outcome, b.host.refuse = test.outcome, test.refuse
		b.host.removed = []host.Removed{{Kind: "run", Path: "/r", Why: "old", Size: 7}}
		code := b.main(strings.Fields(test.args)...)
		if code != test.code || strings.Join(b.host.asked, " ") != test.asked || b.err.String() != test.err {
			t.Errorf("%s: code %d, asked %q, stderr %s", test.args, code, b.host.asked, b.err)
		}
	}
}

func TestPs(t *testing.T) {
	t.Parallel()
	var runs []host.RunInfo
	for i := range 150 {
		r := host.RunInfo{ID: fmt.Sprintf("01M7X9DSQ827BHWDSGN2DG0%03d", 999-i), Agent: "alpha", State: "timed_out", Prompt: "a\n\x1b[31mb" + strings.Repeat("c", 60),
			Created: time.Now().Add(-time.Duration(i) * time.Hour), End: &pluginapi.RunEnd{}, Project: "/elsewhere"}
		if i == 120 {
			r.End, r.State, r.Name = nil, "running", "the-one"
		}
		runs = append(runs, r)
	}
	b := newBench(t, "")
	b.host.list = runs
	if code := b.main("ps"); code != 0 {
		t.Fatalf("code %d: %s", code, b.err)
	}
	lines := strings.Split(b.out.String(), "\n")
	prompt := "a b" + strings.Repeat("c", 46) + "…"
	want := []string{
		"RUN     NAME     AGENT  STATE      AGE  PROMPT",
		"DG0879  the-one  alpha  running    5d   " + prompt,
		"DG0999  -        alpha  timed out  0s   " + prompt,
	}
	if len(lines) != 102 || !cmp.Equal(lines[:3], want) {
		t.Errorf("%d lines:\n%s", len(lines), cmp.Diff(want, lines[:3]))
	}
	for args, n := range map[string]int{"ps --json": 100, "ps --all --json": 150, "ps --all --json --project --project-dir /elsewhere": 150, "ps --json --project --project-dir /here": 0} {
		b := newBench(t, "")
		b.host.list = append([]host.RunInfo(nil), runs...)
		var got []host.RunInfo
		if code := b.main(strings.Fields(args)...); code != 0 || json.Unmarshal([]byte(b.out.String()), &got) != nil || len(got) != n {
			t.Errorf("%s: code %d, %d runs: %s", args, code, len(got), b.err)
		}
	}
	b = newBench(t, "")
	b.host.list = runs
	if b.main("__complete", "stop", ""); !strings.HasPrefix(b.out.String(), "DG0879\talpha running: a b") || !strings.Contains(b.out.String(), "the-one\t") || strings.Contains(b.out.String(), "timed_out") {
		t.Errorf("completion: %.200s", b.out)
	}
}

func TestLogsFollows(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"logs -f RUN", "logs -f --json RUN", "logs RUN", "logs --json RUN"} {
		b := newBench(t, "")
		run := newFakeRun(pluginapi.TextDelta{Delta: "first "})
		b.host.run = run
		run.watched = func() {
			go func() {
				run.emit(pluginapi.TextDelta{Delta: "later"}, pluginapi.MessageStop{Text: "first later"}, pluginapi.RunEnd{State: "completed"})
				run.end()
			}()
		}
		code := b.main(strings.Fields(strings.Replace(args, "RUN", runID, 1))...)
		if follows := strings.Contains(args, "-f"); code != 0 || !strings.Contains(b.out.String(), "first") || strings.Contains(b.out.String(), "later") != follows {
			t.Errorf("%s: code %d, %s", args, code, b.out)
		}
	}
}

// A run that has ended makes room; one without a record has nothing to keep.
func TestRunRetains(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{"run alpha hi": {"retain"}, "run alpha hi --no-record": nil} {
		b := newBench(t, "")
		if code := b.main(strings.Fields(args)...); code != 0 || !cmp.Equal(b.host.asked, want) {
			t.Errorf("%s: code %d, asked %q", args, code, b.host.asked)
		}
	}
}

// Who says --approve ask without a terminal answers from another one.
func TestAnswersFromElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.host.run = finished(pluginapi.ApprovalRequest{InteractionID: "a", Action: "write"}, pluginapi.InputRequired{InteractionID: "q", Question: "which?"}, pluginapi.RunEnd{State: "completed"})
	code := b.main("run", "alpha", "hi", "--approve", "ask")
	if code != 0 || len(b.host.run.all()) != 0 || b.host.spec.Unattended ||
		!strings.Contains(b.err.String(), "waits: amux approve DGXP98 a") || !strings.Contains(b.err.String(), "waits: amux answer DGXP98 q") {
		t.Errorf("code %d, calls %q, stderr %s", code, b.host.run.all(), b.err)
	}
}
