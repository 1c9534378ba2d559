package records

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

func newBench(t *testing.T, stdin string) *clitest.Bench {
	return clitest.New(t, stdin, clitest.Commands(NewCmdPs, NewCmdHistory, NewCmdLogs, NewCmdWait, NewCmdScreen, NewCmdRm, NewCmdClean, NewCmdInspect, NewCmdReplay))
}

func TestRecordedRuns(t *testing.T) {
	t.Parallel()
	run := clitest.Finished(pluginapi.UserMessage{Text: "hi"}, pluginapi.TextDelta{Delta: "answer"}, pluginapi.MessageStop{Text: "answer"}, pluginapi.RunEnd{State: "completed", Turns: 1})
	for _, test := range []struct {
		args     []string
		code     int
		out, err string
	}{
		{[]string{"logs", clitest.RunID}, 0, "answer\n", "> hi\n1 turn"},
		{[]string{"logs", clitest.RunID, "--json"}, 0, `"type":"user_message"`, ""},
		{[]string{"replay", clitest.RunID}, 0, `"type":"run_end"`, ""},
		{[]string{"replay", clitest.RunID, "--plugin", "dir"}, 0, "of the other plugin", "amux: replaying with plugin other 2.0.0"},
		{[]string{"replay", clitest.RunID, "--plugin="}, 2, "", `invalid --plugin "": expected the folder of a plugin`},
		{[]string{"replay", clitest.RunID, "--diff"}, 0, "", ""},
		{[]string{"replay", clitest.RunID, "--diff", "--plugin", "dir"}, 1, "+++ replayed with other 2.0.0\n", "amux: replaying with plugin other 2.0.0"},
		{[]string{"replay", clitest.RunID, "--diff", "damaged"}, 17, "", "events.jsonl is damaged at offset 12"},
		{[]string{"inspect", clitest.RunID}, 0, "state    completed", ""},
		{[]string{"inspect", clitest.RunID, "--json"}, 0, `"run_id": "` + clitest.RunID + `"`, ""},
		{[]string{"logs", "nope"}, 2, "", `there is no run "nope"`},
		{[]string{"logs", clitest.RunID, "damaged"}, 17, "answer\n", "amux: warning: run DGXP98"},
		{[]string{"logs", clitest.RunID, "--json", "damaged"}, 17, `"type":"user_message"`, "events.jsonl is damaged at offset 12: it is torn\namux: hint: rebuild its events from its journal"},
		{[]string{"inspect", clitest.RunID, "damaged"}, 17, "damaged in 1 place", "events.jsonl is damaged at offset 12"},
		{[]string{"inspect", clitest.RunID, "--json", "damaged"}, 17, `"offset": 12,`, "events.jsonl is damaged at offset 12"},
		{[]string{"wait", clitest.RunID, "damaged"}, 17, "", "events.jsonl is damaged at offset 12"},
	} {
		b := newBench(t, "")
		b.Host.Run = run
		if n := len(test.args) - 1; test.args[n] == "damaged" {
			test.args = test.args[:n]
			b.Host.Integrity.Damage = []host.Damage{{File: "events.jsonl", Offset: 12, Reason: "it is torn"}}
		}
		if code := b.Main(test.args...); code != test.code || !strings.Contains(b.Out.String(), test.out) || !strings.Contains(b.Err.String(), test.err) {
			t.Errorf("%v: code %d, stdout %s, stderr %s", test.args, code, b.Out, b.Err)
		}
	}
}

