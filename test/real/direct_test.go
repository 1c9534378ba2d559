package real

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/test/fakemodel"
	"github.com/amux-dev/amux/internal/test/toolchain"
)

// claudeArgs is the two-way form that the adapter uses.
var claudeArgs = []string{
	"-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json",
	"--include-partial-messages", "--permission-prompt-tool", "stdio",
}

// direct is the real claude without amux. It proves what the fake model says
// and what the flags do, so that a failure of an amux scenario is amux's.
type direct struct {
	t      *testing.T
	model  *fakemodel.Server
	home   string
	cwd    string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer
	lines  []line
	deny   bool // answer requests for permission with no
}

// line is one line of claude's stdout.
type line struct {
	Type           string
	Subtype        string
	IsError        bool   `json:"is_error"`
	TerminalReason string `json:"terminal_reason"`
	APIErrorStatus int    `json:"api_error_status"`
	Result         string
	NumTurns       int    `json:"num_turns"`
	RequestID      string `json:"request_id"`
	SessionID      string `json:"session_id"`
	Parent         string `json:"parent_tool_use_id"`
	Delay          int    `json:"retry_delay_ms"`
	Structured     any    `json:"structured_output"`
	Usage          struct {
		Input      int `json:"input_tokens"`
		Output     int `json:"output_tokens"`
		CacheRead  int `json:"cache_read_input_tokens"`
		CacheWrite int `json:"cache_creation_input_tokens"`
	}
	Request struct {
		Subtype   string
		ToolName  string `json:"tool_name"`
		ToolUseID string `json:"tool_use_id"`
		Input     json.RawMessage
	}
	Event struct {
		Type  string
		Delta struct{ Type, Text, Thinking string }
	}
	Raw string `json:"-"`
}

func newModel(t *testing.T) *fakemodel.Server {
	t.Helper()
	model, err := fakemodel.Start(fakemodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return model
}

func startDirect(t *testing.T, model *fakemodel.Server, home string, args ...string) *direct {
	t.Helper()
	return startDirectIn(t, model, home, t.TempDir(), nil, args...)
}

func startDirectIn(t *testing.T, model *fakemodel.Server, home, cwd string, env []string, args ...string) *direct {
	t.Helper()
	program, err := tc.Program("claude")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scenarioTime)
	t.Cleanup(cancel)
	report.blame(t, "claude")
	d := &direct{t: t, model: model, home: home, cwd: cwd}
	d.cmd = exec.CommandContext(ctx, program, args...)
	d.cmd.Dir = d.cwd
	d.cmd.Env = append(toolchain.Env(home), toolchain.Anthropic(home, model.URL)...)
	d.cmd.Env = append(append(d.cmd.Env, "PATH="+tc.Path()), env...)
	d.cmd.Stderr = &d.stderr
	if d.stdin, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.stdout = bufio.NewReader(stdout)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *direct) send(value any) {
	d.t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.stdin.Write(append(data, '\n')); err != nil {
		d.t.Fatalf("write to claude: %v", err)
	}
}

func (d *direct) prompt(text string) {
	d.t.Helper()
	d.send(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": text}})
}

// until reads lines up to the first that match accepts; false if stdout ended.
func (d *direct) until(match func(line) bool) (line, bool) {
	d.t.Helper()
	for {
		raw, err := d.stdout.ReadString('\n')
		if err != nil {
			return line{}, false
		}
		l := line{Raw: strings.TrimSpace(raw)}
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			d.t.Fatalf("stdout is not JSON: %v\n%s", err, raw)
		}
		d.lines = append(d.lines, l)
		if l.Type == "control_request" && l.Request.Subtype == "can_use_tool" {
			d.answer(l)
		}
		if match(l) {
			return l, true
		}
	}
}

