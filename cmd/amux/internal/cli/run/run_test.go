package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

func newBench(t *testing.T, stdin string) *clitest.Bench {
	return clitest.New(t, stdin, clitest.Commands(NewCmd, NewCmdAttach))
}

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
		{name: "one for others is named", agents: []host.AgentInfo{clitest.Agent("alpha", nil), clitest.Agent("far", func(a *host.AgentInfo) { a.Description.Configurable = true })},
			args: []string{"hi there"}, agent: "alpha", prompt: "hi there"},
		{name: "configured", settings: `agent = "beta"`, args: []string{"hi there"}, agent: "beta", prompt: "hi there"},
		{name: "one word that is no agent", args: []string{"hello"}, agent: "alpha", prompt: "hello"},
		{name: "unknown agent", args: []string{"gamma", "hi"}, code: 3, says: "hint: did you mean x?"},
		{name: "no prompt", args: []string{"alpha"}, code: 2, says: "no prompt"},
		{name: "blank prompt", stdin: " \n", args: []string{"alpha"}, code: 2, says: "no prompt"},
		{name: "prompt without quotes", args: []string{"alpha", "say", "hi"}, code: 2, says: "got 3 arguments; quote the prompt"},
		{name: "retry without an equals sign", args: []string{"alpha", "hi", "--retry", "3"}, code: 2, says: "--retry=3"},
		{name: "no UTF-8", stdin: "a\xff", args: []string{"alpha"}, code: 2, says: "UTF-8"},
		{name: "settings are wrong", settings: "x = 1", args: []string{"alpha", "hi"}, code: 7, says: "config.toml:1: unknown key x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, test.stdin)
			if test.agents != nil {
				b.Host.AgentList = test.agents
			}
			if test.settings != "" {
				b.Settings(test.settings)
			}
			code := b.Main(append([]string{"run"}, test.args...)...)
			if code != test.code || !strings.Contains(b.Err.String(), test.says) {
				t.Fatalf("code %d, stderr %s", code, b.Err)
			}
			if test.code != 0 {
				if b.Host.Started {
					t.Error("something was started")
				}
				return
			}
			if b.Host.Spec.Agent != test.agent || b.Host.Spec.Prompt != test.prompt {
				t.Errorf("agent %q, prompt %q", b.Host.Spec.Agent, b.Host.Spec.Prompt)
			}
			if !b.Host.Closed {
				t.Error("the host was not closed")
			}
		})
	}
}