// TestPickedRun: a command about one run that names none has the person pick it; without
// a person it says what it needs.
func TestPickedRun(t *testing.T) {
	t.Parallel()
	ended := host.RunInfo{ID: clitest.RunID, Name: "nightly", Agent: "alpha", State: "completed", End: &pluginapi.RunEnd{}}
	list := []host.RunInfo{{ID: "A", Agent: "beta", State: "running"}, ended}
	for _, test := range []struct {
		args, typed string
		code        int
		out, err    string
	}{
		{"logs", "2\n", 0, "answer\n", "2)  DGXP98  nightly  alpha  completed"},
		{"logs", "\n", 2, "", "no run was chosen"},
		{"logs", "3\n", 2, "", "choose a number from 1 to 2"},
		{"inspect", clitest.RunID + "\n", 0, clitest.RunID, "1)  A"},
		{"logs", "", 2, "", "amux logs needs a run"},
		{"logs a b", "", 2, "", `takes no argument "b"`},
	} {
		b := newBench(t, "")
		b.Host.Run = clitest.Finished(pluginapi.MessageStop{Text: "answer"}, pluginapi.RunEnd{State: "completed"})
		b.Host.RunList = slices.Clone(list)
		if test.typed != "" {
			b.Terminal(strings.NewReader(test.typed))
		}
		if code := b.Main(strings.Fields(test.args)...); code != test.code || !strings.Contains(b.Out.String(), test.out) || !strings.Contains(b.Err.String(), test.err) {
			t.Errorf("%s (%q): code %d, stdout %s, stderr %s", test.args, test.typed, code, b.Out, b.Err)
		}
	}
}

// TestManyDamagedRuns: a list stays readable on a disk that has lost much.
func TestManyDamagedRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	for range 300 {
		b.Host.RunList = append(b.Host.RunList, host.RunInfo{ID: clitest.RunID, State: "running", Damage: []host.Damage{{File: "events.jsonl", Reason: "it is torn"}}})
	}
	if code := b.Main("ps"); code != 0 || strings.Count(b.Err.String(), "warning") != 6 || !strings.Contains(b.Err.String(), "295 runs more with damaged records") {
		t.Errorf("code %d: %s", code, b.Err)
	}
}

func TestPs(t *testing.T) {
	t.Parallel()
	var runs []host.RunInfo
	for i := range 150 {
		r := host.RunInfo{ID: fmt.Sprintf("01M7X9DSQ827BHWDSGN2DG0%03d", 999-i), Agent: "alpha", State: "timed_out", Prompt: "a\n\x1b[31mb" + strings.Repeat("c", 60),
			Created: time.Now().Add(-time.Duration(i) * time.Hour), End: &pluginapi.RunEnd{Cost: &pluginapi.Money{USD: 0.25}}, Project: "/elsewhere"}
		if i == 120 {
			r.End, r.State, r.Name = nil, "running", "the-one"
		}
		runs = append(runs, r)
	}
	for _, test := range []struct {
		args  string
		width int
		want  []string // the first lines
		lines int
	}{
		{"ps", 80, []string{
			"RUN     NAME     AGENT  STATE    AGE  PROMPT",
			"DG0879  the-one  alpha  running  5d   a b" + strings.Repeat("c", 38) + "…",
		}, 2},
		{"ps -a", 80, []string{
			"RUN     NAME     AGENT  STATE      AGE  PROMPT",
			"DG0879  the-one  alpha  running    5d   a b" + strings.Repeat("c", 36) + "…",
			"DG0999  -        alpha  timed out  0s   a b" + strings.Repeat("c", 36) + "…",
		}, 151},
		{"ps -a", 120, []string{
			"RUN     NAME     AGENT  STATE      AGE  COST     PROMPT",
			"DG0879  the-one  alpha  running    5d   -        a b" + strings.Repeat("c", 60),
			"DG0999  -        alpha  timed out  0s   $0.2500  a b" + strings.Repeat("c", 60),
		}, 151},
		{"ps -n 2", 40, []string{
			"RUN     AGENT  STATE      PROMPT",
			"DG0999  alpha  timed out  a b" + strings.Repeat("c", 12) + "…",
		}, 3},
		{"ps -q", 80, []string{"01M7X9DSQ827BHWDSGN2DG0879"}, 1},
		{"ps -aq --filter name=the", 80, []string{"01M7X9DSQ827BHWDSGN2DG0879"}, 1},
		{"ps --filter state=timed_out -q", 80, []string{"01M7X9DSQ827BHWDSGN2DG0999"}, 149},
		{"ps --format {{.ID}}:{{.State}}", 80, []string{"01M7X9DSQ827BHWDSGN2DG0879:running"}, 1},
	} {
		b := newBench(t, "")
		b.Host.RunList, b.IO.Width = slices.Clone(runs), test.width
		if code := b.Main(strings.Fields(test.args)...); code != 0 {
			t.Fatalf("%s: code %d: %s", test.args, code, b.Err)
		}
		lines := strings.Split(strings.TrimSuffix(b.Out.String(), "\n"), "\n")
		if len(lines) != test.lines || !cmp.Equal(lines[:len(test.want)], test.want) {
			t.Errorf("%s: %d lines:\n%s", test.args, len(lines), cmp.Diff(test.want, lines[:len(test.want)]))
		}
	}
	for args, n := range map[string]int{"ps --json": 1, "ps --all --json": 150, "ps -n 7 --json": 7, "ps --all --json --project --project-dir /elsewhere": 150, "ps --json --project --project-dir /here": 0} {
		b := newBench(t, "")
		b.Host.RunList = slices.Clone(runs)
		var got []host.RunInfo
		if code := b.Main(strings.Fields(args)...); code != 0 || json.Unmarshal([]byte(b.Out.String()), &got) != nil || len(got) != n {
			t.Errorf("%s: code %d, %d runs: %s", args, code, len(got), b.Err)
		}
	}
	for args, want := range map[string]string{
		"ps --format {{.Nope}}": "invalid --format: ", "ps --format {{": "invalid --format: ", "ps -q --json": "cannot be combined", "ps -n -3": `invalid --last "-3"`,
	} {
		b := newBench(t, "")
		b.Host.RunList = slices.Clone(runs)
		if code := b.Main(strings.Fields(args)...); code != 2 || !strings.Contains(b.Err.String(), want) {
			t.Errorf("%s: code %d: %s", args, code, b.Err)
		}
	}
	b := newBench(t, "")
	b.Host.RunList = slices.Clone(runs[:3])
	if code := b.Main("ps"); code != 0 || b.Err.String() != "amux: no live runs; those that have ended: amux ps -a\n" {
		t.Errorf("code %d: %s", code, b.Err)
	}
	if b.Main("ps", "--tag", "nightly"); len(b.Host.Asked) > 0 {
		t.Errorf("for the live runs the host is asked for %q", b.Host.Asked) // which costs something for each that has ended
	}
	b = newBench(t, "")
	b.Host.RunList = runs
	if b.Main("__complete", "wait", ""); !strings.HasPrefix(b.Out.String(), "DG0879\talpha running: a b") || !strings.Contains(b.Out.String(), "the-one\t") || strings.Contains(b.Out.String(), "timed_out") {
		t.Errorf("completion: %.200s", b.Out)
	}
	b = newBench(t, "")
	b.Host.RunList = runs
	if b.Main("__complete", "inspect", ""); !strings.Contains(b.Out.String(), "timed_out") {
		t.Errorf("completion of ended runs: %.200s", b.Out)
	}
}

