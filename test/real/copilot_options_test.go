package real

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// TestCopilotOptions is what Copilot has besides the scenarios, which are by ACP:
// its own lines, and the options that no scenario has.
func TestCopilotOptions(t *testing.T) {
	for name, do := range map[string]func(*run){
		"lines tell a tool": func(r *run) {
			r.once("[fm:text-then-bash]", "--driver", "json", "--approve", "auto")
			r.ok(1)
			r.tokens(2)
			r.want("step_start", "message_stop", "tool_call_start", "tool_call_ready", "shell_start", "shell_stdout_delta", "shell_exit", "tool_result", "step_end", "message_stop")
			if len(all[pluginapi.ToolInputDelta](r)) == 0 {
				r.t.Error("the input did not come in pieces")
			}
		},
		"lines tell a failing tool": func(r *run) {
			r.once("[fm:fail]", "--driver", "json", "--approve", "auto")
			r.ok(1)
			if code := one[pluginapi.ShellExit](r).ExitCode; code == nil || *code != 3 {
				r.t.Errorf("shell exit %v, want 3", code)
			}
			one[pluginapi.ToolError](r)
		},
		"lines tell a sub-agent": func(r *run) {
			r.once("[fm:agent]", "--driver", "json", "--approve", "auto")
			r.ok(1)
			r.want("tool_call_start", "subagent_spawn", "shell_exit", "tool_result", "subagent_result", "message_stop")
			spawn := one[pluginapi.SubagentSpawn](r)
			inside := map[pluginapi.Type]int{}
			for _, e := range r.events {
				if e.Parent == spawn.SubagentID {
					inside[e.Type]++
				}
			}
			if spawn.Prompt != "[fm:bash] inner" || inside["tool_result"] != 1 || inside["message_stop"] != 1 {
				r.t.Errorf("spawn %+v, inside %v", spawn, inside)
			}
		},
		"lines tell a file edit": func(r *run) {
			file := r.path("a.txt")
			r.once("[fm:edit="+file+"]", "--driver", "json", "--approve", "auto")
			r.ok(1)
			r.want("file_create", "file_patch", "file_read")
			if diff := one[pluginapi.FilePatch](r).Diff; !strings.Contains(diff, "-hello") || !strings.Contains(diff, "+goodbye") {
				r.t.Errorf("diff %q", diff)
			}
		},
		"lines deny": func(r *run) {
			file := r.path("made")
			r.once("[fm:touch="+file+"]", "--driver", "json", "--approve", "deny")
			r.ok(1)
			r.want("tool_call_ready", "approval_denied", "tool_error", "message_stop")
			if _, err := os.Stat(file); err == nil {
				r.t.Error("the denied tool ran")
			}
		},
		"lines think": func(r *run) {
			r.once("[fm:think]", "--driver", "json")
			r.ok(1)
			r.want("thinking_start", "thinking_delta", "thinking_stop", "message_start", "message_stop")
		},
		"lines go on": func(r *run) {
			r.once("[fm:text] first", "--driver", "json")
			r.ok(1)
			r.tokens(1)
			id := one[pluginapi.SessionStart](r).SessionID
			next := r.again().once("[fm:text] again", "--driver", "json", "--resume", id)
			next.ok(1)
			if start := one[pluginapi.SessionStart](next); start.SessionID != id || !start.Resumed {
				r.t.Errorf("%+v, want %s", start, id)
			}
			if !next.asked(-1).contains("] first") {
				r.t.Error("the model was not told the first prompt")
			}
			unknown := r.again().once("[fm:text]", "--driver", "json", "--resume", "aaaaaaaa-0000-4000-8000-000000000000")
			unknown.failed(pluginapi.CodeSessionNotFound, 8)
		},
		"lines tell errors apart": func(r *run) {
			r.once("[fm:401]", "--driver", "json")
			r.failed(pluginapi.CodeAuth, 5)
			r.want("retry", "auth_error", "session_end", "run_end")
			limited := r.again().once("[fm:429=1]", "--driver", "json")
			limited.failed(pluginapi.CodeRateLimited, 14)
			for _, kind := range []pluginapi.Type{"rate_limited", "rate_limit_error"} {
				if !strings.Contains(strings.Join(limited.types(), " "), string(kind)) {
					r.t.Errorf("no %s", kind)
				}
			}
			r.again().once("[fm:context]", "--driver", "json").failed(pluginapi.CodeContextExceeded, 15)
		},
		"lines are interrupted": func(r *run) {
			r.start("[fm:sleep]", "--driver", "json", "--approve", "auto")
			r.until("shell_start")
			r.running(`"sleep 987`)
			r.cmd.Process.Signal(os.Interrupt)
			r.wait()
			if end := r.end(); r.exit != 130 || end.State != "canceled" {
				r.t.Errorf("exit %d, state %s", r.exit, end.State)
			}
		},
		"lines with mcp": func(r *run) {
			r.once("[fm:mcp="+r.agent.mcpTool+"]", "--driver", "json", "--approve", "auto", "--env", mcpEnv+"=1", "--mcp", "echo="+mcpProgram(r.t))
			r.ok(1)
			if call := one[pluginapi.McpToolCallStart](r); call.Server != "echo" || call.ToolName != "echo" {
				r.t.Errorf("call %+v", call)
			}
			one[pluginapi.McpToolResult](r)
		},
		"a denial by acp": func(r *run) {
			file := r.path("made")
			r.once("[fm:touch=" + file + "]")
			r.ok(1)
			r.want("approval_request", "approval_denied", "tool_error")
			if _, err := os.Stat(file); err == nil {
				r.t.Error("the tool ran")
			}
		},
		"an effort that a model lacks": func(r *run) {
			r.once("[fm:text]", "--model", "other-model", "--effort", "low")
			r.failed(pluginapi.CodeCapability, 6)
		},
		"its sessions": func(r *run) {
			r.once("[fm:text-then-bash] listed", "--approve", "auto")
			r.ok(1)
			id := one[pluginapi.SessionStart](r).SessionID
			output, err := r.amux(r.t.Context(), "sessions", "show", id, "--json").Output()
			if err != nil {
				r.t.Fatalf("sessions show: %v", err)
			}
			kinds := map[string]int{}
			for line := range strings.Lines(string(output)) {
				var e struct{ Type string }
				if json.Unmarshal([]byte(line), &e) != nil {
					r.t.Errorf("no JSON: %s", line)
				}
				kinds[e.Type]++
			}
			if kinds["shell_exit"] != 1 || kinds["message_stop"] != 2 || kinds["token_usage"] != 2 {
				r.t.Errorf("the session shows %v", kinds)
			}
		},
	} {
		if !selected(copilotRow, "besides: "+name) {
			continue
		}
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			agent := copilotRow
			agent.lacks = nil
			do(newRun(t, agent))
		})
	}
}
