package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

func TestAgentAndPrompt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, settings, stdin string
		args                  []string
		agents                []host.AgentInfo
		agent, prompt         string
		code                  int
		says                  string
	}{
		{name: "both", args: []string{"beta", "hi"}, agent: "beta", prompt: "hi"},
		{name: "prompt on stdin, byte for byte", stdin: "hi\n\n", args: []string{"beta"}, agent: "beta", prompt: "hi\n\n"},
		{name: "dash", stdin: "hi", args: []string{"beta", "-"}, agent: "beta", prompt: "hi"},
		{name: "only one is ready", args: []string{"hi there"}, agent: "alpha", prompt: "hi there"},
		{name: "only one is ready, stdin", stdin: "hi", args: []string{"-"}, agent: "alpha", prompt: "hi"},
		{name: "one for others is named", agents: []host.AgentInfo{agent("alpha", nil), agent("far", func(a *host.AgentInfo) { a.Description.Configurable = true })},
			args: []string{"hi there"}, agent: "alpha", prompt: "hi there"},
		{name: "configured", settings: `agent = "beta"`, args: []string{"hi there"}, agent: "beta", prompt: "hi there"},
		{name: "one word that is no agent", args: []string{"hello"}, agent: "alpha", prompt: "hello"},
		{name: "unknown agent", args: []string{"gamma", "hi"}, code: 3, says: "hint: did you mean x?"},
		{name: "no prompt", args: []string{"alpha"}, code: 2, says: "there is no prompt"},
		{name: "blank prompt", stdin: " \n", args: []string{"alpha"}, code: 2, says: "there is no prompt"},
		{name: "prompt without quotes", args: []string{"alpha", "say", "hi"}, code: 2, says: "in 2 pieces"},
		{name: "no UTF-8", stdin: "a\xff", args: []string{"alpha"}, code: 2, says: "UTF-8"},
		{name: "settings are wrong", settings: "x = 1", args: []string{"alpha", "hi"}, code: 7, says: "config.toml:1: unknown key x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, test.stdin)
			if test.agents != nil {
				b.host.agents = test.agents
			}
			if test.settings != "" {
				b.settings(test.settings)
			}
			code := b.main(append([]string{"run"}, test.args...)...)
			if code != test.code || !strings.Contains(b.err.String(), test.says) {
				t.Fatalf("code %d, stderr %s", code, b.err)
			}
			if test.code != 0 {
				if b.host.started {
					t.Error("something was started")
				}
				return
			}
			if b.host.spec.Agent != test.agent || b.host.spec.Prompt != test.prompt {
				t.Errorf("agent %q, prompt %q", b.host.spec.Agent, b.host.spec.Prompt)
			}
			if !b.host.closed {
				t.Error("the host was not closed")
			}
		})
	}
}