func TestLogsFollows(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"logs -f RUN", "logs -f --json RUN", "logs RUN", "logs --json RUN"} {
		b := newBench(t, "")
		run := clitest.NewRun(pluginapi.TextDelta{Delta: "first "})
		b.Host.Run = run
		run.Watched = func() {
			go func() {
				run.Emit(pluginapi.TextDelta{Delta: "later"}, pluginapi.MessageStop{Text: "first later"}, pluginapi.RunEnd{State: "completed"})
				run.Finish()
			}()
		}
		code := b.Main(strings.Fields(strings.Replace(args, "RUN", clitest.RunID, 1))...)
		if follows := strings.Contains(args, "-f"); code != 0 || !strings.Contains(b.Out.String(), "first") || strings.Contains(b.Out.String(), "later") != follows {
			t.Errorf("%s: code %d, %s", args, code, b.Out)
		}
	}
}

// What the commands refuse before they read a record.
func TestRecordCommandsRefuse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args  string
		stdin string
		code  int
		calls []string
		err   string
	}{
		{"screen RUN", "", 6, nil, "has no terminal"},
		{"logs RUN -n -1", "", 2, nil, `invalid --lines "-1": expected a number`},
		{"logs RUN -n 2 -f", "", 2, nil, "not events"},
		{"wait RUN", "", 0, nil, ""},
		{"rm", "", 2, nil, "needs a run"},
	} {
		b := newBench(t, test.stdin)
		code := b.Main(strings.Fields(strings.Replace(test.args, "RUN", clitest.RunID, 1))...)
		if code != test.code || !cmp.Equal(b.Host.Run.Calls(), test.calls) || !strings.Contains(b.Err.String(), test.err) || test.err == "" && b.Err.String() != "" {
			t.Errorf("%s: code %d, calls %q, stderr %s", test.args, code, b.Host.Run.Calls(), b.Err)
		}
	}
}

