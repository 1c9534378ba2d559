package adaptertest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/adaptertest"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// mini is an adapter with one of each thing. fault names a way to break the
// contract; the tests below want each to be found.
type mini struct{ fault string }

// calls is the state that no adapter should have.
var calls atomic.Int64

func (m mini) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id: "mini", DisplayName: "Mini", Summary: "an agent for tests", Program: "mini",
		Capabilities: &pluginapi.Capabilities{Model: true, MultiTurn: true, Approvals: true},
		AuthProbes:   []*pluginapi.AuthProbe{{Method: "api_key", Env: "MINI_KEY"}},
		CallerEnv:    []string{"MINI_*"},
		EventTypes: []string{"session_start", "turn_start", "turn_end", "text_delta", "message_stop", "token_usage", "cost",
			"tool_call_start", "tool_result", "approval_request", "auth_error"},
	}
	switch m.fault {
	case "unclaimed":
		agent.EventTypes = agent.EventTypes[:2]
	case "capability":
		agent.Capabilities.ReadSession = true
	case "caller_env":
		agent.CallerEnv = nil
	}
	return agent
}

func (m mini) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	if req.Options.Prompt == "" {
		return nil, pluginapi.Errorf(pluginapi.CodeValidation, "mini needs a prompt")
	}
	plan := &pluginapi.Plan{
		Program: req.Program, Args: []string{"--json"}, Stdin: pb.Stdin_STDIN_OPEN, SessionId: req.SessionId,
		EnvSet: map[string]string{"MINI_KEY": req.Caller.Env["MINI_KEY"]},
	}
	if req.Options.Model != "" {
		plan.Args = append(plan.Args, "--model", req.Options.Model)
	}
	switch m.fault {
	case "impure":
		plan.Args = append(plan.Args, fmt.Sprint(calls.Add(1)))
	case "secret":
		plan.Args = append(plan.Args, "--key="+req.Caller.Env["MINI_KEY"])
	case "relative":
		plan.Cwd = "here"
	}
	return plan, nil
}

func (m mini) Converse(*pluginapi.Start) (sdk.Conversation, error) {
	return &conversation{fault: m.fault}, nil
}

type conversation struct {
	fault   string
	turn    int
	asked   string
	outcome *pluginapi.Outcome
}

func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_PROMPT:
		out.TurnStarted()
		out.Event(pluginapi.TurnStart{TurnIndex: c.turn})
		out.Write(append(pluginapi.AppendString([]byte(`{"prompt":`), string(in.Data)), '}', '\n'))
	case pb.InputKind_INPUT_APPROVE:
		if in.Id != c.asked {
			return nil // somebody answers what nobody asked
		}
		out.Write([]byte(`{"allow":` + string(pluginapi.AppendString(nil, in.Id)) + "}\n"))
	case pb.InputKind_INPUT_END:
		out.CloseStdin()
	case pb.InputKind_INPUT_STDERR:
		out.Log("stderr", in.Data)
	case pb.InputKind_INPUT_EXIT:
		if c.outcome == nil || in.Exit.Asked {
			c.outcome = sdk.ExitOutcome(in.Exit)
		}
		out.Outcome(c.outcome)
	case pb.InputKind_INPUT_STDOUT:
		if c.line(in.Data, out) && c.fault != "swallows" {
			out.Log("stdout", in.Data)
		}
	}
	return nil
}

// line reports whether it does not know the line.
func (c *conversation) line(line []byte, out *sdk.Out) (unknown bool) {
	switch {
	case c.fault == "panics" && line[0] == '[':
		panic("no objects, please")
	case c.fault == "global":
		out.Event(pluginapi.TextDelta{Delta: fmt.Sprint(calls.Add(1))})
	case c.fault == "prefix" && !strings.HasPrefix(string(line), `{"type":`):
		return true
	}
	doc, err := jsonl.ParseObject(line)
	if err != nil {
		if c.fault == "gives up" {
			c.outcome = &pluginapi.Outcome{Code: string(pluginapi.CodeParse)}
		}
		return true
	}
	defer doc.Release()
	switch doc.Text("type") {
	case "hello":
		out.Event(pluginapi.SessionStart{SessionID: doc.Text("session")})
	case "text":
		out.Event(pluginapi.TextDelta{Delta: doc.Text("text")})
	case "message":
		out.Event(pluginapi.MessageStop{Text: doc.Text("text")})
	case "tool":
		out.Event(pluginapi.ToolCallStart{ToolCallID: doc.Text("id"), ToolName: "x"})
		if doc.Bool("ask") {
			c.asked = fmt.Sprint(out.N())
			out.Event(pluginapi.ApprovalRequest{InteractionID: c.asked, Action: "x", RiskLevel: "low"})
		}
	case "tool done":
		out.Event(pluginapi.ToolResult{ToolCallID: doc.Text("id"), ToolName: "x", Output: doc.Raw("out")})
	case "done":
		out.Event(pluginapi.TokenUsage{InputTokens: doc.IntPtr("in"), OutputTokens: doc.IntPtr("out")})
		if usd, ok := doc.Float("usd"); ok {
			out.Event(pluginapi.Cost{Cost: pluginapi.Money{USD: usd}})
		}
		out.Event(pluginapi.TurnEnd{TurnIndex: c.turn})
		c.turn++
		c.outcome = &pluginapi.Outcome{}
		out.Idle()
	case "error":
		out.Event(pluginapi.ErrorEvent{Code: pluginapi.CodeRateLimited, Message: doc.Text("message")})
		ms, _ := doc.Int("wait")
		c.outcome = &pluginapi.Outcome{Code: string(pluginapi.CodeRateLimited), Retryable: true, RetryAfterMs: uint64(ms)}
	default:
		return true
	}
	return false
}