func TestDefaultAgentIsNotGuessed(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.host.agents = append(b.host.agents, agent("omega", nil))
	if code := b.main("run", "hello world"); code != 2 || !strings.Contains(b.err.String(), "Several are installed and signed in: alpha, omega") {
		t.Errorf("code %d, %s", code, b.err)
	}
	b = newBench(t, "")
	b.host.agents = []host.AgentInfo{
		agent("a", func(a *host.AgentInfo) { a.Installed = false }), agent("b", func(a *host.AgentInfo) { a.SignedIn = false }),
		agent("c", func(a *host.AgentInfo) { a.PlatformOK = false }), agent("d", func(a *host.AgentInfo) { a.Err = errors.New("x") }),
		agent("demo", func(a *host.AgentInfo) { a.Description.Demo = true }),
	}
	want := "a (not installed), b (not signed in), c (not for this platform), d (plugin broken)"
	if code := b.main("run", "hello world"); code != 2 || !strings.Contains(b.err.String(), want) {
		t.Errorf("code %d, %s", code, b.err)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	file, mcp := filepath.Join(b.config, "a.txt"), filepath.Join(b.config, "mcp.json")
	os.Mkdir(filepath.Join(b.config, "sub"), 0o700)
	os.WriteFile(file, nil, 0o600)
	os.WriteFile(mcp, []byte(`{"mcpServers":{"z":{"command":"zz","args":["1"],"env":{"K":"V"}},"w":{"url":"https://w/","headers":{"H":"v"}}}}`), 0o600)
	code := b.main("run", "alpha", "hi", "--model", "m", "--effort", "max", "--system", "s", "--system-mode", "replace",
		"--resume", "r", "--fork", "--cwd", "sub", "--add-dir", "x", "--add-dir", "/y", "--env", "A=1=2", "--env", "B=",
		"--file", "a.txt", "--mcp", `t=run 'a b' c`, "--mcp", "u=https://u/mcp", "--mcp", "mcp.json", "--json-schema", `{"type":"object"}`,
		"--approve", "rules", "--allow", "Bash(git *)", "--deny", "Write", "--max-turns", "3", "--max-budget", "1.5",
		"--timeout", "1h", "--idle-timeout", "0s", "--retry=5", "--grace", "2s", "--name", "n", "--run-id", runID, "--tag", "t1", "--tag", "t2",
		"--driver", "d", "--no-record", "--plugin", "acme=./acme")
	if code != 0 {
		t.Fatalf("code %d: %s", code, b.err)
	}
	want := host.RunSpec{
		Unattended: true,
		Agent:      "alpha", Prompt: "hi", Model: "m", Effort: "max", SystemPrompt: "s", SystemMode: "replace", Resume: "r", Fork: true,
		Cwd: filepath.Join(b.config, "sub"), AddDirs: []string{filepath.Join(b.config, "x"), "/y"}, Env: map[string]string{"A": "1=2", "B": ""},
		Files: []string{file}, JSONSchema: `{"type":"object"}`, Approve: "rules", AllowRules: []string{"Bash(git *)"}, DenyRules: []string{"Write"},
		MCPServers: []host.MCPServer{
			{Name: "t", Transport: "stdio", Command: "run", Args: []string{"a b", "c"}},
			{Name: "u", Transport: "http", URL: "https://u/mcp"},
			{Name: "w", Transport: "http", URL: "https://w/", Headers: map[string]string{"H": "v"}},
			{Name: "z", Transport: "stdio", Command: "zz", Args: []string{"1"}, Env: map[string]string{"K": "V"}},
		},
		MaxTurns: 3, MaxBudget: 1.5, Timeout: time.Hour, IdleTimeout: -1, Grace: 2 * time.Second, Retry: &host.Retry{MaxAttempts: 5}, Name: "n", RunID: runID,
		Tags: []string{"t1", "t2"}, Driver: "d", NoRecord: true,
	}
	if diff := cmp.Diff(want, b.host.spec, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if got := b.host.opts.Plugins["acme"]; got != filepath.Join(b.config, "acme") {
		t.Errorf("override %q", got)
	}
	if !strings.Contains(b.err.String(), "warning: plugin acme is overridden by") {
		t.Errorf("no warning: %s", b.err)
	}
}

func TestSettingsAndFlags(t *testing.T) {
	t.Parallel()
	config := "agent = 'alpha'\nmodel = 'opus'\neffort = 'low'\nsystem_prompt = 'be brief'\ntags = ['c']\ntimeout = '1m'\ngrace = '3s'\nretry = 4\napprove = 'auto'"
	for _, test := range []struct {
		name string
		args []string
		env  []string
		want host.RunSpec
	}{
		{"all", []string{"alpha", "hi"}, nil, host.RunSpec{Agent: "alpha", Model: "opus", Effort: "low", SystemPrompt: "be brief", Tags: []string{"c"}, Timeout: time.Minute, Grace: 3 * time.Second, Retry: &host.Retry{MaxAttempts: 4}, Approve: "auto", Unattended: true}},
		{"model is not for another agent", []string{"beta", "hi"}, nil, host.RunSpec{Agent: "beta", SystemPrompt: "be brief", Tags: []string{"c"}, Timeout: time.Minute, Grace: 3 * time.Second, Retry: &host.Retry{MaxAttempts: 4}, Approve: "auto", Unattended: true}},
		{"flags win", []string{"alpha", "hi", "--model", "m", "--system", "s", "--tag", "f", "--timeout", "2m", "--grace", "1s", "--retry=0", "--approve", "deny"}, []string{"AGENT_MUX_GRACE_PERIOD_MS=5"},
			host.RunSpec{Agent: "alpha", Model: "m", Effort: "low", SystemPrompt: "s", Tags: []string{"c", "f"}, Timeout: 2 * time.Minute, Grace: time.Second, Approve: "deny", Unattended: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			b.settings(config)
			b.env = test.env
			if code := b.main(append([]string{"run"}, test.args...)...); code != 0 {
				t.Fatalf("code %d: %s", code, b.err)
			}
			test.want.Prompt, test.want.Cwd = "hi", b.config
			if diff := cmp.Diff(test.want, b.host.spec, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApproveMode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, settings string
		terminal       bool
		args           []string
		want           host.ApproveMode
	}{
		{name: "nobody there", want: "deny"},
		{name: "terminal", terminal: true, want: "ask"},
		{name: "terminal, but JSON", terminal: true, args: []string{"--json"}, want: "deny"},
		{name: "program that answers", args: []string{"--json", "--input", "ndjson"}, want: "ask"},
		{name: "said", args: []string{"--approve", "auto"}, want: "auto"},
		{name: "rules", args: []string{"--allow", "Read"}, want: "rules"},
		{name: "rules on a terminal: what they leave open is asked", terminal: true, args: []string{"--allow", "Read"}, want: "ask"},
		{name: "configured", settings: "approve = 'deny'", terminal: true, want: "deny"},
		{name: "ask configured, nobody there", settings: "approve = 'ask'", want: "deny"},
		{name: "ask said, nobody there", args: []string{"--approve", "ask"}, want: "ask"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			if test.settings != "" {
				b.settings(test.settings)
			}
			if test.terminal {
				b.terminal(strings.NewReader(""))
			}
			if code := b.main(append([]string{"run", "alpha", "hi"}, test.args...)...); code != 0 {
				t.Fatalf("code %d: %s", code, b.err)
			}
			if b.host.spec.Approve != test.want || strings.Contains(b.err.String(), "warning:") {
				t.Errorf("got %s, stderr %s", b.host.spec.Approve, b.err)
			}
		})
	}
}

func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"rnu", 2, `error: amux has no command "rnu"` + "\namux: hint: did you mean amux run?"},
		{"agents lits", 2, "did you mean amux agents list?"},
		{"agents", 2, "needs a command: auth, info, install, list, models, plugins, update"},
		{"agents info", 2, "amux agents info needs an agent"},
		{"agents list x", 2, `takes no argument "x"`},
		{"logs", 2, "amux logs needs a run"},
		{"run alpha hi --timeout 600", 2, "--timeout 600: want a duration with a unit"},
		{"run alpha hi --max-turns x", 2, "--max-turns x: want a whole number, 0 or more"},
		{"run alpha hi --max-turns -1", 2, "--max-turns -1: want a whole number, 0 or more"},
		{"run alpha hi --timeout 99999999999h", 2, "--timeout 99999999999h: the longest duration there is"},
		{"run alpha hi --max-budget NaN", 2, "--max-budget NaN: want dollars"},
		{"run alpha hi -d --max-budget Inf", 2, "--max-budget +Inf: want dollars"},
		{"run alpha hi --max-budget x", 2, "--max-budget x: want a number"},
		{"run alpha hi --modle x", 2, "amux run has no flag --modle\namux: hint: did you mean --model?"},
		{"run alpha hi -z", 2, "has no flag -z"},
		{"run alpha hi --approve", 2, "--approve needs a value"},
		{"run alpha hi --json --quiet", 2, "exclude each other"},
		{"run alpha hi --input ndjson", 2, "goes with --json"},
		{"run alpha hi --json --input xml", 2, "--input xml: want ndjson"},
		{"run alpha hi --json --monitor-stdin", 2, "--monitor-stdin goes with --input ndjson"},
		{"run alpha hi --fork", 2, "--fork needs a session"},
		{"run alpha hi --resume a --continue", 2, "exclude each other"},
		{"run alpha hi --env SECRET", 2, "--env: want NAME=VALUE"},
		{"run alpha hi --file nope", 2, "there is no such file"},
		{"run alpha hi --mcp nope", 2, "there is no such file"},
		{"run alpha hi --mcp x=", 2, "want NAME=COMMAND"},
		{"run alpha hi --json-schema {x", 2, "--json-schema: it is not JSON: line 1"},
		{"run alpha hi --json-schema {\"type\":\"text\"}", 2, "--json-schema: it is not a valid JSON schema: /type"},
		{"run alpha hi --json-schema {\"$ref\":\"https://e.example/x\"}", 2, "/$ref: it refers to \"https://e.example/x\", and amux fetches no schema"},
		{"run alpha hi --approve rules", 2, "needs a rule"},
		{"run alpha hi --plugin acme", 2, "want NAME=PATH"},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			code := b.main(strings.Fields(test.args)...)
			stdout := ""
			if strings.Contains(test.args, "--json ") { // a program is told as well
				stdout = `{"type":"error","code":"VALIDATION_ERROR","message":"`
			}
			if code != test.code || !strings.Contains(b.err.String(), test.want) || !strings.HasPrefix(b.out.String(), stdout) || b.host.started ||
				strings.Count(b.out.String(), "\n") != strings.Count(stdout, "{") {
				t.Errorf("code %d, stdout %q, stderr %s", code, b.out, b.err)
			}
			if lines := strings.Count(b.err.String(), "\n"); lines > 2 {
				t.Errorf("%d lines: %s", lines, b.err)
			}
		})
	}
}

