package real

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/test/fakemodel"
	"github.com/amux-dev/amux/pluginapi"
)

// scenarios are the lines of the table.
var scenarios = []scenario{
	{"text", func(r *run) {
		r.once("[fm:text] hello")
		r.ok(1)
		r.tokens(1)
		r.want("user_message", "turn_start", "message_start", "text_delta", "message_stop", "turn_end")
		a := r.asked(0)
		asked := slices.Contains(a.Texts, "[fm:text] hello")
		if r.lacking("its prompt alone") {
			asked = a.contains("[fm:text] hello")
		}
		if r.finalText() != fakemodel.HelloText || !asked {
			r.t.Errorf("said %q, asked %q", r.finalText(), a.Texts)
		}
		if n := len(r.model.ModelRequests()); n != 1 {
			r.t.Errorf("%d requests at the model, want 1", n)
		}
	}},
	{"text for people", func(r *run) {
		r.plain = true
		r.once("[fm:text]")
		if r.exit != 0 || r.text != fakemodel.HelloText+"\n" {
			r.t.Errorf("exit %d, stdout %q", r.exit, r.text)
		}
	}},
	{"answer", answer},
	{"partials", func(r *run) {
		r.once("[fm:deltas=200]")
		r.ok(1)
		var joined, want strings.Builder
		deltas := all[pluginapi.TextDelta](r)
		for _, d := range deltas {
			joined.WriteString(d.Delta)
		}
		for i := range 200 {
			want.WriteString(fakemodel.DeltaText(i))
		}
		if len(deltas) != 200 || joined.String() != want.String() || r.finalText() != want.String() {
			r.t.Errorf("%d deltas of %d bytes, message of %d bytes; want 200 of %d", len(deltas), joined.Len(), len(r.finalText()), want.Len())
		}
	}},
	{"thinking", func(r *run) {
		r.once("[fm:think]")
		r.ok(1)
		r.want("thinking_start", "thinking_delta", "thinking_stop", "message_start", "message_stop")
		if got := one[pluginapi.ThinkingStop](r).Thinking; got != fakemodel.ThinkingText {
			r.t.Errorf("thought %q", got)
		}
		if n := r.end().Tokens.Thinking; n != nil && *n != fakemodel.ThinkingTokens {
			r.t.Errorf("%d thinking tokens, want %d", *n, fakemodel.ThinkingTokens)
		}
	}},
	{"tool", func(r *run) {
		r.once("[fm:text-then-bash]", "--approve", "auto")
		r.ok(1)
		r.tokens(2)
		r.want("message_stop", "tool_call_start", "tool_input_delta", "tool_call_ready", "shell_start", "shell_stdout_delta", "shell_exit", "tool_result", "message_stop")
		ready, result := one[pluginapi.ToolCallReady](r), one[pluginapi.ToolResult](r)
		var input struct{ Command string }
		if err := json.Unmarshal(ready.Input, &input); err != nil || input.Command != "echo hi" {
			r.t.Errorf("input %s", ready.Input)
		}
		if ready.ToolName != r.agent.shell || result.ToolCallID != ready.ToolCallID || !r.lacking("outputs") && !strings.Contains(string(result.Output), "hi") {
			r.t.Errorf("ready %+v, result %+v", ready, result)
		}
		if code := one[pluginapi.ShellExit](r).ExitCode; !r.lacking("exit codes") && (code == nil || *code != 0) {
			r.t.Errorf("shell exit %v", code)
		}
		if r.finalText() != fakemodel.DoneText {
			r.t.Errorf("said %q", r.finalText())
		}
	}},
	{"failing tool", func(r *run) {
		r.once("[fm:fail]", "--approve", "auto")
		r.ok(1)
		r.tokens(2)
		r.want("tool_call_start", "tool_call_ready", "shell_start", "shell_exit", "tool_error", "message_stop")
		if code := one[pluginapi.ShellExit](r).ExitCode; code == nil || *code != 3 {
			r.t.Errorf("shell exit %v, want 3", code)
		}
	}},
	{"file edit", func(r *run) {
		file := r.path("a.txt")
		r.once("[fm:edit="+file+"]", "--approve", "auto")
		r.ok(1)
		r.tokens(4)
		r.want("tool_call_start", "file_create", "tool_result", "tool_call_start", "file_patch", "tool_result", "tool_call_start", "file_read", "tool_result")
		if data, err := os.ReadFile(file); err != nil || string(data) != "goodbye\nworld\n" {
			r.t.Errorf("file holds %q, %v", data, err)
		}
		if diff := one[pluginapi.FilePatch](r).Diff; !strings.Contains(diff, "-hello") || !strings.Contains(diff, "+goodbye") {
			r.t.Errorf("diff %q", diff)
		}
		if r.lacking("file_create") {
			return
		}
		if got := one[pluginapi.FileCreate](r); got.Path != file || got.ByteCount == nil || *got.ByteCount != 12 {
			r.t.Errorf("created %+v", got)
		}
	}},
	{"story", func(r *run) {
		approve := "ask"
		if r.lacking("approval_request") {
			approve = "auto"
		}
		r.converse("--approve", approve)
		r.prompt("[fm:story=" + r.path("made") + "]")
		for e, ok := r.read(); ok && e.Type != "turn_end"; e, ok = r.read() {
			if e.Type == "approval_request" {
				r.send(map[string]any{"type": "approve", "interaction_id": e.InteractionID})
			}
		}
		r.send(map[string]any{"type": "end"})
		r.wait()
		r.ok(1)
		r.want("token_usage")
		r.want("approval_request", "approval_granted")
		if !r.agent.unpriced {
			r.want("cost")
		}
		if got, want := r.skeleton(), r.story(); got != want {
			r.t.Errorf("told\n%s\nwant\n%s", got, want)
		}
	}},
	{"parallel tools", func(r *run) {
		r.once("[fm:parallel]", "--approve", "auto")
		r.ok(1)
		r.tokens(2)
		outputs := map[string]string{}
		for _, ready := range all[pluginapi.ToolCallReady](r) {
			outputs[ready.ToolCallID] = string(ready.Input)
		}
		results := all[pluginapi.ToolResult](r)
		if len(outputs) != 2 || len(results) != 2 {
			r.t.Fatalf("%d tools, %d results", len(outputs), len(results))
		}
		for _, result := range results {
			if r.lacking("outputs") {
				break
			}
			for _, word := range []string{"one", "two"} {
				if strings.Contains(string(result.Output), word) != strings.Contains(outputs[result.ToolCallID], word) {
					r.t.Errorf("tool %s with %s gave %s", result.ToolCallID, outputs[result.ToolCallID], result.Output)
				}
			}
		}
	}},
	{"sub-agent", func(r *run) {
		r.once("[fm:agent]", append([]string{"--approve", "auto"}, r.agent.subagent...)...)
		r.want("tool_call_start", "subagent_spawn", "subagent_result", "run_end")
		r.tokens(int64(len(r.model.ModelRequests())))
		spawn := one[pluginapi.SubagentSpawn](r)
		if end := r.end(); r.exit != 0 || end.State != "completed" || spawn.Prompt != "[fm:bash] inner" && !r.lacking("a sub-agent's prompt") {
			r.t.Errorf("exit %d, state %s, spawn %+v", r.exit, end.State, spawn)
		}
		nested := map[pluginapi.Type]int{}
		for _, e := range r.events {
			if e.Parent == spawn.SubagentID {
				nested[e.Type]++
			}
		}
		if nested["tool_call_start"] != 1 || nested["tool_result"] != 1 || nested["message_stop"] == 0 {
			r.t.Errorf("inside the sub-agent: %v", nested)
		}
		r.answered()
	}},
	{"two turns", func(r *run) {
		r.converse("--approve", "auto")
		r.prompt("[fm:text] one")
		r.until("turn_end")
		r.prompt("[fm:bash] two")
		r.until("turn_end")
		r.send(map[string]any{"type": "end"})
		r.wait()
		r.ok(2)
		r.tokens(3)
		starts := all[pluginapi.TurnStart](r)
		if len(starts) != 2 || starts[0].TurnIndex == starts[1].TurnIndex {
			r.t.Errorf("turns %+v", starts)
		}
		if last := r.asked(-1); !last.contains("] one") || !last.contains("] two") {
			r.t.Error("the second turn does not know the first")
		}
		if n := len(all[pluginapi.UserMessage](r)); n != 2 {
			r.t.Errorf("%d user_message, want 2", n)
		}
	}},
	{"stdin ends the conversation", func(r *run) {
		r.converse()
		r.prompt("[fm:text]")
		r.until("turn_end")
		r.stdin.Close()
		r.wait()
		r.ok(1)
	}},
	{"approval granted", func(r *run) {
		file := r.path("made")
		r.converse("--approve", "ask")
		r.prompt("[fm:" + r.agent.asksAbout + "=" + file + "]")
		asked := r.until("approval_request")
		if _, err := os.Stat(file); err == nil {
			r.t.Error("the tool ran before it was approved")
		}
		r.send(map[string]any{"type": "approve", "interaction_id": asked.InteractionID})
		r.until("turn_end")
		r.send(map[string]any{"type": "end"})
		r.wait()
		r.ok(1)
		r.want("tool_call_ready", "approval_request", "approval_granted", "tool_result", "message_stop")
		if _, err := os.Stat(file); err != nil {
			r.t.Error("the approved tool did not run")
		}
	}},
	{"approval denied", func(r *run) {
		file := r.path("made")
		r.converse("--approve", "ask")
		r.prompt("[fm:" + r.agent.asksAbout + "=" + file + "]")
		asked := r.until("approval_request")
		r.send(map[string]any{"type": "deny", "interaction_id": asked.InteractionID, "reason": "not on a Sunday"})
		r.until("turn_end")
		r.send(map[string]any{"type": "end"})
		r.wait()
		r.ok(1)
		r.want("tool_call_ready", "approval_request", "approval_denied", "tool_error", "message_stop")
		if _, err := os.Stat(file); err == nil {
			r.t.Error("the denied tool ran")
		}
		if !r.lacking("why it was denied") && !r.asked(-1).contains("not on a Sunday") {
			r.t.Error("the model was not told the reason")
		}
		if got := one[pluginapi.ApprovalDenied](r).Reason; got != "not on a Sunday" {
			r.t.Errorf("reason %q", got)
		}
	}},
	{"nobody to approve", func(r *run) {
		file := r.path("made")
		r.once("[fm:" + r.agent.asksAbout + "=" + file + "]")
		r.ok(1)
		r.want("approval_request", "approval_denied", "tool_error")
		if _, err := os.Stat(file); err == nil {
			r.t.Error("the tool ran")
		}
	}},
	{"question", func(r *run) {
		r.converse("--approve", "ask")
		r.prompt("[fm:ask]")
		asked := r.until("input_required")
		r.send(map[string]any{"type": "answer", "interaction_id": asked.InteractionID, "text": "Blue"})
		r.until("turn_end")
		r.send(map[string]any{"type": "end"})
		r.wait()
		r.ok(1)
		r.want("tool_call_start", "input_required", "input_answered", "tool_result", "message_stop")
		if !r.asked(-1).contains("Blue") {
			r.t.Error("the model was not told the answer")
		}
	}},
	{"interrupt a tool", func(r *run) {
		r.converse("--approve", "auto")
		r.prompt("[fm:sleep]")
		r.inTool()
		r.send(map[string]any{"type": "interrupt"})
		r.until("turn_end")
		r.prompt("[fm:text]")
		r.until("turn_end")
		r.send(map[string]any{"type": "end"})
		r.wait()
		r.ok(2)
		r.want("shell_start", "interrupted", "turn_end", "turn_start", "message_stop", "turn_end")
	}},
	{"interrupt a stream", func(r *run) {
		r.converse()
		r.prompt("[fm:hang]")
		r.until("text_delta")
		r.send(map[string]any{"type": "interrupt"})
		r.until("turn_end")
		r.prompt("[fm:text]")
		r.until("turn_end")
		r.send(map[string]any{"type": "end"})
		r.wait()
		r.ok(2)
		r.want("text_delta", "interrupted", "turn_end", "message_stop", "turn_end")
	}},
	{"ctrl-c", func(r *run) {
		r.start("[fm:sleep]", "--approve", "auto")
		r.inTool()
		r.cmd.Process.Signal(syscall.SIGINT)
		r.wait()
		if end := r.end(); r.exit != 130 || end.State != "canceled" {
			r.t.Errorf("exit %d, state %s, reason %s", r.exit, end.State, end.Reason)
		}
	}},
	{"terminated", func(r *run) {
		r.start("[fm:sleep]", "--approve", "auto")
		r.inTool()
		r.cmd.Process.Signal(syscall.SIGTERM)
		r.wait()
		if end := r.end(); r.exit != 143 || end.State != "canceled" {
			r.t.Errorf("exit %d, state %s, reason %s", r.exit, end.State, end.Reason)
		}
	}},
	{"stopped from elsewhere", func(r *run) {
		r.start("[fm:sleep]", "--approve", "auto")
		r.inTool()
		if output, err := r.amux(r.t.Context(), "stop", r.events[0].RunID).CombinedOutput(); err != nil {
			r.t.Fatalf("amux stop: %v\n%s", err, output)
		}
		r.wait()
		if end := r.end(); r.exit != 13 || end.State != "canceled" {
			r.t.Errorf("exit %d, state %s, reason %s", r.exit, end.State, end.Reason)
		}
	}},
	{"amux killed", func(r *run) {
		r.start("[fm:sleep]", "--approve", "auto")
		r.inTool()
		r.killed = true
		r.cmd.Process.Kill()
		r.wait()
	}},
	{"timeout", func(r *run) {
		// On a busy machine it may come to the tool only when it has longer.
		longest := max(scenarioTime, r.agent.patience) * 2 / 3
		for limit := r.agent.timeout(); ; limit = min(4*limit, longest) {
			r = r.again().once("[fm:sleep]", "--approve", "auto", "--timeout", limit.String())
			if end := r.end(); r.exit != 11 || end.State != "timed_out" || end.Code != pluginapi.CodeTimeout {
				r.t.Errorf("exit %d, state %s, code %s", r.exit, end.State, end.Code)
			}
			if len(all[pluginapi.ShellStart](r)) > 0 || r.lacking("shell_start") || limit >= longest {
				break
			}
		}
		r.want("shell_start", "timeout", "run_end")
	}},
	{"resume", func(r *run) {
		r.once("[fm:text] first")
		r.ok(1)
		id := one[pluginapi.SessionStart](r).SessionID
		if r.agent.minute {
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second)))
		}
		next := r.again().once("[fm:text] second", "--resume", id)
		next.ok(1)
		next.tokens(1)
		if start := one[pluginapi.SessionStart](next); start.SessionID != id || !start.Resumed {
			r.t.Errorf("resumed %s: %+v", id, start)
		}
		if !next.asked(-1).contains("] first") {
			r.t.Error("the model was not told the first prompt")
		}
		// A turn costs what it costs, whatever the session cost before.
		r.sameCost(next)
		if r.lacking("the last session") {
			return
		}
		latest := r.again().once("[fm:text] third", "--continue")
		latest.ok(1)
		if got := one[pluginapi.SessionStart](latest).SessionID; got != id {
			r.t.Errorf("continued %s, want %s", got, id)
		}
	}},
	{"fork", func(r *run) {
		r.once("[fm:text] first")
		id := one[pluginapi.SessionStart](r).SessionID
		next := r.again().once("[fm:text] second", "--resume", id, "--fork")
		next.ok(1)
		next.tokens(1)
		if start := one[pluginapi.SessionStart](next); start.SessionID == id || start.ForkedFrom != id {
			r.t.Errorf("forked %s: %+v", id, start)
		}
		if !next.asked(-1).contains("] first") {
			r.t.Error("the model was not told the first prompt")
		}
		r.sameCost(next)
	}},
	{"sessions", func(r *run) {
		r.once("[fm:text-then-bash] remember the milk", "--approve", "auto")
		r.ok(1)
		id := one[pluginapi.SessionStart](r).SessionID
		sessions := func(args ...string) string {
			out, err := r.amux(r.t.Context(), append([]string{"sessions"}, args...)...).Output()
			if err != nil {
				r.t.Errorf("sessions %v: %v\n%s", args, err, stderrOf(err))
			}
			return string(out)
		}
		store := cmp.Or(r.agent.stores, r.agent.id)
		if list := sessions("list", store, "--json"); !strings.Contains(list, id) {
			r.t.Errorf("%s is not listed:\n%s", id, list)
		}
		shown := sessions("show", id, "--agent", store, "--json")
		for _, words := range []string{"remember the milk", fakemodel.DoneText, `"tool_call_start"`} {
			if !strings.Contains(shown, words) {
				r.t.Errorf("the session shows no %s:\n%s", words, shown)
			}
		}
	}},
	{"another model", func(r *run) {
		r.converse()
		r.prompt("[fm:text] one")
		r.until("turn_end")
		r.send(map[string]any{"type": "set_model", "model": cmp.Or(r.agent.model, "haiku")})
		r.prompt("[fm:text] two")
		r.until("turn_end")
		r.send(map[string]any{"type": "end"})
		r.wait()
		r.ok(2)
		other := path.Base(cmp.Or(r.agent.model, "haiku"))
		if a, b := r.asked(0).Model, r.asked(-1).Model; strings.Contains(a, other) || !strings.Contains(b, other) {
			r.t.Errorf("models %s, %s; want the second to be %s", a, b, other)
		}
	}},
	{"unknown session", func(r *run) {
		r.once("[fm:text]", "--resume", "aaaaaaaa-0000-4000-8000-000000000000")
		r.failed(pluginapi.CodeSessionNotFound, 8)
	}},
	{"401", func(r *run) {
		r.once("[fm:401]")
		r.failed(pluginapi.CodeAuth, 5)
		r.want("auth_error", "session_end", "run_end")
	}},
	{"429", func(r *run) {
		r.once("[fm:429=2]")
		r.failed(pluginapi.CodeRateLimited, 14)
		r.want("rate_limited", "rate_limit_error", "run_end")
		// The agent adds some jitter to the two seconds of the header.
		if r.lacking("how long to wait") {
			return
		}
		waits := all[pluginapi.RateLimited](r)
		if len(waits) == 0 {
			r.t.Fatal("nothing says how long to wait")
		}
		if wait := waits[0].RetryAfterMS; wait == nil || *wait < 1900 || *wait > 3500 {
			r.t.Errorf("retry after %s ms, want about 2000", show(wait))
		}
	}},
	{"529", func(r *run) {
		r.once("[fm:529]")
		r.failed(pluginapi.CodeOverloaded, 14)
		if !r.lacking("a retry when overloaded") {
			r.want("retry")
		}
		r.want("error", "run_end")
	}},
	{"flaky", func(r *run) {
		r.once("[fm:flaky=1]")
		r.ok(1)
		r.tokens(1)
		r.want("retry", "message_stop")
	}},
	{"context too long", func(r *run) {
		r.once("[fm:context]")
		r.failed(pluginapi.CodeContextExceeded, 15)
		exceeded := one[pluginapi.ContextExceeded](r)
		if n := exceeded.UsedTokens; n != nil && *n != 205000 {
			r.t.Errorf("used %d", *n)
		}
	}},
	{"credit", func(r *run) {
		r.once("[fm:credit]")
		r.failed(pluginapi.CodeBilling, 5)
	}},
	{"connection refused", func(r *run) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.t.Fatal(err)
		}
		r.provider = "http://" + listener.Addr().String()
		listener.Close()
		r.once("[fm:text]")
		r.failed(pluginapi.CodeNetwork, 1)
	}},
	{"max turns", func(r *run) {
		r.once("[fm:loop]", "--approve", "auto", "--max-turns", "2")
		r.failed(pluginapi.CodeTurnLimit, 1)
		r.want("turn_limit", "run_end")
	}},
	{"max budget", func(r *run) {
		r.once("[fm:loop]", "--approve", "auto", "--max-budget", "0.001")
		r.failed(pluginapi.CodeBudgetExceeded, 16)
	}},
	{"mcp", func(r *run) {
		r.once("[fm:mcp="+r.agent.mcpTool+"]", "--approve", "auto", "--mcp", "echo="+mcpScript(r))
		r.ok(1)
		r.want("tool_call_start", "mcp_tool_call_start", "mcp_tool_result", "tool_result", "message_stop")
		if call := one[pluginapi.McpToolCallStart](r); call.Server != "echo" || call.ToolName != "echo" {
			r.t.Errorf("call %+v", call)
		}
		if !strings.Contains(string(one[pluginapi.McpToolResult](r).Output), "echo: ping") {
			r.t.Errorf("result %s", one[pluginapi.McpToolResult](r).Output)
		}
	}},
	{"json schema", func(r *run) {
		r.once("[fm:json]", "--json-schema", `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`)
		r.ok(1)
		var answer map[string]any
		if err := json.Unmarshal([]byte(r.finalText()), &answer); err != nil || answer["answer"] != "text" {
			r.t.Errorf("said %q", r.finalText())
		}
	}},
	{"image", func(r *run) {
		image := pixel(r.t)
		file := r.path("one.png")
		if err := os.WriteFile(file, image, 0o600); err != nil {
			r.t.Fatal(err)
		}
		r.once("[fm:text] what is this", "--file", file)
		r.ok(1)
		if a := r.asked(0); len(a.Images) != 1 || !r.lacking("an image's bytes") && !bytes.Equal(a.Images[0], image) || !a.contains("what is this") {
			r.t.Errorf("%d images reached the model", len(a.Images))
		}
	}},
	{"5 MB prompt", func(r *run) {
		// Claude Code and Copilot refuse what they take for more than a context, unasked.
		r.env = append(r.env, "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE=9000000", "COPILOT_PROVIDER_MAX_PROMPT_TOKENS=9000000")
		prompt := bigPrompt(5 << 20)
		r.start("-")
		if _, err := r.stdin.Write([]byte(prompt)); err != nil {
			r.t.Fatal(err)
		}
		r.stdin.Close()
		r.wait()
		r.ok(1)
		if !slices.Contains(r.asked(0).Texts, prompt) {
			r.t.Error("the prompt did not arrive byte by byte")
		}
	}},
	{"prompt above the context", func(r *run) {
		r.start("-")
		if _, err := r.stdin.Write([]byte(bigPrompt(5 << 20))); err != nil {
			r.t.Fatal(err)
		}
		r.stdin.Close()
		r.wait()
		r.failed(pluginapi.CodeContextExceeded, 15)
	}},
	{"options", func(r *run) {
		r.once("[fm:text]", "--model", r.agent.model, "--effort", "low", "--system", "SYSTEM-MARK")
		r.ok(1)
		a := r.asked(0)
		if !strings.Contains(a.Model, path.Base(r.agent.model)) || a.Effort != "low" || !strings.Contains(a.System, "SYSTEM-MARK") {
			r.t.Errorf("model %s, effort %s, system prompt has the mark: %v", a.Model, a.Effort, strings.Contains(a.System, "SYSTEM-MARK"))
		}
	}},
	{"system replaced", func(r *run) {
		r.once("[fm:text]")
		usual := len(r.asked(0).System)
		next := r.again().once("[fm:text]", "--system", "SYSTEM-MARK", "--system-mode", "replace")
		next.ok(1)
		if a := next.asked(-1); !strings.Contains(a.System, "SYSTEM-MARK") || len(a.System) >= usual {
			r.t.Errorf("system prompt of %d bytes, usually %d", len(a.System), usual)
		}
	}},
	{"environment", func(r *run) {
		r.once("[fm:touch="+r.path("$AMUX_TEST_NAME")+"]", "--approve", "auto", "--env", "AMUX_TEST_NAME=from-env")
		r.ok(1)
		if _, err := os.Stat(r.path("from-env")); err != nil {
			r.t.Error("the variable did not reach the agent's shell")
		}
	}},
	{"bad option", func(r *run) {
		r.plain = true
		r.once("[fm:text]", "--system", "x", "--system-mode", "prepend")
		if r.exit != int(pluginapi.CodeCapability.Info().Exit) || !strings.Contains(r.stderr.String(), "amux: error: ") || len(r.model.Requests()) != 0 {
			r.t.Errorf("exit %d, stderr %q", r.exit, r.stderr.String())
		}
	}},
}

// stderrOf is what a command said that failed.
func stderrOf(err error) []byte {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.Stderr
	}
	return nil
}