func (d *direct) answer(l line) {
	response := map[string]any{"behavior": "allow", "updatedInput": l.Request.Input}
	switch {
	case d.deny:
		response = map[string]any{"behavior": "deny", "message": "not here"}
	case l.Request.ToolName == "AskUserQuestion":
		var input map[string]any
		json.Unmarshal(l.Request.Input, &input)
		input["answers"] = map[string]any{"Which colour?": "Blue"}
		response["updatedInput"] = input
	}
	d.send(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "success", "request_id": l.RequestID, "response": response}})
}

func isResult(l line) bool { return l.Type == "result" }

func (d *direct) result() line {
	d.t.Helper()
	l, ok := d.until(isResult)
	if !ok {
		d.cmd.Wait()
		d.t.Fatalf("claude ended without a result; stderr:\n%s", d.stderr.String())
	}
	return l
}

// end closes stdin, reads the rest and returns the exit code.
func (d *direct) end() int {
	d.t.Helper()
	d.stdin.Close()
	d.until(func(line) bool { return false })
	err := d.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return 0
}

// raw joins what claude said, for searching.
func (d *direct) raw() string {
	var all []string
	for _, l := range d.lines {
		all = append(all, l.Raw)
	}
	return strings.Join(all, "\n")
}

func TestDirectScripts(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, prompt string
		args         []string
		deny         bool
		isError      bool
		reason       string // terminal_reason
		status       int
		text         string // result
		requests     int    // at the model; 0: any number
		contains     string // anywhere in stdout
	}{
		{name: "text", prompt: "[fm:text]", text: fakemodel.HelloText, requests: 1},
		{name: "deltas", prompt: "[fm:deltas=200]", requests: 1, contains: "word199 "},
		{name: "think", prompt: "[fm:think]", text: fakemodel.HelloText, requests: 1, contains: `"thinking_delta"`},
		{name: "slow", prompt: "[fm:slow=5]", requests: 1},
		{name: "bash", prompt: "[fm:bash]", text: fakemodel.DoneText, requests: 2, contains: `"stdout":"hi"`},
		{name: "text then bash", prompt: "[fm:text-then-bash]", text: fakemodel.DoneText, requests: 2},
		{name: "fail", prompt: "[fm:fail]", text: fakemodel.DoneText, requests: 2, contains: "Exit code 3"},
		{name: "edit", prompt: "[fm:edit=%CWD%/a.txt]", text: fakemodel.DoneText, requests: 4, contains: "goodbye"},
		{name: "parallel", prompt: "[fm:parallel]", text: fakemodel.DoneText, requests: 2, contains: `"stdout":"two"`},
		{name: "agent", prompt: "[fm:agent]", requests: 5, contains: `"parent_tool_use_id":"toolu_fm000001"`},
		{name: "touch", prompt: "[fm:touch=%CWD%/made]", text: fakemodel.DoneText, requests: 2, contains: "can_use_tool"},
		{name: "touch denied", prompt: "[fm:touch=%CWD%/made]", deny: true, text: fakemodel.DoneText, requests: 2, contains: "not here"},
		{name: "ask", prompt: "[fm:ask]", text: fakemodel.DoneText, requests: 2, contains: "Blue"},
		{name: "json", prompt: "[fm:json]", requests: 1, contains: `"structured_output":{"answer":"text"}`,
			args: []string{"--json-schema", `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`}},
		{name: "flaky", prompt: "[fm:flaky=1]", text: fakemodel.HelloText, requests: 2, contains: `"api_retry"`},
		{name: "401", prompt: "[fm:401]", isError: true, reason: "api_error", status: 401},
		{name: "403", prompt: "[fm:403]", isError: true, reason: "api_error", status: 403},
		{name: "429", prompt: "[fm:429=2]", isError: true, reason: "api_error", status: 429, contains: `"rate_limit"`},
		{name: "500", prompt: "[fm:500]", isError: true, reason: "api_error", status: 500},
		{name: "529", prompt: "[fm:529]", isError: true, reason: "api_error", status: 529},
		{name: "context", prompt: "[fm:context]", isError: true, reason: "prompt_too_long", status: 400},
		{name: "credit", prompt: "[fm:credit]", isError: true, reason: "api_error", status: 400},
		{name: "max turns", prompt: "[fm:loop]", args: []string{"--max-turns", "2"}, isError: true, reason: "max_turns", requests: 2},
		{name: "max budget", prompt: "[fm:loop]", args: []string{"--max-budget-usd", "0.001"}, isError: true, reason: "budget_exhausted"},
	}
	for _, c := range cases {
		if !selected(claude, "direct: "+c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			model := newModel(t)
			d := startDirect(t, model, t.TempDir(), append(claudeArgs, c.args...)...)
			d.deny = c.deny
			d.prompt(strings.ReplaceAll(c.prompt, "%CWD%", d.cwd))
			result := d.result()
			exit := d.end()
			reason := c.reason
			if reason == "" {
				reason = "completed"
			}
			if result.IsError != c.isError || result.TerminalReason != reason || result.APIErrorStatus != c.status {
				t.Errorf("result: is_error %v terminal_reason %q status %d", result.IsError, result.TerminalReason, result.APIErrorStatus)
			}
			if c.text != "" && result.Result != c.text {
				t.Errorf("result text %q, want %q", result.Result, c.text)
			}
			if want := map[bool]int{false: 0, true: 1}[c.isError]; exit != want {
				t.Errorf("exit %d, want %d", exit, want)
			}
			requests := model.ModelRequests()
			if c.requests != 0 && len(requests) != c.requests {
				t.Errorf("%d requests at the model, want %d", len(requests), c.requests)
			}
			if !strings.Contains(d.raw(), c.contains) {
				t.Errorf("nothing contains %q", c.contains)
			}
			if !c.isError && c.name != "agent" {
				n := 0
				for _, r := range requests {
					if r.Status == 200 {
						n++
					}
				}
				got, want := result.Usage, line{}.Usage
				want.Input, want.Output = n*fakemodel.InputTokens, n*fakemodel.OutputTokens
				want.CacheRead, want.CacheWrite = n*fakemodel.CacheReadTokens, n*fakemodel.CacheWriteTokens
				if got != want {
					t.Errorf("usage %+v, want %+v", got, want)
				}
			}
			for _, r := range model.Requests() {
				if r.Status == 404 {
					t.Errorf("unexpected request %s %s", r.Method, r.Path)
				}
			}
			if t.Failed() {
				t.Logf("stderr: %s\nstdout:\n%s", d.stderr.String(), shorten(d.raw()))
			}
		})
	}
}