func ended(r *fakeRun) { r.end() }

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, info := range pluginapi.Codes {
		b := newBench(t, "")
		b.host.run.result = host.Result{RunID: runID, State: "failed", Err: pluginapi.Errorf(info.Code, "it broke")}
		if code := b.main("run", "alpha", "hi"); code != info.Exit || !strings.Contains(b.err.String(), "amux: error: it broke\n") {
			t.Errorf("%s: exit %d, want %d: %s", info.Code, code, info.Exit, b.err)
		}
		if strings.Contains(b.err.String(), "RUN") || strings.Contains(b.err.String(), "AGENT") {
			t.Errorf("%s: the hint names nobody: %s", info.Code, b.err)
		}
	}
	b := newBench(t, "")
	b.host.refuse = pluginapi.Errorf(pluginapi.CodeCapability, "cannot \x1b[31mred")
	if code := b.main("run", "alpha", "hi"); code != 6 || b.err.String() != "amux: error: cannot red\namux: hint: see: amux agents info AGENT\n" {
		t.Errorf("code %d: %q", code, b.err)
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	canceled := host.Result{RunID: runID, State: "canceled", Err: pluginapi.Errorf(pluginapi.CodeAborted, "the run was stopped")}
	for _, test := range []struct {
		name    string
		signals []os.Signal
		on      map[string]func(*fakeRun)
		fail    map[string]error
		result  host.Result
		code    int
		calls   []string
	}{
		{name: "interrupt", signals: []os.Signal{os.Interrupt}, on: map[string]func(*fakeRun){"interrupt": ended},
			result: canceled, code: 130, calls: []string{"interrupt"}},
		{name: "twice stops", signals: []os.Signal{os.Interrupt, os.Interrupt}, on: map[string]func(*fakeRun){"stop": ended},
			result: canceled, code: 130, calls: []string{"interrupt", "stop"}},
		{name: "three times kills", signals: []os.Signal{os.Interrupt, os.Interrupt, os.Interrupt}, on: map[string]func(*fakeRun){"kill": ended},
			result: canceled, code: 130, calls: []string{"interrupt", "stop", "kill"}},
		{name: "cannot be interrupted", signals: []os.Signal{os.Interrupt}, on: map[string]func(*fakeRun){"stop": ended},
			fail: map[string]error{"interrupt": pluginapi.CodeCapability}, result: canceled, code: 130, calls: []string{"interrupt", "stop"}},
		{name: "TERM", signals: []os.Signal{syscall.SIGTERM}, on: map[string]func(*fakeRun){"stop": ended},
			result: canceled, code: 143, calls: []string{"stop"}},
		{name: "QUIT", signals: []os.Signal{syscall.SIGQUIT}, on: map[string]func(*fakeRun){"stop": ended},
			result: canceled, code: 131, calls: []string{"stop"}},
		{name: "HUP", signals: []os.Signal{syscall.SIGHUP}, on: map[string]func(*fakeRun){"stop": ended},
			result: canceled, code: 129, calls: []string{"stop"}},
		{name: "finished all the same", signals: []os.Signal{os.Interrupt}, on: map[string]func(*fakeRun){"interrupt": ended},
			result: host.Result{RunID: runID, State: "completed"}, code: 0, calls: []string{"interrupt"}},
		{name: "stopped from elsewhere", result: canceled, code: 13},
	} {
		for _, mode := range []string{"", "--json"} {
			t.Run(test.name+mode, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, "")
				b.host.run = newFakeRun()
				b.host.run.on, b.host.run.result = test.on, test.result
				if test.fail != nil {
					b.host.run.fail = test.fail
				}
				if len(test.signals) == 0 {
					b.host.run.end()
				}
				b.host.run.watched = func() {
					for _, sig := range test.signals {
						b.signals <- sig
					}
				}
				args := []string{"run", "alpha", "hi", "--approve", "deny"}
				if mode != "" {
					args = append(args, mode)
				}
				code := b.main(args...)
				calls := b.host.run.all()
				if code != test.code || !cmp.Equal(calls, test.calls) {
					t.Errorf("code %d, calls %q", code, calls)
				}
			})
		}
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	events := []pluginapi.Payload{
		pluginapi.ThinkingDelta{Delta: "hm"}, pluginapi.ThinkingStop{Thinking: "hm"},
		pluginapi.TextDelta{Delta: "the \x1b[31manswer"}, pluginapi.MessageStop{Text: "the \x1b[31manswer"},
		pluginapi.RunEnd{State: "completed", Turns: 1},
	}
	for _, test := range []struct {
		flag, out string
		err       string
	}{
		{"", "the answer\n", "hm\n1 turn · 0.0s · run DGXP98\n"},
		{"--quiet", "the answer\n", ""},
	} {
		b := newBench(t, "")
		b.host.run = finished(events...)
		b.host.run.result.Text = "the \x1b[31manswer"
		args := []string{"run", "alpha", "hi", "--approve", "deny"}
		if test.flag != "" {
			args = append(args, test.flag)
		}
		if code := b.main(args...); code != 0 || b.out.String() != test.out || b.err.String() != test.err {
			t.Errorf("%s: code %d, stdout %q, stderr %q", test.flag, code, b.out, b.err)
		}
	}
	b := newBench(t, "")
	b.host.run = finished(events...)
	code := b.main("run", "alpha", "hi", "--approve", "deny", "--json")
	if lines := strings.Split(strings.TrimSpace(b.out.String()), "\n"); code != 0 || len(lines) != len(events) || b.err.String() != "" {
		t.Errorf("code %d, %d lines, stderr %s", code, len(lines), b.err)
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestReaderGone(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"--json", "--json=false"} {
		b := newBench(t, "")
		b.io.Out = closedPipe{}
		b.host.run = newFakeRun(pluginapi.TextDelta{Delta: "x"})
		b.host.run.on["stop"] = ended
		if code := b.main("run", "alpha", "hi", mode); code != 141 || !cmp.Equal(b.host.run.all(), []string{"stop"}) {
			t.Errorf("%s: code %d, calls %v", mode, code, b.host.run.all())
		}
	}
}

