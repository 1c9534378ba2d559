package control

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

func newBench(t *testing.T, stdin string) *clitest.Bench {
	return clitest.New(t, stdin, clitest.Commands(NewCmdSend, NewCmdApprove, NewCmdDeny, NewCmdAnswer, NewCmdInterrupt, NewCmdPause, NewCmdResume, NewCmdStop, NewCmdKill))
}

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
		{"send RUN --end --keys Enter", "", 2, nil, "cannot be combined with --end"},
		{"send RUN --keys C-c =text Enter", "", 0, []string{`keys "\x03text\r"`}, ""},
		{"send RUN --keys Entr", "", 2, nil, `unknown key "Entr"`},
		{"send RUN --keys", "", 2, nil, "needs a key"},
		{"send RUN --keys Up", "", 6, nil, "has no terminal"},
		{"approve RUN", "", 0, []string{"approve "}, ""},
		{"approve RUN id", "", 0, []string{"approve id"}, ""},
		{`approve RUN id --input {"a":1}`, "", 0, []string{`approve id{"a":1}`}, ""},
		{"approve RUN id more", "", 2, nil, `there is no run "id"`},
		{"approve RUN RUN", "", 0, []string{"approve ", "approve "}, ""},
		{"approve", "", 2, nil, "no run waits for an answer"},
		{"stop", "", 2, nil, "needs a run"},
		{"pause RUN --tag x", "", 2, nil, "both runs and a selection"},
		{"pause RUN gone RUN", "", 2, []string{"pause", "pause"}, `there is no run "gone"`},
		{"deny RUN", "", 0, []string{"deny : "}, ""},
		{"deny RUN id --reason no", "", 0, []string{"deny id: no"}, ""},
		{"answer RUN blue", "", 0, []string{"answer : blue"}, ""},
		{"answer RUN id blue", "", 0, []string{"answer id: blue"}, ""},
		{"answer RUN", "", 2, nil, "needs an answer"},
		{"kill RUN --signal INT", "", 0, []string{"signal INT"}, ""},
		{"pause gone", "", 2, nil, `there is no run "gone"`},
	} {
		b := newBench(t, test.stdin)
		code := b.Main(strings.Fields(strings.ReplaceAll(test.args, "RUN", clitest.RunID))...)
		if code != test.code || !cmp.Equal(b.Host.Run.Calls(), test.calls) || !strings.Contains(b.Err.String(), test.err) || test.err == "" && b.Err.String() != "" {
			t.Errorf("%s: code %d, calls %q, stderr %s", test.args, code, b.Host.Run.Calls(), b.Err)
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

// What is selected, and what the person at the terminal picks.
func TestSelectedRuns(t *testing.T) {
	t.Parallel()
	live := func(id, agent, state string, tags ...string) host.RunInfo {
		return host.RunInfo{ID: id, Agent: agent, State: state, Tags: tags, Prompt: "do it"}
	}
	ended := live("E", "alpha", "failed", "x")
	ended.End = &pluginapi.RunEnd{}
	list := []host.RunInfo{live("A", "alpha", "running", "x"), live("B", "beta", "waiting", "x", "y"), live("C", "alpha", "waiting"), ended}
	for _, test := range []struct {
		args, typed string
		code        int
		asked, err  string
	}{
		{"stop --tag x", "", 0, "A B", ""},
		{"stop --tag x --tag y", "", 0, "B", ""},
		{"stop --agent alpha --filter state=waiting", "", 0, "C", ""},
		{"stop --filter state=waiting --filter state=running --filter tag=x", "", 0, "A B", ""},
		{"stop --tag none", "", 0, "", "no run matches"},
		{"stop --filter state=failed", "", 0, "", "no run matches"},
		{"stop --filter stat=failed", "", 2, "", "did you mean state=failed?"},
		{"stop --filter state=bad", "", 2, "", `there is no state "bad"`},
		{"stop --filter state", "", 2, "", "expected KEY=VALUE"},
		{"stop", "2\n", 0, "B", "2)  B  beta"},
		{"stop", "nightly\n", 0, "nightly", ""},
		{"stop", "\n", 2, "", "no run was chosen"},
		{"stop", "", 2, "", "no run was chosen"},
		{"stop", "4\n", 2, "", "there is no run 4 in the list"},
	} {
		b := newBench(t, "")
		if b.Host.RunList = slices.Clone(list); test.args == "stop" {
			b.Terminal(strings.NewReader(test.typed))
		}
		code := b.Main(strings.Fields(test.args)...)
		var asked []string
		for _, call := range b.Host.Asked {
			if id, ok := strings.CutPrefix(call, "cancel "); ok {
				asked = append(asked, strings.TrimSuffix(id, " false"))
			}
		}
		if code != test.code || strings.Join(asked, " ") != test.asked || !strings.Contains(b.Err.String(), test.err) {
			t.Errorf("%s (%q): code %d, asked %q, stderr %s", test.args, test.typed, code, asked, b.Err)
		}
	}
}

// Without a run it is the only open question that the command can answer; of several the
// person at the terminal picks one.
func TestTheOnlyQuestion(t *testing.T) {
	t.Parallel()
	approval := func(id string) pluginapi.Payload {
		return pluginapi.ApprovalRequest{InteractionID: id, Action: "Bash", Detail: "make " + id}
	}
	question := pluginapi.InputRequired{InteractionID: "q", Question: "Colour?"}
	for _, test := range []struct {
		args, typed string
		asked       []pluginapi.Payload
		code        int
		calls       []string
		says        string
	}{
		{"approve", "", []pluginapi.Payload{approval("a"), question}, 0, []string{"approve a"}, "amux: approved: nightly DGXP98 · alpha: Bash make a\n"},
		{"deny --reason no", "", []pluginapi.Payload{approval("a")}, 0, []string{"deny a: no"}, "amux: denied: nightly"},
		{"deny", "", []pluginapi.Payload{question}, 0, []string{"deny q: "}, "Colour?"},
		{"answer blue", "", []pluginapi.Payload{approval("a"), question}, 0, []string{"answer q: blue"}, "amux: answered: nightly DGXP98 · alpha: Colour?\n"},
		{"answer blue", "", []pluginapi.Payload{approval("a")}, 2, nil, "no run waits for an answer"},
		{"approve", "", nil, 2, nil, "no run waits for an answer"},
		{"approve", "", []pluginapi.Payload{approval("a"), approval("b")}, 2, nil, "amux: nightly DGXP98 · alpha b: Bash make b\namux: error: 2 questions wait"},
		{"approve", "2\n", []pluginapi.Payload{approval("a"), approval("b")}, 0, []string{"approve b"}, "2)  DGXP98  nightly"},
		{"approve", "\n", []pluginapi.Payload{approval("a"), approval("b")}, 2, nil, "no question was chosen"},
		{"approve", "3\n", []pluginapi.Payload{approval("a"), approval("b")}, 2, nil, "choose a number from 1 to 2"},
	} {
		b := newBench(t, "")
		b.Host.Run = clitest.NewRun(test.asked...)
		b.Host.RunList = []host.RunInfo{{ID: "E", End: &pluginapi.RunEnd{}, State: "waiting"}, {ID: "R", State: "running"}, {ID: clitest.RunID, Name: "nightly", Agent: "alpha", State: "waiting"}}
		if test.typed != "" {
			b.Terminal(strings.NewReader(test.typed))
		}
		code := b.Main(strings.Fields(test.args)...)
		if code != test.code || !cmp.Equal(b.Host.Run.Calls(), test.calls) || !strings.Contains(b.Err.String(), test.says) {
			t.Errorf("%s (%q): code %d, calls %q, stderr %s", test.args, test.typed, code, b.Host.Run.Calls(), b.Err)
		}
	}
}