// shorten keeps the heads of long lines.
func shorten(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if len(l) > 400 {
			lines[i] = l[:400] + "…"
		}
	}
	return strings.Join(lines, "\n")
}

func TestDirectTwoTurnsAndResume(t *testing.T) {
	t.Parallel()
	unlessSelected(t, claude, "direct: TwoTurnsAndResume")
	model, home := newModel(t), t.TempDir()
	d := startDirect(t, model, home, claudeArgs...)
	d.prompt("[fm:text] one")
	first := d.result()
	d.prompt("[fm:bash] two")
	second := d.result()
	if exit := d.end(); exit != 0 || first.Result != fakemodel.HelloText || second.Result != fakemodel.DoneText {
		t.Errorf("exit %d, results %q and %q", exit, first.Result, second.Result)
	}
	resumed := startDirect(t, model, home, append(claudeArgs, "--resume", first.SessionID)...)
	resumed.prompt("[fm:text] three")
	if l := resumed.result(); l.SessionID != first.SessionID {
		t.Errorf("resumed session %s, want %s", l.SessionID, first.SessionID)
	}
	resumed.end()
	forked := startDirect(t, model, home, append(claudeArgs, "--resume", first.SessionID, "--fork-session")...)
	forked.prompt("[fm:text] four")
	if l := forked.result(); l.SessionID == first.SessionID {
		t.Error("the fork has the session id of its origin")
	}
	forked.end()
	requests := model.ModelRequests()
	last, err := requests[len(requests)-1].Anthropic()
	if err != nil {
		t.Fatal(err)
	}
	seen := ""
	for _, m := range last.Messages {
		seen += strings.Join(m.Content.Texts(), " ")
	}
	for _, word := range []string{"one", "two", "three", "four"} {
		if !strings.Contains(seen, "] "+word) {
			t.Errorf("the fork's request lacks prompt %q", word)
		}
	}
}