func TestAskInPlace(t *testing.T) {
	t.Parallel()
	approval := func(id string) pluginapi.Payload {
		return pluginapi.ApprovalRequest{InteractionID: id, Action: "Bash", ToolName: "Bash", Input: []byte(`{"command":"make"}`)}
	}
	question := pluginapi.InputRequired{InteractionID: "q", Question: "Several", Questions: []pluginapi.Question{
		{Question: "Colour?", Options: []string{"red", "blue"}}, {Question: "Sizes?", Options: []string{"s", "m", "l"}, Multiple: true}}}
	for _, test := range []struct {
		name, typed string
		events      []pluginapi.Payload
		calls       []string
		shows       string
	}{
		{"yes", "y\n", []pluginapi.Payload{approval("a")}, []string{"approve a"}, "command: make"},
		{"no, with a reason", "n not now\n", []pluginapi.Payload{approval("a")}, []string{"deny a: not now"}, ""},
		{"nonsense first", "what\nYES\n", []pluginapi.Payload{approval("a")}, []string{"approve a"}, "y, n or a"},
		{"all", "a\n", []pluginapi.Payload{approval("a"), approval("b")}, []string{"approve a", "approve b"}, ""},
		{"two after each other", "y\nn\n", []pluginapi.Payload{approval("a"), approval("b")}, []string{"approve a", "deny b: "}, ""},
		{"end of file", "", []pluginapi.Payload{approval("a"), approval("b")}, []string{"deny a: nobody can answer", "deny b: nobody can answer"}, ""},
		{"text", "blue\n", []pluginapi.Payload{pluginapi.InputRequired{InteractionID: "q", Question: "Colour?"}}, []string{"answer q: blue"}, "? Colour?"},
		{"several questions", "2\n1, l\n", []pluginapi.Payload{question}, []string{`answer q: {"Colour?":"blue","Sizes?":"s, l"}`}, "2 blue"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			typist, stdin := newTypist(test.typed)
			b.terminal(stdin)
			b.io.Err, b.err = typist, typist
			b.host.run = newFakeRun(test.events...)
			answered := func(r *fakeRun) {
				if len(r.all()) == len(test.calls) {
					r.end()
				}
			}
			b.host.run.on = map[string]func(*fakeRun){"approve": answered, "deny": answered, "answer": answered}
			code := b.main("run", "alpha", "hi")
			if code != 0 || !cmp.Equal(b.host.run.all(), test.calls) || !strings.Contains(b.err.String(), test.shows) {
				t.Errorf("code %d, calls %q, stderr %s", code, b.host.run.all(), b.err)
			}
		})
	}
}