func TestMini(t *testing.T) { adaptertest.Run(t, adaptertest.Config{Adapter: mini{}}) }

func FuzzMini(f *testing.F) { adaptertest.Fuzz(f, mini{}) }

// plain is an agent whose output is text for people.
type plain struct{ mini }

func (plain) Describe() *pluginapi.Agent {
	return &pluginapi.Agent{Id: "plain", DisplayName: "Plain", Summary: "prints", EventTypes: []string{"text_delta"}}
}

// Converse hides mini's, so that plain is of the simple form.
func (plain) Converse() {}

func (plain) Parse(line []byte) []pluginapi.Payload {
	return []pluginapi.Payload{pluginapi.TextDelta{Delta: string(line) + "\n"}}
}

func TestPlain(t *testing.T) {
	adaptertest.Run(t, adaptertest.Config{Adapter: plain{}, Dir: "testdata/plain", Plain: true})
}

// TestFault runs in a child process, where it is to fail.
func TestFault(t *testing.T) {
	fault := os.Getenv("AMUX_TEST_FAULT")
	if fault == "" {
		t.Skip("run by TestFaultsAreFound")
	}
	adaptertest.Run(t, adaptertest.Config{Adapter: mini{fault}, Dir: os.Getenv("AMUX_TEST_DIR")})
}

func fault(t *testing.T, fault, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestFault$", "-test.short"}, args...)...)
	cmd.Env = append(os.Environ(), "AMUX_TEST_FAULT="+fault, "AMUX_TEST_DIR="+dir)
	text, _ := cmd.CombinedOutput()
	return string(text)
}

func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"unclaimed":  "event_types of Describe does not claim it",
		"capability": "capability read_session",
		"caller_env": "caller_env does not ask for MINI_KEY",
		"impure":     "gave two plans",
		"secret":     "the value of MINI_KEY is in the plan's args",
		"relative":   "is not absolute",
		"swallows":   "gave no log event",
		"panics":     "no objects, please",
		"global":     "outputs depend on more than the inputs",
		"prefix":     "TestFault/talk/grease/unknown_field_first",
		"gives up":   "the outcome changed",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if text := fault(t, name, "testdata"); !strings.Contains(text, want) || !strings.Contains(text, "FAIL") {
				t.Errorf("want %q in\n%.3000s", want, text)
			}
		})
	}
}

// write makes a directory with one transcript.
func write(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.txtar"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

const hello = "-- stdout --\n{\"type\":\"hello\",\"session\":\"s\"}\n"

func TestBadFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ content, want string }{
		"no expectation":      {hello, "expect.json: the section is missing"},
		"expects nothing":     {hello + "-- expect.json --\n{}\n", "it expects nothing"},
		"misspelt":            {hello + "-- expect.json --\n{\"outcom\":\"\"}\n", "unknown field"},
		"wrong outcome":       {hello + "-- expect.json --\n{\"outcome\":\"AUTH_ERROR\"}\n", "expect.json: outcome"},
		"wrong writes":        {hello + "-- expect.json --\n{\"writes\":[{}]}\n", "writes: want 1 lines"},
		"no golden":           {hello + "-- expect.json --\n{\"outcome\":\"\"}\n", "section events.ndjson differs"},
		"unknown input":       {"-- inputs --\nfly\n-- expect.json --\n{}\n", `unknown input "fly"`},
		"lines not placed":    {hello + "-- inputs --\nstdout 0\n-- expect.json --\n{}\n", "are not placed"},
		"nothing":             {"-- expect.json --\n{}\n", "neither a section inputs nor stdout"},
		"plan unexpected":     {"-- request.json --\n{\"options\":{\"prompt\":\"p\"}}\n", "expect.json: the section is missing"},
		"plan is not refused": {"-- request.json --\n{\"options\":{\"prompt\":\"p\"}}\n-- expect.json --\n{\"error_code\":\"X\"}\n", "got a plan"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if text := fault(t, "none", write(t, test.content)); !strings.Contains(text, test.want) {
				t.Errorf("want %q in\n%s", test.want, text)
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	dir := write(t, "comment\n"+hello+"-- expect.json --\n{\"outcome\":\"\",\"session_id\":\"s\"}\n")
	if text := fault(t, "none", dir, "-update"); strings.Contains(text, "FAIL") {
		t.Fatal(text)
	}
	if text := fault(t, "none", dir); strings.Contains(text, "FAIL") {
		t.Error(text)
	}
	content, _ := os.ReadFile(filepath.Join(dir, "x.txtar"))
	for _, want := range []string{"comment\n", `{"type":"session_start","session_id":"s","resumed":false}`, `{"output":"outcome","code":""`} {
		if !strings.Contains(string(content), want) {
			t.Errorf("%q is not in\n%s", want, content)
		}
	}
	// What a person wrote is not rewritten.
	wrong := write(t, hello+"-- expect.json --\n{\"session_id\":\"other\"}\n")
	if text := fault(t, "none", wrong, "-update"); !strings.Contains(text, "FAIL") {
		t.Error("-update made a wrong expectation pass")
	}
}
