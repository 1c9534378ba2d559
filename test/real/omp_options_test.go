package real

import (
	"os"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// TestOmpOptions is what omp has besides the scenarios, which are by RPC: the Agent
// Client Protocol, where it asks.
func TestOmpOptions(t *testing.T) {
	for name, do := range map[string]func(*run){
		"a command is approved": func(r *run) {
			file := r.path("made")
			r.converse("--driver", "acp", "--approve", "ask")
			r.prompt("[fm:touch=" + file + "]")
			asked := r.until("approval_request")
			if _, err := os.Stat(file); err == nil {
				r.t.Error("the tool ran before it was approved")
			}
			r.send(map[string]any{"type": "approve", "interaction_id": asked.InteractionID})
			r.until("turn_end")
			r.send(map[string]any{"type": "end"})
			r.wait()
			r.ok(1)
			r.tokens(2)
			if n := len(all[pluginapi.ApprovalRequest](r)); n != 1 {
				r.t.Errorf("it asked %d times about one command", n)
			}
			if _, err := os.Stat(file); err != nil {
				r.t.Error("the approved tool did not run")
			}
		},
		"nobody to approve": func(r *run) {
			file := r.path("made")
			r.once("[fm:touch="+file+"]", "--driver", "acp", "--approve", "deny")
			r.ok(1)
			r.want("approval_request", "approval_denied", "tool_error", "message_stop")
			if _, err := os.Stat(file); err == nil {
				r.t.Error("the tool ran")
			}
			r.again().once("[fm:write="+file+"]", "--driver", "acp", "--approve", "deny").ok(1)
			if _, err := os.Stat(file); err == nil {
				r.t.Error("the file was written")
			}
		},
		"a file is approved": func(r *run) {
			file := r.path("made")
			r.converse("--driver", "acp", "--approve", "ask")
			r.prompt("[fm:write=" + file + "]")
			asked := r.until("approval_request")
			if _, err := os.Stat(file); err == nil {
				r.t.Error("the file was written before it was approved")
			}
			r.send(map[string]any{"type": "approve", "interaction_id": asked.InteractionID})
			r.until("turn_end")
			r.send(map[string]any{"type": "end"})
			r.wait()
			r.ok(1)
			if asked := one[pluginapi.ApprovalRequest](r); asked.ToolName != "write" || asked.Detail != file || asked.ToolKind != pluginapi.ToolFile {
				r.t.Errorf("asked %+v", asked)
			}
			if _, err := os.Stat(file); err != nil {
				r.t.Error("the approved file was not written")
			}
		},
		"rules judge files": func(r *run) {
			file, other := r.path("made"), r.path("other")
			r.once("[fm:write="+file+"]", "--driver", "acp", "--approve", "rules", "--allow", "write("+file+")").ok(1)
			if _, err := os.Stat(file); err != nil {
				r.t.Error("the file that a rule allows was not written")
			}
			r.again().once("[fm:write="+other+"]", "--driver", "acp", "--approve", "auto", "--deny", "write("+other+")").ok(1)
			if _, err := os.Stat(other); err == nil {
				r.t.Error("the file that a rule denies was written")
			}
		},
		"another model": func(r *run) {
			r.converse("--driver", "acp", "--approve", "ask")
			r.prompt("[fm:text] one")
			r.until("turn_end")
			r.send(map[string]any{"type": "set_model", "model": "fake/other-model"})
			r.prompt("[fm:text] two")
			r.until("turn_end")
			r.send(map[string]any{"type": "end"})
			r.wait()
			r.ok(2)
			if a, b := r.asked(0).Model, r.asked(-1).Model; a != "fake-model" || b != "other-model" {
				r.t.Errorf("models %s, %s; want fake-model, other-model", a, b)
			}
		},
		"what a command prints": func(r *run) {
			r.once("[fm:text-then-bash]", "--driver", "acp", "--approve", "auto")
			r.ok(1)
			var printed strings.Builder
			for _, d := range all[pluginapi.ShellStdoutDelta](r) {
				printed.WriteString(d.Delta)
			}
			if code := one[pluginapi.ShellExit](r).ExitCode; code == nil || *code != 0 || printed.String() != "hi\n" {
				r.t.Errorf("printed %q, exit %v", printed.String(), code)
			}
			failing := r.again().once("[fm:fail]", "--driver", "acp", "--approve", "auto")
			failing.ok(1)
			if code := one[pluginapi.ShellExit](failing).ExitCode; code == nil || *code != 3 {
				r.t.Errorf("shell exit %v, want 3", code)
			}
		},
		"errors are told apart": func(r *run) {
			r.once("[fm:401]", "--driver", "acp", "--approve", "auto")
			r.failed(pluginapi.CodeAuth, 5)
			r.again().once("[fm:context]", "--driver", "acp", "--approve", "auto").failed(pluginapi.CodeContextExceeded, 15)
			r.again().once("[fm:text]", "--driver", "acp", "--approve", "auto", "--model", "fake/nosuch").failed(pluginapi.CodeValidation, 2)
		},
		"it is interrupted": func(r *run) {
			r.converse("--driver", "acp", "--approve", "auto")
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
		},
		"it goes on": func(r *run) {
			r.once("[fm:text] first", "--driver", "acp", "--approve", "auto")
			r.ok(1)
			id := one[pluginapi.SessionStart](r).SessionID
			next := r.again().once("[fm:text] second", "--driver", "acp", "--approve", "auto", "--resume", id)
			next.ok(1)
			if start := one[pluginapi.SessionStart](next); start.SessionID != id || !next.asked(-1).contains("] first") {
				r.t.Errorf("resumed %s: %+v", id, start)
			}
		},
		"model and effort": func(r *run) {
			r.once("[fm:text]", "--driver", "acp", "--approve", "auto", "--model", r.agent.model, "--effort", "low", "--system", "SYSTEM-MARK")
			r.ok(1)
			if a := r.asked(0); a.Model != "other-model" || a.Effort != "low" || !strings.Contains(a.System, "SYSTEM-MARK") {
				r.t.Errorf("model %s, effort %s", a.Model, a.Effort)
			}
		},
	} {
		if !selected(ompRow, "besides: "+name) {
			continue
		}
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			agent := ompRow
			agent.lacks = map[string]string{"the cost before": "what a session that goes on has cost before is not told"}
			do(newRun(t, agent))
		})
	}
}