// TestAnsweredElsewhere: a question that is open goes when its answer comes from
// somewhere else, and what was held back behind it is shown.
func TestAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	silent, _ := io.Pipe()
	b.terminal(silent)
	b.host.run = finished(
		pluginapi.ApprovalRequest{InteractionID: "a", Action: "Bash"}, pluginapi.TextDelta{Delta: "held back"},
		pluginapi.ApprovalGranted{InteractionID: "a"}, pluginapi.MessageStop{Text: "held back"},
		pluginapi.ApprovalRequest{InteractionID: "b", Action: "Bash"}, pluginapi.RunEnd{State: "completed"})
	code := b.main("run", "alpha", "hi")
	if code != 0 || b.out.String() != "held back\n" || len(b.host.run.all()) > 0 ||
		!strings.Contains(b.err.String(), "answered elsewhere") || !strings.Contains(b.err.String(), "0 turns") {
		t.Errorf("code %d, stdout %q, calls %q, stderr %s", code, b.out, b.host.run.all(), b.err)
	}
}

// TestQuestionWithoutPeople: nobody waits ten minutes for an answer that cannot
// come.
func TestQuestionWithoutPeople(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.host.run = newFakeRun(pluginapi.InputRequired{InteractionID: "q", Question: "?"})
	b.host.run.on["deny"] = ended
	if b.main("run", "alpha", "hi"); !cmp.Equal(b.host.run.all(), []string{"deny q: nobody can answer"}) {
		t.Errorf("calls %q", b.host.run.all())
	}
}

