package real

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/fakemodel"
	"github.com/amux-dev/amux/pluginapi"
)

// codexOptions are what Codex has beside the scenarios: each option by its effect,
// with both drivers, and the models that call their tools from JavaScript.
var codexOptions = []scenario{
	{"effort max", func(r *run) {
		r.once("[fm:text]", "--effort", "max")
		r.ok(1)
		if got := r.asked(0).Effort; got != "xhigh" {
			r.t.Errorf("effort %q; the most that gpt-5.5 thinks is xhigh", got)
		}
	}},
	{"effort max of another model", func(r *run) {
		r.once("[fm:text]", "--effort", "max", "--model", "gpt-6-sol")
		r.ok(1)
		// Not ultra, with which it hands work to sub-agents.
		if got := r.asked(0).Effort; got != "max" {
			r.t.Errorf("effort %q", got)
		}
	}},
	{"added directory", func(r *run) {
		// Not below /tmp, where the sandbox lets everything be written.
		extra, err := os.MkdirTemp("/var/tmp", "amux-real-")
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { os.RemoveAll(extra) })
		file := filepath.Join(extra, "made")
		r.once("[fm:write="+file+"]", "--approve", "auto", "--add-dir", extra)
		r.ok(1)
		if _, err := os.Stat(file); err != nil || len(all[pluginapi.ApprovalRequest](r)) != 0 {
			r.t.Errorf("%v, asked: %v", err, all[pluginapi.ApprovalRequest](r))
		}
		other := filepath.Join(extra, "asked")
		next := r.again().once("[fm:write="+other+"]", "--approve", "auto")
		next.ok(1)
		next.want("approval_request", "approval_granted", "file_create")
	}},
	{"no session", func(r *run) {
		r.once("[fm:text]", "--no-session")
		r.ok(1)
		if found, _ := filepath.Glob(filepath.Join(r.dir, "home", ".codex", "sessions", "*", "*", "*", "*.jsonl")); len(found) != 0 {
			r.t.Errorf("stored %q", found)
		}
	}},
	{"fork of the last session", func(r *run) {
		r.once("[fm:text] first")
		first := one[pluginapi.SessionStart](r).SessionID
		next := r.again().once("[fm:text] second", "--continue", "--fork")
		next.ok(1)
		next.tokens(1)
		if start := one[pluginapi.SessionStart](next); start.SessionID == first || start.ForkedFrom != first || !next.asked(-1).contains("] first") {
			r.t.Errorf("forked %s: %+v", first, start)
		}
	}},
	{"file change denied", func(r *run) {
		file := r.path("a.txt")
		r.converse("--approve", "ask")
		r.prompt("[fm:write=" + file + "]")
		asked := r.until("approval_request")
		if !strings.Contains(asked.Raw, file) {
			r.t.Errorf("the question does not name the file: %s", asked.Raw)
		}
		r.send(map[string]any{"type": "deny", "interaction_id": asked.InteractionID})
		r.until("turn_end")
		r.send(map[string]any{"type": "end"})
		r.wait()
		r.ok(1)
		r.want("approval_denied", "tool_error", "message_stop")
		if _, err := os.Stat(file); err == nil {
			r.t.Error("the file was made")
		}
	}},
	{"rules", func(r *run) {
		file := r.path("made")
		r.once("[fm:touch="+file+"]", "--approve", "rules", "--allow", "exec_command(touch *)")
		r.ok(1)
		r.want("approval_request", "approval_granted", "tool_result")
		if _, err := os.Stat(file); err != nil {
			r.t.Error("the allowed command did not run")
		}
		denied := r.again().once("[fm:touch="+r.path("other")+"]", "--approve", "rules", "--allow", "exec_command", "--deny", "exec_command(touch *)")
		denied.ok(1)
		denied.want("approval_request", "approval_denied", "tool_error")
	}},
	{"mcp tool denied", func(r *run) {
		r.once("[fm:mcp="+r.agent.mcpTool+"]", "--approve", "deny", "--env", mcpEnv+"=1", "--mcp", "echo="+mcpProgram(r.t))
		r.ok(1)
		r.want("mcp_tool_call_start", "approval_request", "approval_denied", "mcp_tool_error", "tool_error")
	}},
	{"another model", func(r *run) {
		r.converse()
		r.prompt("[fm:text] one")
		r.until("turn_end")
		r.send(map[string]any{"type": "set_model", "model": "gpt-5.6-luna"})
		r.prompt("[fm:text] two")
		r.until("turn_end")
		r.send(map[string]any{"type": "end"})
		r.wait()
		r.ok(2)
		if a, b := r.asked(0).Model, r.asked(-1).Model; a != "gpt-5.5" || b != "gpt-5.6-luna" {
			r.t.Errorf("models %s, %s", a, b)
		}
	}},
	{"prompt in the middle of a turn", func(r *run) {
		r.converse()
		r.prompt("[fm:slow=20] one")
		r.until("text_delta")
		r.prompt("[fm:text] two")
		r.until("turn_end")
		r.send(map[string]any{"type": "end"})
		r.wait()
		r.ok(1)
		if n := len(all[pluginapi.UserMessage](r)); n != 2 || r.finalText() != fakemodel.HelloText {
			r.t.Errorf("%d user_message, the last text is %q", n, r.finalText())
		}
	}},
	{"interrupt ends the tool", func(r *run) {
		r.converse("--approve", "auto")
		r.prompt("[fm:sleep]")
		r.until("shell_start")
		r.running(`"sleep 987`)
		r.send(map[string]any{"type": "interrupt"})
		r.until("turn_end")
		// The agent lives on; what its tool has started does not.
		deadline := time.Now().Add(5 * time.Second)
		for r.has(`"sleep 987`) && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
		}
		if r.has(`"sleep 987`) {
			r.t.Error("the command goes on after the interrupt")
		}
		r.send(map[string]any{"type": "end"})
		r.wait()
	}},
	{"text file", func(r *run) {
		file := r.path("notes.txt")
		if err := os.WriteFile(file, []byte("remember the milk"), 0o600); err != nil {
			r.t.Fatal(err)
		}
		r.once("[fm:text] read", "--file", file)
		r.ok(1)
		if !r.asked(0).contains("remember the milk") {
			r.t.Errorf("the model was asked %q", r.asked(0).Texts)
		}
	}},
	{"sessions", func(r *run) {
		r.once("[fm:text-then-bash] remember", "--approve", "auto")
		r.ok(1)
		id := one[pluginapi.SessionStart](r).SessionID
		list, err := r.amux(r.t.Context(), "sessions", "list", "codex", "--json").Output()
		if err != nil || !strings.Contains(string(list), id) || !strings.Contains(string(list), "remember") {
			r.t.Errorf("sessions list: %v\n%s", err, list)
		}
		shown, err := r.amux(r.t.Context(), "sessions", "show", id, "--agent", "codex", "--json").Output()
		if err != nil || !strings.Contains(string(shown), `"shell_exit"`) || !strings.Contains(string(shown), fakemodel.DoneText) {
			r.t.Errorf("sessions show: %v\n%s", err, shown)
		}
	}},
	{"code mode", func(r *run) {
		file := r.path("a.txt")
		r.once("[fm:edit="+file+"]", "--approve", "auto", "--model", "gpt-6-sol")
		r.ok(1)
		r.tokens(4)
		r.want("file_create", "tool_result", "file_patch", "tool_result", "shell_start", "shell_exit", "file_read", "tool_result", "message_stop")
		if data, err := os.ReadFile(file); err != nil || string(data) != "goodbye\nworld\n" {
			r.t.Errorf("file holds %q, %v", data, err)
		}
	}},
	{"exec: text", func(r *run) {
		r.once("[fm:text] hello", "--driver", "exec")
		r.ok(1)
		r.tokens(1)
		if r.finalText() != fakemodel.HelloText || !r.asked(0).contains("[fm:text] hello") {
			r.t.Errorf("said %q, asked %q", r.finalText(), r.asked(0).Texts)
		}
	}},
	{"exec: tool", func(r *run) {
		r.once("[fm:bash]", "--driver", "exec", "--approve", "auto")
		r.ok(1)
		r.tokens(2)
		r.want("tool_call_start", "shell_start", "shell_stdout_delta", "shell_exit", "tool_result", "message_stop")
	}},
	{"exec: nothing may be written", func(r *run) {
		file := r.path("a.txt")
		r.once("[fm:write="+file+"]", "--driver", "exec", "--approve", "deny")
		r.ok(1)
		if _, err := os.Stat(file); err == nil {
			r.t.Error("the file was made")
		}
	}},
	{"exec: options", func(r *run) {
		r.once("[fm:json]", "--driver", "exec", "--model", "gpt-5.6-luna", "--effort", "low", "--system", `SYSTEM "MARK"`, "--add-dir", r.dir, "--no-session",
			"--json-schema", `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`)
		r.ok(1)
		a := r.asked(0)
		if a.Model != "gpt-5.6-luna" || a.Effort != "low" || !strings.Contains(a.System, `SYSTEM "MARK"`) {
			r.t.Errorf("model %s, effort %s, mark %v", a.Model, a.Effort, strings.Contains(a.System, "MARK"))
		}
		var answer map[string]any
		if err := json.Unmarshal([]byte(r.finalText()), &answer); err != nil || answer["answer"] != "text" {
			r.t.Errorf("said %q", r.finalText())
		}
		if found, _ := filepath.Glob(filepath.Join(r.dir, "home", ".codex", "sessions", "*", "*", "*", "*.jsonl")); len(found) != 0 {
			r.t.Errorf("stored %q", found)
		}
	}},
	{"exec: system replaced", func(r *run) {
		r.once("[fm:text]", "--driver", "exec", "--system", "SYSTEM-MARK", "--system-mode", "replace")
		r.ok(1)
		if a := r.asked(0); !strings.Contains(a.System, "SYSTEM-MARK") || strings.Contains(a.System, "You are Codex, a coding agent") {
			r.t.Errorf("system prompt of %d bytes", len(a.System))
		}
	}},
	{"exec: mcp", func(r *run) {
		r.once("[fm:mcp="+r.agent.mcpTool+"]", "--driver", "exec", "--approve", "auto", "--env", mcpEnv+"=1", "--mcp", "echo="+mcpProgram(r.t))
		r.ok(1)
		r.want("mcp_tool_call_start", "mcp_tool_result", "tool_result")
	}},
	{"exec: resume and fork", func(r *run) {
		r.once("[fm:text] first", "--driver", "exec")
		id := one[pluginapi.SessionStart](r).SessionID
		resumed := r.again().once("[fm:text] second", "--driver", "exec", "--resume", id)
		resumed.ok(1)
		forked := r.again().once("[fm:text] third", "--driver", "exec", "--resume", id, "--fork")
		forked.ok(1)
		if got := one[pluginapi.SessionStart](resumed).SessionID; got != id || !resumed.asked(1).contains("] first") {
			r.t.Errorf("resumed %s as %s", id, got)
		}
		if got := one[pluginapi.SessionStart](forked).SessionID; got == id || !forked.asked(-1).contains("] second") {
			r.t.Errorf("forked %s as %s", id, got)
		}
		unknown := r.again().once("[fm:text]", "--driver", "exec", "--resume", "99999999-2222-4333-8444-555555555555")
		unknown.failed(pluginapi.CodeSessionNotFound, 8)
	}},
	{"exec: interrupted", func(r *run) {
		r.start("[fm:sleep]", "--driver", "exec", "--approve", "auto")
		r.until("shell_start")
		r.running(`"sleep 987`)
		r.cmd.Process.Signal(os.Interrupt)
		r.wait()
		if end := r.end(); r.exit != 130 || end.State != "canceled" {
			r.t.Errorf("exit %d, state %s, reason %s", r.exit, end.State, end.Reason)
		}
	}},
	{"secrets stay out of the agent's shell", func(r *run) {
		r.once("[fm:touch="+r.path("token-$SOME_TOKEN-end")+"]", "--approve", "auto", "--mcp", mcpWithSecret(r))
		r.ok(1)
		if _, err := os.Stat(r.path("token--end")); err != nil {
			found, _ := filepath.Glob(r.path("*"))
			r.t.Errorf("the shell had the server's variable: %q", found)
		}
	}},
}

func TestCodexOptions(t *testing.T) {
	if _, err := os.Stat(filepath.Join(binDir(), "amux")); err != nil {
		t.Fatal("bin/amux is not there: run make build")
	}
	for _, s := range codexOptions {
		if !selected(codex, "besides: "+s.name) {
			continue
		}
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			s.do(newRun(t, codex))
		})
	}
}

// has reports whether a process of the run has this in its command line.
func (r *run) has(command string) bool {
	return slices.ContainsFunc(processesWith(r.events[0].RunID), func(p string) bool { return strings.Contains(p, command) })
}

// mcpWithSecret is a file with the MCP server echo, which gets a variable.
func mcpWithSecret(r *run) string {
	r.t.Helper()
	path := r.path("mcp.json")
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"echo": map[string]any{
		"command": mcpProgram(r.t), "env": map[string]string{mcpEnv: "1", "SOME_TOKEN": "sesame"}}}})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}