func TestRemovedOutcomes(t *testing.T) {
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
		{"rm x y", host.Deleted, nil, 0, "recover x delete x recover y delete y", ""},
		{"rm x y", host.NotFound, gone, 2, "recover x delete x recover y delete y", "amux: error: there is no run x\namux: error: there is no run x\n"},
		{"clean", "", nil, 0, "clean false", "amux: removed 1 item, 7 bytes\n"},
		{"clean --dry-run", "", nil, 0, "clean true", "amux: would remove 1 item, 7 bytes\n"},
	} {
		b := newBench(t, "")
		b.Host.Outcome, b.Host.Refuse = test.outcome, test.refuse
		b.Host.Removed = []host.Removed{{Kind: "run", Path: "/r", Why: "old", Size: 7}}
		code := b.Main(strings.Fields(test.args)...)
		if code != test.code || strings.Join(b.Host.Asked, " ") != test.asked || b.Err.String() != test.err {
			t.Errorf("%s: code %d, asked %q, stderr %s", test.args, code, b.Host.Asked, b.Err)
		}
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	now := time.Now()
	list := []host.RunInfo{
		{ID: "AAAAAA", Agent: "alpha", Prompt: "fix the Flaky test", Created: now.Add(-time.Hour), End: &pluginapi.RunEnd{}},
		{ID: "BBBBBB", Agent: "beta", Prompt: "write a test\x1b[31m", Created: now.Add(-3 * time.Hour), End: &pluginapi.RunEnd{}, Tags: []string{"x"}},
		{ID: clitest.RunID, Agent: "alpha", Prompt: "hello", Conversation: true, Events: 3, Created: now.Add(-48 * time.Hour)},
		{ID: "CCCCCC", Agent: "beta", Created: now.Add(-72 * time.Hour), End: &pluginapi.RunEnd{}}, // without a prompt
	}
	for _, test := range []struct {
		args string
		code int
		want []string // prompts
		err  string
	}{
		{"history", 0, []string{"fix the Flaky test", "write a test", "hello", "and more"}, ""},
		{"history TEST", 0, []string{"fix the Flaky test", "write a test"}, ""},
		{"history more", 0, []string{"and more"}, ""},
		{"history -n 1", 0, []string{"fix the Flaky test"}, ""},
		{"history -n 0 --agent beta", 0, []string{"write a test"}, ""},
		{"history --tag x", 0, []string{"write a test"}, ""},
		{"history nothing", 0, nil, `no prompt contains "nothing"`},
		{"history -n -1", 2, nil, `invalid --last "-1"`},
	} {
		for _, asJSON := range []bool{false, true} {
			b := newBench(t, "")
			b.Host.RunList = slices.Clone(list)
			b.Host.Run = clitest.Finished(pluginapi.UserMessage{Text: "hello"}, pluginapi.UserMessage{Text: "of a subagent", Nested: pluginapi.Nested{ParentID: "t"}}, pluginapi.UserMessage{Text: "and more"})
			args := strings.Fields(test.args)
			if asJSON {
				args = append(args, "--json")
			}
			code := b.Main(args...)
			var got []string
			if asJSON {
				var found []promptJSON
				json.Unmarshal([]byte(b.Out.String()), &found)
				for _, p := range found {
					got = append(got, strings.TrimSuffix(p.Prompt, "\x1b[31m"))
				}
			} else {
				for line := range strings.Lines(b.Out.String()) {
					if fields := strings.Fields(line); fields[0] != "RUN" {
						got = append(got, strings.Join(fields[3:], " "))
					}
				}
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(test.want))
			if code != test.code || !slices.Equal(got, want) || !asJSON && !strings.Contains(b.Err.String(), test.err) {
				t.Errorf("%q: code %d, %q, want %q: %s", args, code, got, want, b.Err)
			}
		}
	}
}