func TestInputNDJSON(t *testing.T) {
	t.Parallel()
	b := newBench(t, strings.Join([]string{
		`{"type":"prompt","text":"one","future":1}`, ``, `garbage`, `{"type":"nope"}`, `{"text":"x"}`,
		`{"type":"approve","interaction_id":"a","updated_input":{"x":1}}`, `{"type":"approve"}`,
		`{"type":"deny","interaction_id":"b","reason":"no"}`, `{"type":"answer","interaction_id":"c","text":"t"}`,
		`{"type":"interrupt"}`, `{"type":"set_model","model":"m"}`, `{"type":"set_model"}`,
	}, "\r\n"))
	b.host.run = newFakeRun(pluginapi.ApprovalRequest{InteractionID: "a"}, pluginapi.ApprovalRequest{InteractionID: "late"},
		pluginapi.InputRequired{InteractionID: "q"})
	b.host.run.fail["interrupt"] = pluginapi.Errorf(pluginapi.CodeCapability, "cannot")
	b.host.run.on["deny"] = func(r *fakeRun) {
		if calls := r.all(); strings.HasPrefix(calls[len(calls)-1], "deny q") {
			r.end()
		}
	}
	if code := b.main("run", "alpha", "--json", "--input", "ndjson"); code != 0 {
		t.Errorf("code %d", code)
	}
	want := []string{"send one", `approve a{"x":1}`, "approve ", "deny b: no", "answer c: t", "interrupt", "model m", "end",
		"deny late: nobody can answer: stdin has ended", "deny q: nobody can answer: stdin has ended"}
	if diff := cmp.Diff(want, b.host.run.all()); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"stdin line 3: want a JSON object", `stdin line 4: unknown type "nope"`, "stdin line 5: type is missing",
		"stdin line 10: cannot", "stdin line 12: set_model needs model"} {
		if !strings.Contains(b.err.String(), text) {
			t.Errorf("no %q in %s", text, b.err)
		}
	}
	if !b.host.spec.Conversation || b.host.spec.Prompt != "" {
		t.Errorf("spec %+v", b.host.spec)
	}
}