func TestDefaultAgentIsNotGuessed(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.Host.AgentList = append(b.Host.AgentList, clitest.Agent("omega", nil))
	if code := b.Main("run", "hello world"); code != 2 || !strings.Contains(b.Err.String(), "several are installed and signed in: alpha, omega") {
		t.Errorf("code %d, %s", code, b.Err)
	}
	b = newBench(t, "")
	b.Host.AgentList = []host.AgentInfo{
		clitest.Agent("a", func(a *host.AgentInfo) { a.Installed = false }), clitest.Agent("b", func(a *host.AgentInfo) { a.SignedIn = false }),
		clitest.Agent("c", func(a *host.AgentInfo) { a.PlatformOK = false }), clitest.Agent("d", func(a *host.AgentInfo) { a.Err = errors.New("x") }),
		clitest.Agent("demo", func(a *host.AgentInfo) { a.Description.Demo = true }),
	}
	want := "a (not installed), b (not signed in), c (not for this platform), d (plugin broken)"
	if code := b.Main("run", "hello world"); code != 2 || !strings.Contains(b.Err.String(), want) {
		t.Errorf("code %d, %s", code, b.Err)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	file, mcp := filepath.Join(b.Config, "a.txt"), filepath.Join(b.Config, "mcp.json")
	os.Mkdir(filepath.Join(b.Config, "sub"), 0o700)
	os.WriteFile(file, nil, 0o600)
	os.WriteFile(mcp, []byte(`{"mcpServers":{"z":{"command":"zz","args":["1"],"env":{"K":"V"}},"w":{"url":"https://w/","headers":{"H":"v"}}}}`), 0o600)
	code := b.Main("run", "alpha", "hi", "--model", "m", "--effort", "max", "--system", "s", "--system-mode", "replace",
		"--resume", "r", "--fork", "--cwd", "sub", "--add-dir", "x", "--add-dir", "/y", "--env", "A=1=2", "--env", "B=",
		"--file", "a.txt", "--mcp", `t=run 'a b' c`, "--mcp", "u=https://u/mcp", "--mcp", "mcp.json", "--json-schema", `{"type":"object"}`,
		"--approve", "rules", "--allow", "Bash(git *)", "--deny", "Write", "--max-turns", "3", "--max-budget", "2.5", "--max-tokens", "1000",
		"--timeout", "1h", "--idle-timeout", "0s", "--retry=5", "--grace", "2s", "--name", "n", "--run-id", clitest.RunID, "--tag", "t1", "--tag", "t2",
		"--driver", "d", "--no-record", "--no-changes", "--plugin", "acme=./acme")
	if code != 0 {
		t.Fatalf("code %d: %s", code, b.Err)
	}
	want := host.RunSpec{
		Permissions: host.Permissions{Unattended: true, Approve: "rules", AllowRules: []string{"Bash(git *)"}, DenyRules: []string{"Write"}},
		Agent:       "alpha", Prompt: "hi", ModelOptions: host.ModelOptions{Model: "m", Effort: "max", SystemPrompt: "s", SystemMode: "replace"}, AgentSession: host.AgentSession{Resume: "r", Fork: true},
		Workspace: host.Workspace{Cwd: filepath.Join(b.Config, "sub"), AddDirs: []string{filepath.Join(b.Config, "x"), "/y"}, Env: map[string]string{"A": "1=2", "B": ""}},
		Files:     []string{file}, JSONSchema: `{"type":"object"}`,
		MCPServers: []host.MCPServer{
			{Name: "t", Transport: "stdio", Command: "run", Args: []string{"a b", "c"}},
			{Name: "u", Transport: "http", URL: "https://u/mcp"},
			{Name: "w", Transport: "http", URL: "https://w/", Headers: map[string]string{"H": "v"}},
			{Name: "z", Transport: "stdio", Command: "zz", Args: []string{"1"}, Env: map[string]string{"K": "V"}},
		},
		Limits: host.Limits{MaxTurns: 3, MaxCost: 2.5, MaxTokens: 1000, Timeout: time.Hour, IdleTimeout: -1, Grace: 2 * time.Second}, Retry: &host.Retry{MaxAttempts: 5}, Name: "n", RunID: clitest.RunID,
		Tags: []string{"t1", "t2"}, Driver: "d", NoRecord: true,
	}
	if diff := cmp.Diff(want, b.Host.Spec, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if got := b.Host.Opts.Plugins["acme"]; got != filepath.Join(b.Config, "acme") {
		t.Errorf("override %q", got)
	}
	if !strings.Contains(b.Err.String(), "warning: plugin acme is overridden by") {
		t.Errorf("no warning: %s", b.Err)
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
		{"all", []string{"alpha", "hi"}, nil, host.RunSpec{Agent: "alpha", ModelOptions: host.ModelOptions{Model: "opus", Effort: "low", SystemPrompt: "be brief"}, Tags: []string{"c"}, Limits: host.Limits{Timeout: time.Minute, Grace: 3 * time.Second}, Retry: &host.Retry{MaxAttempts: 4}, Permissions: host.Permissions{Approve: "auto", Unattended: true}}},
		{"model is not for another agent", []string{"beta", "hi"}, nil, host.RunSpec{Agent: "beta", ModelOptions: host.ModelOptions{SystemPrompt: "be brief"}, Tags: []string{"c"}, Limits: host.Limits{Timeout: time.Minute, Grace: 3 * time.Second}, Retry: &host.Retry{MaxAttempts: 4}, Permissions: host.Permissions{Approve: "auto", Unattended: true}}},
		{"flags win", []string{"alpha", "hi", "--model", "m", "--system", "s", "--tag", "f", "--timeout", "2m", "--grace", "1s", "--retry=0", "--approve", "deny"}, []string{"AGENT_MUX_GRACE_PERIOD_MS=5"},
			host.RunSpec{Agent: "alpha", ModelOptions: host.ModelOptions{Model: "m", Effort: "low", SystemPrompt: "s"}, Tags: []string{"c", "f"}, Limits: host.Limits{Timeout: 2 * time.Minute, Grace: time.Second}, Permissions: host.Permissions{Approve: "deny", Unattended: true}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			b.Settings(config)
			b.Env = test.env
			if code := b.Main(append([]string{"run"}, test.args...)...); code != 0 {
				t.Fatalf("code %d: %s", code, b.Err)
			}
			test.want.Prompt, test.want.Cwd, test.want.Changes = "hi", b.Config, true
			if diff := cmp.Diff(test.want, b.Host.Spec, cmpopts.EquateEmpty()); diff != "" {
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
				b.Settings(test.settings)
			}
			if test.terminal {
				b.Terminal(strings.NewReader(""))
			}
			if code := b.Main(append([]string{"run", "alpha", "hi"}, test.args...)...); code != 0 {
				t.Fatalf("code %d: %s", code, b.Err)
			}
			if b.Host.Spec.Approve != test.want || strings.Contains(b.Err.String(), "warning:") {
				t.Errorf("got %s, stderr %s", b.Host.Spec.Approve, b.Err)
			}
		})
	}
}

func ended(r *clitest.Run) { r.Finish() }

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, info := range code.All {
		b := newBench(t, "")
		b.Host.Run.Result = host.Result{RunID: clitest.RunID, State: "failed", Err: pluginapi.Errorf(info.Code, "it broke")}
		if code := b.Main("run", "alpha", "hi"); code != info.Exit || !strings.Contains(b.Err.String(), "amux: error: it broke\n") {
			t.Errorf("%s: exit %d, want %d: %s", info.Code, code, info.Exit, b.Err)
		}
		if strings.Contains(b.Err.String(), "RUN") || strings.Contains(b.Err.String(), "AGENT") {
			t.Errorf("%s: the hint names nobody: %s", info.Code, b.Err)
		}
	}
	b := newBench(t, "")
	b.Host.Refuse = pluginapi.Errorf(pluginapi.CodeCapability, "cannot \x1b[31mred")
	if code := b.Main("run", "alpha", "hi"); code != 6 || b.Err.String() != "amux: error: cannot red\namux: hint: see: amux agents info AGENT\n" {
		t.Errorf("code %d: %q", code, b.Err)
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	canceled := host.Result{RunID: clitest.RunID, State: "canceled", Err: pluginapi.Errorf(pluginapi.CodeAborted, "the run was stopped")}
	for _, test := range []struct {
		name    string
		signals []os.Signal
		on      map[string]func(*clitest.Run)
		fail    map[string]error
		result  host.Result
		code    int
		calls   []string
	}{
		{name: "interrupt", signals: []os.Signal{os.Interrupt}, on: map[string]func(*clitest.Run){"interrupt": ended},
			result: canceled, code: 130, calls: []string{"interrupt"}},
		{name: "twice stops", signals: []os.Signal{os.Interrupt, os.Interrupt}, on: map[string]func(*clitest.Run){"stop": ended},
			result: canceled, code: 130, calls: []string{"interrupt", "stop"}},
		{name: "three times kills", signals: []os.Signal{os.Interrupt, os.Interrupt, os.Interrupt}, on: map[string]func(*clitest.Run){"kill": ended},
			result: canceled, code: 130, calls: []string{"interrupt", "stop", "kill"}},
		{name: "cannot be interrupted", signals: []os.Signal{os.Interrupt}, on: map[string]func(*clitest.Run){"stop": ended},
			fail: map[string]error{"interrupt": pluginapi.CodeCapability}, result: canceled, code: 130, calls: []string{"interrupt", "stop"}},
		{name: "TERM", signals: []os.Signal{syscall.SIGTERM}, on: map[string]func(*clitest.Run){"stop": ended},
			result: canceled, code: 143, calls: []string{"stop"}},
		{name: "QUIT", signals: []os.Signal{syscall.SIGQUIT}, on: map[string]func(*clitest.Run){"stop": ended},
			result: canceled, code: 131, calls: []string{"stop"}},
		{name: "HUP", signals: []os.Signal{syscall.SIGHUP}, on: map[string]func(*clitest.Run){"stop": ended},
			result: canceled, code: 129, calls: []string{"stop"}},
		{name: "finished all the same", signals: []os.Signal{os.Interrupt}, on: map[string]func(*clitest.Run){"interrupt": ended},
			result: host.Result{RunID: clitest.RunID, State: "completed"}, code: 0, calls: []string{"interrupt"}},
		{name: "stopped from elsewhere", result: canceled, code: 13},
	} {
		for _, mode := range []string{"", "--json"} {
			t.Run(test.name+mode, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, "")
				b.Host.Run = clitest.NewRun()
				b.Host.Run.On, b.Host.Run.Result = test.on, test.result
				if test.fail != nil {
					b.Host.Run.Fail = test.fail
				}
				if len(test.signals) == 0 {
					b.Host.Run.Finish()
				}
				b.Host.Run.Watched = func() {
					for _, sig := range test.signals {
						b.Signals <- sig
					}
				}
				args := []string{"run", "alpha", "hi", "--approve", "deny"}
				if mode != "" {
					args = append(args, mode)
				}
				code := b.Main(args...)
				calls := b.Host.Run.Calls()
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
		b.Host.Run = clitest.Finished(events...)
		b.Host.Run.Result.Text = "the \x1b[31manswer"
		args := []string{"run", "alpha", "hi", "--approve", "deny"}
		if test.flag != "" {
			args = append(args, test.flag)
		}
		if code := b.Main(args...); code != 0 || b.Out.String() != test.out || b.Err.String() != test.err {
			t.Errorf("%s: code %d, stdout %q, stderr %q", test.flag, code, b.Out, b.Err)
		}
	}
	b := newBench(t, "")
	b.Host.Run = clitest.Finished(events...)
	code := b.Main("run", "alpha", "hi", "--approve", "deny", "--json")
	if lines := strings.Split(strings.TrimSpace(b.Out.String()), "\n"); code != 0 || len(lines) != len(events) || b.Err.String() != "" {
		t.Errorf("code %d, %d lines, stderr %s", code, len(lines), b.Err)
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestReaderGone(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"--json", "--json=false"} {
		b := newBench(t, "")
		b.IO.Out = closedPipe{}
		b.Host.Run = clitest.NewRun(pluginapi.TextDelta{Delta: "x"})
		b.Host.Run.On["stop"] = ended
		if code := b.Main("run", "alpha", "hi", mode); code != 141 || !cmp.Equal(b.Host.Run.Calls(), []string{"stop"}) {
			t.Errorf("%s: code %d, calls %v", mode, code, b.Host.Run.Calls())
		}
	}
}

func TestAskInPlace(t *testing.T) {
	t.Parallel()
	approval := func(id string) pluginapi.Payload {
		return pluginapi.ApprovalRequest{InteractionID: id, Action: "Bash", ToolName: "Bash", Input: []byte(`{"command":"make"}`)}
	}
	edit := pluginapi.ApprovalRequest{InteractionID: "a", ToolName: "Tool", Input: []byte(`{"target":"make"}`)}
	question := pluginapi.InputRequired{InteractionID: "q", Question: "Several", Questions: []pluginapi.Question{
		{Question: "Colour?", Options: []string{"red", "blue"}}, {Question: "Sizes?", Options: []string{"s", "m", "l"}, Multiple: true}}}
	for _, test := range []struct {
		name, typed string
		events      []pluginapi.Payload
		calls       []string
		shows       string
	}{
		{"yes", "y\n", []pluginapi.Payload{approval("a")}, []string{"approve a"}, "$ make"},
		{"no, with a reason", "n not now\n", []pluginapi.Payload{approval("a")}, []string{"deny a: not now"}, ""},
		{"nonsense first", "what\nYES\n", []pluginapi.Payload{approval("a")}, []string{"approve a"}, "y, n, a, e or d"},
		{"always", "a\ny\n", []pluginapi.Payload{approval("a"), approval("b")}, []string{"allow a Bash(make *)", "approve b"}, "a allows for the rest of the run: Bash(make *)"},
		{"the keys first", "?\ny\n", []pluginapi.Payload{approval("a")}, []string{"approve a"}, "for the rest of the run what this covers: Bash(make *)"},
		{"details first", "d\ny\n", []pluginapi.Payload{approval("a")}, []string{"approve a"}, "in /work"},
		{"changed", "e\n", []pluginapi.Payload{approval("a")}, []string{`approve a{"command":"make test"}`}, "[e]dit"},
		{"changed as JSON", "e\n", []pluginapi.Payload{edit}, []string{"approve a{\n  \"target\": \"make test\"\n}\n"}, ""},
		{"unchanged", "e\nn\n", []pluginapi.Payload{pluginapi.ApprovalRequest{InteractionID: "a", Input: []byte(`{"command":"ls"}`)}}, []string{"deny a: "}, "unchanged or empty"},
		{"not to be changed", "e\nn\n", []pluginapi.Payload{pluginapi.ApprovalRequest{InteractionID: "a", Detail: "x"}}, []string{"deny a: "}, "cannot be changed"},
		{"two after each other", "y\nn\n", []pluginapi.Payload{approval("a"), approval("b")}, []string{"approve a", "deny b: "}, ""},
		{"end of file", "", []pluginapi.Payload{approval("a"), approval("b")}, []string{"deny a: nobody can answer", "deny b: nobody can answer"}, ""},
		{"text", "blue\n", []pluginapi.Payload{pluginapi.InputRequired{InteractionID: "q", Question: "Colour?"}}, []string{"answer q: blue"}, "? Colour?"},
		{"several questions", "2\n1, l\n", []pluginapi.Payload{question}, []string{`answer q: {"Colour?":"blue","Sizes?":"s, l"}`}, "2 blue"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			typist, stdin := clitest.NewTypist(test.typed)
			b.Terminal(stdin)
			b.IO.Err, b.Err = typist, typist
			b.Env = []string{"PAGER=cat", "EDITOR=sed -i 's/make/make test/'"}
			b.Host.Run = clitest.NewRun(test.events...)
			b.Host.Run.Editable = true
			b.Host.Run.Rules = []string{"Bash(make *)"}
			answered := func(r *clitest.Run) {
				if len(r.Calls()) == len(test.calls) {
					r.Finish()
				}
			}
			b.Host.Run.On = map[string]func(*clitest.Run){"approve": answered, "deny": answered, "answer": answered, "allow": answered}
			code := b.Main("run", "alpha", "hi")
			if code != 0 || !cmp.Equal(b.Host.Run.Calls(), test.calls) || !strings.Contains(b.Err.String(), test.shows) {
				t.Errorf("code %d, calls %q, stderr %s", code, b.Host.Run.Calls(), b.Err)
			}
		})
	}
}

// A person's commands are amux's own, the rest is for the agent; what a pipe holds is all
// for the agent.
func TestOwnCommands(t *testing.T) {
	t.Parallel()
	const typed = "/help\n/model fast\n/model\n/cost\n/approve auto\n/compact\n//help\n/stop\n"
	for _, test := range []struct {
		name     string
		terminal bool
		calls    []string
		says     []string
	}{
		{"terminal", true, []string{"model fast", "approve mode auto", "send /compact", "send /help", "stop"},
			[]string{"/diff          show", "Commands of alpha:\n  /init /memory //cost\n", "error: model: agent alpha has one model", "usage: /model NAME", "1 turn · 12 tokens in · $0.5000"}},
		{"pipe", false, []string{"send /help", "send /model fast", "send /model", "send /cost", "send /approve auto", "send /compact", "send //help", "send /stop", "end"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, typed)
			if test.terminal {
				typist, stdin := clitest.NewTypist(typed)
				b.Terminal(stdin)
				b.IO.Err, b.Err = typist, typist
			}
			twelve := int64(12)
			b.Host.Run = clitest.NewRun(pluginapi.SkillLoaded{SkillName: "init"}, pluginapi.SkillLoaded{SkillName: "/memory show", Source: "command"},
				pluginapi.SkillLoaded{SkillName: "memory list"}, pluginapi.SkillLoaded{SkillName: "cost"},
				pluginapi.TokenUsage{InputTokens: &twelve}, pluginapi.Cost{Cost: pluginapi.Money{USD: 0.5}}, pluginapi.TurnEnd{})
			b.Host.Run.Fail["model"] = pluginapi.Errorf(pluginapi.CodeCapability, "agent alpha has one model")
			b.Host.Run.On = map[string]func(*clitest.Run){"stop": ended, "end": ended, "send": func(r *clitest.Run) { r.Emit(pluginapi.TurnEnd{}) }}
			b.Main("run", "-i", "alpha", "hi")
			if diff := cmp.Diff(test.calls, b.Host.Run.Calls()); diff != "" {
				t.Error(diff)
			}
			for _, want := range test.says {
				if !strings.Contains(b.Err.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, b.Err)
				}
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
	b.Terminal(silent)
	b.Host.Run = clitest.Finished(
		pluginapi.ApprovalRequest{InteractionID: "a", Action: "Bash"}, pluginapi.TextDelta{Delta: "held back"},
		pluginapi.ApprovalGranted{InteractionID: "a"}, pluginapi.MessageStop{Text: "held back"},
		pluginapi.ApprovalRequest{InteractionID: "b", Action: "Bash"}, pluginapi.RunEnd{State: "completed"})
	code := b.Main("run", "alpha", "hi")
	if code != 0 || b.Out.String() != "held back\n" || len(b.Host.Run.Calls()) > 0 ||
		!strings.Contains(b.Err.String(), "answered elsewhere") || !strings.Contains(b.Err.String(), "0 turns") {
		t.Errorf("code %d, stdout %q, calls %q, stderr %s", code, b.Out, b.Host.Run.Calls(), b.Err)
	}
}

// TestQuestionWithoutPeople: nobody waits ten minutes for an answer that cannot
// come.
func TestQuestionWithoutPeople(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.Host.Run = clitest.NewRun(pluginapi.InputRequired{InteractionID: "q", Question: "?"})
	b.Host.Run.On["deny"] = ended
	if b.Main("run", "alpha", "hi"); !cmp.Equal(b.Host.Run.Calls(), []string{"deny q: nobody can answer"}) {
		t.Errorf("calls %q", b.Host.Run.Calls())
	}
}

func TestInputNDJSON(t *testing.T) {
	t.Parallel()
	b := newBench(t, strings.Join([]string{
		`{"type":"prompt","text":"one","future":1}`, ``, `garbage`, `{"type":"nope"}`, `{"text":"x"}`,
		`{"type":"approve","interaction_id":"a","updated_input":{"x":1}}`, `{"type":"approve"}`,
		`{"type":"deny","interaction_id":"b","reason":"no"}`, `{"type":"answer","interaction_id":"c","text":"t"}`,
		`{"type":"interrupt"}`, `{"type":"set_model","model":"m"}`, `{"type":"set_model"}`, `{"type":"set_approve","approve":"auto"}`,
	}, "\r\n"))
	b.Host.Run = clitest.NewRun(pluginapi.ApprovalRequest{InteractionID: "a"}, pluginapi.ApprovalRequest{InteractionID: "late"},
		pluginapi.InputRequired{InteractionID: "q"})
	b.Host.Run.Fail["interrupt"] = pluginapi.Errorf(pluginapi.CodeCapability, "cannot")
	b.Host.Run.On["deny"] = func(r *clitest.Run) {
		if calls := r.Calls(); strings.HasPrefix(calls[len(calls)-1], "deny q") {
			r.Finish()
		}
	}
	if code := b.Main("run", "alpha", "--json", "--input", "ndjson"); code != 0 {
		t.Errorf("code %d", code)
	}
	want := []string{"send one", `approve a{"x":1}`, "approve ", "deny b: no", "answer c: t", "interrupt", "model m", "approve mode auto", "end",
		"deny late: nobody can answer: stdin has ended", "deny q: nobody can answer: stdin has ended"}
	if diff := cmp.Diff(want, b.Host.Run.Calls()); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"stdin line 3: expected a JSON object", `stdin line 4: unknown type "nope"`, "stdin line 5: type is missing",
		"stdin line 10: cannot", "stdin line 12: set_model needs model"} {
		if !strings.Contains(b.Err.String(), text) {
			t.Errorf("no %q in %s", text, b.Err)
		}
	}
	if !b.Host.Spec.Conversation || b.Host.Spec.Prompt != "" {
		t.Errorf("spec %+v", b.Host.Spec)
	}
}

// With - the first line of stdin is the only prompt, and the rest answers.
func TestInputOfOnePrompt(t *testing.T) {
	t.Parallel()
	b := newBench(t, "\n"+`{"type":"prompt","text":"one"}`+"\n"+`{"type":"approve","interaction_id":"a"}`)
	b.Host.Run = clitest.NewRun(pluginapi.ApprovalRequest{InteractionID: "a"})
	b.Host.Run.On["approve"] = ended
	if code := b.Main("run", "alpha", "-", "--json", "--input", "ndjson"); code != 0 {
		t.Errorf("code %d: %s", code, b.Err)
	}
	if b.Host.Spec.Conversation || b.Host.Spec.Prompt != "one" || b.Host.Spec.Approve != host.ApproveAsk || b.Host.Spec.Unattended {
		t.Errorf("spec %+v", b.Host.Spec)
	}
	if calls := b.Host.Run.Calls(); !cmp.Equal(calls, []string{"approve a"}) {
		t.Errorf("calls %q", calls)
	}
	for stdin, says := range map[string]string{"": "stdin is empty", `{"type":"end"}`: "stdin line 1 is not the prompt", "hi": "expected a JSON object"} {
		b := newBench(t, stdin)
		if code := b.Main("run", "alpha", "-", "--json", "--input", "ndjson"); code != 2 || b.Host.Started || !strings.Contains(b.Err.String(), says) {
			t.Errorf("%q: code %d: %s", stdin, code, b.Err)
		}
	}
}

// With --monitor-stdin the end of stdin is the end of the run.
func TestMonitorStdin(t *testing.T) {
	t.Parallel()
	b := newBench(t, `{"type":"prompt","text":"one"}`)
	b.Host.Run = clitest.NewRun()
	b.Host.Run.On["stop"] = ended
	b.Main("run", "alpha", "--json", "--input", "ndjson", "--monitor-stdin")
	if calls := b.Host.Run.Calls(); !cmp.Equal(calls, []string{"send one", "stop"}) {
		t.Errorf("calls %q", calls)
	}
}

// A program is told by an event why no run was started; people by stderr, as ever.
func TestRefusalForPrograms(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.Host.Refuse = pluginapi.Errorf(pluginapi.CodeCapability, "alpha cannot do that").WithHint("do it yourself")
	code := b.Main("run", "alpha", "hi", "--json")
	want := `{"type":"error","code":"CAPABILITY_ERROR","message":"alpha cannot do that","hint":"do it yourself","recoverable":false}` + "\n"
	if code != 6 || b.Out.String() != want || b.Err.String() != "amux: error: alpha cannot do that\namux: hint: do it yourself\n" {
		t.Errorf("code %d, stdout %s, stderr %s", code, b.Out, b.Err)
	}
}

// The last line for a program says how the run ended, also where its record could not
// take the last event.
func TestLastLineForPrograms(t *testing.T) {
	t.Parallel()
	full := pluginapi.Errorf(pluginapi.CodeDiskFull, "the disk is full").WithHint("free some space")
	told := `{"type":"error","run_id":"` + clitest.RunID + `","code":"DISK_FULL","message":"the disk is full","hint":"free some space","recoverable":false}` + "\n"
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
		b.Host.Run = clitest.Finished(test.events...)
		b.Host.Run.Result = host.Result{RunID: clitest.RunID, State: "failed", Err: full}
		code := b.Main("run", "alpha", "hi", "--json")
		var want strings.Builder
		for _, e := range b.Host.Run.Log {
			fmt.Fprintf(&want, "%s\n", e.Raw)
		}
		want.WriteString(test.want)
		if code != full.Code.Info().Exit || b.Out.String() != want.String() || !strings.Contains(b.Err.String(), "error: the disk is full\n") {
			t.Errorf("%s: code %d, stdout\n%s\nstderr %s", test.name, code, b.Out, b.Err)
		}
	}
}

// TestSignalDuringStart: a start that takes long is given up.
func TestSignalDuringStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.Host.Starting = func(done <-chan struct{}) error {
		b.Signals <- syscall.SIGTERM
		<-done
		return pluginapi.Errorf(pluginapi.CodeAborted, "given up")
	}
	if code := b.Main("run", "alpha", "hi"); code != 143 || b.Err.String() != "" {
		t.Errorf("code %d, %s", code, b.Err)
	}
}

// A run that has ended makes room; one without a record has nothing to keep.
func TestRunRetains(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{"run alpha hi": {"retain"}, "run alpha hi --no-record": nil} {
		b := newBench(t, "")
		if code := b.Main(strings.Fields(args)...); code != 0 || !cmp.Equal(b.Host.Asked, want) {
			t.Errorf("%s: code %d, asked %q", args, code, b.Host.Asked)
		}
	}
}

// Who says --approve ask without a terminal answers from another one.
func TestAnswersFromElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.Host.Run = clitest.Finished(pluginapi.ApprovalRequest{InteractionID: "a", Action: "write"}, pluginapi.InputRequired{InteractionID: "q", Question: "which?"}, pluginapi.RunEnd{State: "completed"})
	code := b.Main("run", "alpha", "hi", "--approve", "ask")
	if code != 0 || len(b.Host.Run.Calls()) != 0 || b.Host.Spec.Unattended ||
		!strings.Contains(b.Err.String(), "waits: amux approve DGXP98 a") || !strings.Contains(b.Err.String(), "waits: amux answer DGXP98 q") {
		t.Errorf("code %d, calls %q, stderr %s", code, b.Host.Run.Calls(), b.Err)
	}
}

// What is piped in beside a prompt follows it; nothing else reads stdin.
func TestPipedText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, stdin  string
		piped, ready bool
		args         []string
		prompt, says string
	}{
		{"pipe", "diff\n", true, true, []string{"run", "alpha", "review"}, "review\n\ndiff\n", "adding 5 bytes of stdin to the prompt"},
		{"no agent", "diff", true, true, []string{"run", "review it"}, "review it\n\ndiff", "4 bytes of stdin"},
		{"empty", "", true, true, []string{"run", "alpha", "review"}, "review", ""},
		{"idle", "never", true, false, []string{"run", "alpha", "review"}, "review", "no data on stdin for 3s"},
		{"terminal or device", "typed", false, true, []string{"run", "alpha", "review"}, "review", ""},
		{"quiet", "diff", true, true, []string{"run", "alpha", "review", "--quiet"}, "review\n\ndiff", ""},
		{"conversation", `{"type":"end"}`, true, true, []string{"run", "alpha", "review", "--json", "--input", "ndjson"}, "review", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, test.stdin)
			b.IO.InPiped = test.piped
			asked := time.Duration(0)
			b.IO.WaitIn = func(d time.Duration) bool { asked = d; return test.ready }
			if code := b.Main(test.args...); code != 0 {
				t.Fatalf("code %d: %s", code, b.Err)
			}
			if b.Host.Spec.Prompt != test.prompt {
				t.Errorf("prompt %q, want %q", b.Host.Spec.Prompt, test.prompt)
			}
			if said := strings.Contains(b.Err.String(), "stdin"); said != (test.says != "") || !strings.Contains(b.Err.String(), test.says) {
				t.Errorf("said %q, want %q", b.Err, test.says)
			}
			if asked > app.PipedWait {
				t.Errorf("it would wait %v", asked)
			}
		})
	}
}