func TestDirectInterrupt(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"sleep", "hang", "slow=400"} {
		if !selected(claude, "direct: interrupt "+script) {
			continue
		}
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			model := newModel(t)
			d := startDirect(t, model, t.TempDir(), claudeArgs...)
			d.prompt("[fm:" + script + "]")
			d.until(func(l line) bool {
				return l.Type == "control_request" && script == "sleep" || strings.Contains(l.Raw, fakemodel.DeltaText(2)) ||
					script == "sleep" && l.Type == "assistant"
			})
			d.send(map[string]any{"type": "control_request", "request_id": "i1", "request": map[string]any{"subtype": "interrupt"}})
			result := d.result()
			if !result.IsError || !strings.HasPrefix(result.TerminalReason, "aborted") {
				t.Errorf("is_error %v terminal_reason %q", result.IsError, result.TerminalReason)
			}
			d.prompt("[fm:text]")
			if next := d.result(); next.Result != fakemodel.HelloText {
				t.Errorf("turn after the interrupt says %q", next.Result)
			}
			if exit := d.end(); exit != 0 {
				t.Errorf("exit %d", exit)
			}
		})
	}
}

func TestDirectMCP(t *testing.T) {
	t.Parallel()
	unlessSelected(t, claude, "direct: MCP")
	model := newModel(t)
	config := `{"mcpServers":{"echo":{"type":"stdio","command":"` + mcpProgram(t) + `","args":[],"env":{"` + mcpEnv + `":"1"}}}}`
	d := startDirect(t, model, t.TempDir(), append(claudeArgs, "--mcp-config", config, "--strict-mcp-config")...)
	d.prompt("[fm:mcp=mcp__echo__echo]")
	result := d.result()
	d.end()
	if result.Result != fakemodel.DoneText || !strings.Contains(d.raw(), "echo: ping") {
		t.Errorf("result %q\n%s", result.Result, shorten(d.raw()))
	}
}

func TestDirectBigPrompt(t *testing.T) {
	t.Parallel()
	unlessSelected(t, claude, "direct: BigPrompt")
	model := newModel(t)
	// Without the variable claude refuses what it takes for more than a context.
	d := startDirectIn(t, model, t.TempDir(), t.TempDir(), []string{"CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE=9000000"}, claudeArgs...)
	prompt := bigPrompt(5 << 20)
	d.prompt(prompt)
	result := d.result()
	d.end()
	if len(model.ModelRequests()) == 0 {
		t.Fatalf("no request came; claude says %q", result.Result)
	}
	body, err := model.ModelRequests()[0].Anthropic()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(body.Messages, func(m fakemodel.AnthropicMessage) bool {
		return slices.Contains(m.Content.Texts(), prompt)
	}) {
		t.Error("the prompt did not arrive as it was sent")
	}
}

// bigPrompt is size bytes of text in which no two lines are alike.
func bigPrompt(size int) string {
	var b strings.Builder
	b.WriteString("[fm:text]")
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "\nline %d: häßliche Zeichen \t \u2028 🙂 <x> & \"y\"", i)
	}
	return b.String() + "\nend"
}

func TestDirectBadFlag(t *testing.T) {
	t.Parallel()
	unlessSelected(t, claude, "direct: BadFlag")
	d := startDirect(t, newModel(t), t.TempDir(), append(claudeArgs, "--no-such-flag")...)
	if exit := d.end(); exit != 1 || !strings.Contains(d.stderr.String(), "unknown option") {
		t.Errorf("exit %d, stderr %q", exit, d.stderr.String())
	}
}

// mcpProgram is this test program, which serves MCP if mcpEnv is set.
func mcpProgram(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(testProgram())
	if err != nil {
		t.Fatal(err)
	}
	return path
}