// With - the first line of stdin is the only prompt, and the rest answers.
func TestInputOfOnePrompt(t *testing.T) {
	t.Parallel()
	b := newBench(t, "\n"+`{"type":"prompt","text":"one"}`+"\n"+`{"type":"approve","interaction_id":"a"}`)
	b.host.run = newFakeRun(pluginapi.ApprovalRequest{InteractionID: "a"})
	b.host.run.on["approve"] = ended
	if code := b.main("run", "alpha", "-", "--json", "--input", "ndjson"); code != 0 {
		t.Errorf("code %d: %s", code, b.err)
	}
	if b.host.spec.Conversation || b.host.spec.Prompt != "one" || b.host.spec.Approve != host.ApproveAsk || b.host.spec.Unattended {
		t.Errorf("spec %+v", b.host.spec)
	}
	if calls := b.host.run.all(); !cmp.Equal(calls, []string{"approve a"}) {
		t.Errorf("calls %q", calls)
	}
	for stdin, says := range map[string]string{"": "stdin is empty", `{"type":"end"}`: "stdin line 1 is not the prompt", "hi": "want a JSON object"} {
		b := newBench(t, stdin)
		if code := b.main("run", "alpha", "-", "--json", "--input", "ndjson"); code != 2 || b.host.started || !strings.Contains(b.err.String(), says) {
			t.Errorf("%q: code %d: %s", stdin, code, b.err)
		}
	}
}

// With --monitor-stdin the end of stdin is the end of the run.
func TestMonitorStdin(t *testing.T) {
	t.Parallel()
	b := newBench(t, `{"type":"prompt","text":"one"}`)
	b.host.run = newFakeRun()
	b.host.run.on["stop"] = ended
	b.main("run", "alpha", "--json", "--input", "ndjson", "--monitor-stdin")
	if calls := b.host.run.all(); !cmp.Equal(calls, []string{"send one", "stop"}) {
		t.Errorf("calls %q", calls)
	}
}

// A program is told by an event why no run was started; people by stderr, as ever.
func TestRefusalForPrograms(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.host.refuse = pluginapi.Errorf(pluginapi.CodeCapability, "alpha cannot do that").WithHint("do it yourself")
	code := b.main("run", "alpha", "hi", "--json")
	want := `{"type":"error","code":"CAPABILITY_ERROR","message":"alpha cannot do that","hint":"do it yourself","recoverable":false}` + "\n"
	if code != 6 || b.out.String() != want || b.err.String() != "amux: error: alpha cannot do that\namux: hint: do it yourself\n" {
		t.Errorf("code %d, stdout %s, stderr %s", code, b.out, b.err)
	}
}

// The last line for a program says how the run ended, also where its record could not
// take the last event.
func TestLastLineForPrograms(t *testing.T) {
	t.Parallel()
	full := pluginapi.Errorf(pluginapi.CodeDiskFull, "the disk is full").WithHint("free some space")
	told := `{"type":"error","run_id":"` + runID + `","code":"DISK_FULL","message":"the disk is full","hint":"free some space","recoverable":false}` + "\n"
	for _, test := range []struct {
		name   string
		events []pluginapi.Payload
		want   string // the last line, if it is not of the run
	}{
		{"no event", nil, told},
		{"cut off", []pluginapi.Payload{pluginapi.TextDelta{Delta: "half"}}, told},
		{"with the end", []pluginapi.Payload{pluginapi.TextDelta{Delta: "half"}, pluginapi.RunEnd{State: "failed", Code: pluginapi.CodeDiskFull}}, ""},
	} {
		b := newBench(t, "")
		b.host.run = finished(test.events...)
		b.host.run.result = host.Result{RunID: runID, State: "failed", Err: full}
		code := b.main("run", "alpha", "hi", "--json")
		var want strings.Builder
		for _, e := range b.host.run.events {
			fmt.Fprintf(&want, "%s\n", e.Raw)
		}
		want.WriteString(test.want)
		if code != full.Code.Info().Exit || b.out.String() != want.String() || !strings.Contains(b.err.String(), "error: the disk is full\n") {
			t.Errorf("%s: code %d, stdout\n%s\nstderr %s", test.name, code, b.out, b.err)
		}
	}
	// However the lines are cut, the last whole one counts.
	const end, other = `{"type":"run_end","run_id":"R"}` + "\n", `{"type":"text_delta","delta":"{\"type\":\"run_end\","}` + "\n"
	for text, ended := range map[string]bool{
		"": false, end: true, other + end: true, end + other: false, other: false, strings.TrimSuffix(end, "\n"): false, end + end: true,
	} {
		for size := 1; size <= len(text)+1; size++ {
			var out strings.Builder
			e := &lastLine{w: &out}
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if _, err := io.WriteString(e, rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if out.String() != text || e.ended() != ended {
				t.Errorf("%q in pieces of %d: ended %v", text, size, e.ended())
			}
		}
	}
}

// Who follows a run whose record's disk is full is told so, and a program by the last
// line as well.
func TestFollowersOfARunOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"logs", "-f", "--json", runID}, {"logs", "-f", runID}, {"attach", runID}, {"wait", runID}} {
		b := newBench(t, "")
		r := finished(pluginapi.TextDelta{Delta: "half"})
		r.cut = pluginapi.Errorf(pluginapi.CodeHostGone, "the host has died")
		r.result = host.Result{RunID: runID, State: "lost", Err: pluginapi.AsError(r.cut)}
		b.host.run = r
		code := b.main(args...)
		if code != pluginapi.CodeDiskFull.Info().Exit || !strings.Contains(b.err.String(), "its last events are missing\namux: hint: free some space; then: amux logs ") {
			t.Errorf("%v: code %d, stderr %s", args, code, b.err)
		}
		last := b.out.String()[strings.LastIndexByte(strings.TrimSuffix(b.out.String(), "\n"), '\n')+1:]
		if strings.HasPrefix(last, `{"type":"error","run_id":"`+runID+`","code":"DISK_FULL",`) != slices.Contains(args, "--json") {
			t.Errorf("%v: the last line is %s", args, last)
		}
	}
}