func TestPipedTextThatIsNoText(t *testing.T) {
	t.Parallel()
	b := newBench(t, "\xff\xfe")
	b.IO.InPiped = true
	if code := b.Main("run", "alpha", "review"); code != 2 || !strings.Contains(b.Err.String(), "UTF-8") {
		t.Errorf("code %d: %s", code, b.Err)
	}
}

func TestFoldersToWorkIn(t *testing.T) {
	t.Parallel()
	for _, detach := range []string{"--debug=false", "--detach"} {
		for flag, want := range map[string]string{
			"none":     `invalid --cwd "none": it does not exist`,
			"file":     `invalid --cwd "file": it is not a folder`,
			"file/sub": `invalid --cwd "file/sub": it cannot be used: not a directory`,
		} {
			b := newBench(t, "")
			if err := os.WriteFile(filepath.Join(b.Config, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			code := b.Main("run", "alpha", "hi", detach, "--cwd", flag)
			if code != 2 || !strings.Contains(b.Err.String(), want) && !app.IsWindows || b.Host.Spec.Agent != "" {
				t.Errorf("%s %s: code %d: %s", detach, flag, code, b.Err)
			}
		}
		b := newBench(t, "")
		b.Gone = true
		want := "the current folder was removed"
		for _, args := range [][]string{{}, {"--cwd", "sub"}} {
			if code := b.Main(append([]string{"run", "alpha", "hi", detach}, args...)...); code != 2 || !strings.Contains(b.Err.String(), want) {
				t.Errorf("%s %v: code %d: %s", detach, args, code, b.Err)
			}
		}
	}
}

// What amux attach asks of the run, and what it refuses before it asks.
func TestAttachAsks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args  string
		stdin string
		code  int
		calls []string
		err   string
	}{
		{"attach RUN", "", 0, []string{"lease false", "give back"}, ""},
		{"attach RUN --steal", "", 0, []string{"lease true", "give back"}, ""},
		{"attach RUN --read-only", "", 0, nil, ""},
		{"attach RUN --read-only --steal", "", 2, nil, "cannot be combined with --steal"},
		{"attach RUN --detach-key x", "", 2, nil, "expected a control character"},
	} {
		b := newBench(t, test.stdin)
		code := b.Main(strings.Fields(strings.Replace(test.args, "RUN", clitest.RunID, 1))...)
		if code != test.code || !cmp.Equal(b.Host.Run.Calls(), test.calls) || !strings.Contains(b.Err.String(), test.err) || test.err == "" && b.Err.String() != "" {
			t.Errorf("%s: code %d, calls %q, stderr %s", test.args, code, b.Host.Run.Calls(), b.Err)
		}
	}
}