// The agent is asked where it can be; else its adapter is.
func TestAgentsModels(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	if code := b.main("agents", "models", "alpha"); code != 0 || b.out.String() != "" || b.err.String() != "amux: alpha names no models, and its adapter knows of none; it may have some\n" {
		t.Errorf("code %d: %q %q", code, b.out, b.err)
	}
	b.host.agents[0].Description.Models = []*pluginapi.Model{{Id: "big", Aliases: []string{"b", "huge"}, IsDefault: true}}
	if code := b.main("agents", "models", "alpha"); code != 0 || b.out.String() != "MODEL  NAME  ALIASES\nbig    -     b, huge  default\n" {
		t.Errorf("code %d: %q", code, b.out)
	}
	b = newBench(t, "")
	b.host.models = []*pluginapi.Model{{Id: "a/one", DisplayName: "One"}, {Id: "b\x1b[31m"}}
	b.host.agents[0].Description.Capabilities.ListModels = true
	if code := b.main("agents", "models", "alpha"); code != 0 || b.out.String() != "MODEL  NAME  ALIASES\na/one  One   -\nb      -     -\n" {
		t.Errorf("code %d: %q", code, b.out)
	}
}

func TestAgentsPlugins(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.host.plugins = []*pluginapi.AgentPlugin{
		{Id: "hello@local", Version: "1.2.3", Source: "local", Path: "/p"}, {Id: "b\x1b[31m", Disabled: true},
	}
	if code := b.main("agents", "plugins", "alpha"); code != 0 || b.out.String() != ""+
		"PLUGIN       VERSION            SOURCE\nhello@local  1.2.3    enabled   local\nb            -        disabled  -\n" {
		t.Errorf("code %d: %q", code, b.out)
	}
	b = newBench(t, "")
	b.host.plugins = []*pluginapi.AgentPlugin{{Id: "hello", Version: "1.2.3", Source: "local", Path: "/p", Description: "d"}}
	var got []map[string]any
	if code := b.main("agents", "plugins", "alpha", "--json"); code != 0 || json.Unmarshal([]byte(b.out.String()), &got) != nil || !cmp.Equal(got,
		[]map[string]any{{"id": "hello", "version": "1.2.3", "source": "local", "path": "/p", "description": "d", "enabled": true}}) {
		t.Errorf("code %d: %s", code, b.out)
	}
	b = newBench(t, "")
	if code := b.main("agents", "plugins", "alpha"); code != 0 || b.out.String() != "" || b.err.String() != "amux: alpha has no plugins of its own\n" {
		t.Errorf("code %d: %q %q", code, b.out, b.err)
	}
	b = newBench(t, "")
	if code := b.main("agents", "plugins", "demo"); code != 6 || strings.Count(b.err.String(), "error: ") != 1 || !strings.Contains(b.err.String(), "agent demo: its adapter cannot list plugins") {
		t.Errorf("code %d: %q", code, b.err)
	}
}

// TestSignalDuringStart: a start that takes long is given up.
func TestSignalDuringStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.host.starting = func(done <-chan struct{}) error {
		b.signals <- syscall.SIGTERM
		<-done
		return pluginapi.Errorf(pluginapi.CodeAborted, "given up")
	}
	if code := b.main("run", "alpha", "hi"); code != 143 || b.err.String() != "" {
		t.Errorf("code %d, %s", code, b.err)
	}
}
