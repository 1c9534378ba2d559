package real

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// TestHermesOptions is what Hermes has besides the scenarios: model and effort by its
// lines, and by the Agent Client Protocol what the scenarios have by lines.
func TestHermesOptions(t *testing.T) {
	for name, do := range map[string]func(*run){
		"model and effort": func(r *run) {
			r.once("[fm:text]", "--approve", "auto", "--model", r.agent.model, "--effort", "low")
			r.ok(1)
			if a := r.asked(0); a.Model != r.agent.model || a.Effort != "low" {
				r.t.Errorf("model %s, effort %s", a.Model, a.Effort)
			}
		},
		"system prompt of lines": func(r *run) {
			r.once("[fm:text] first", "--approve", "auto", "--system", "SYSTEM-MARK")
			r.ok(1)
			id := one[pluginapi.SessionStart](r).SessionID
			if a := r.asked(0); !strings.Contains(a.System, "SYSTEM-MARK") || !strings.Contains(a.System, "Hermes") {
				r.t.Errorf("the system prompt is %q", a.System)
			}
			for mark, args := range map[string][]string{"": nil, "OTHER-MARK": {"--system", "OTHER-MARK"}} {
				next := r.again().once("[fm:text] again", append(args, "--approve", "auto", "--resume", id)...)
				next.ok(1)
				if a := next.asked(-1); strings.Contains(a.System, "SYSTEM-MARK") || !strings.Contains(a.System, mark) || !a.contains("] first") {
					r.t.Errorf("with %v the system prompt is %q", args, a.System)
				}
			}
		},
		"system prompt by ACP": func(r *run) {
			r.converse("--system", "SYSTEM-MARK")
			for _, prompt := range []string{"[fm:text] one", "[fm:text] two"} {
				r.prompt(prompt)
				r.until("turn_end")
			}
			r.send(map[string]any{"type": "end"})
			r.wait()
			r.ok(2)
			for _, i := range []int{0, -1} {
				if a := r.asked(i); !strings.Contains(a.System, "SYSTEM-MARK") || !strings.Contains(a.System, "Hermes") {
					r.t.Errorf("request %d: the system prompt is %q", i, a.System)
				}
			}
		},
		"lines go on": func(r *run) {
			r.once("[fm:text] first", "--approve", "auto")
			r.ok(1)
			r.tokens(1)
			id := one[pluginapi.SessionStart](r).SessionID
			for _, args := range [][]string{{"--resume", id}, {"--continue"}} {
				next := r.again().once("[fm:text] again", append(args, "--approve", "auto")...)
				next.ok(1)
				next.tokens(1)
				if start := one[pluginapi.SessionStart](next); start.SessionID != id || !start.Resumed || !next.asked(-1).contains("] first") {
					r.t.Errorf("%v: %+v, want %s", args, start, id)
				}
			}
		},
		"lines tell errors apart": func(r *run) {
			r.once("[fm:401]", "--approve", "auto").failed(pluginapi.CodeAuth, 5)
			r.again().once("[fm:credit]", "--approve", "auto").failed(pluginapi.CodeBilling, 5)
			r.again().once("[fm:context]", "--approve", "auto").failed(pluginapi.CodeContextExceeded, 15)
			r.again().once("[fm:text]", "--approve", "auto", "--resume", "20200101_000000_abcdef").failed(pluginapi.CodeSessionNotFound, 8)
		},
		"asking stores nothing": func(r *run) {
			out, err := r.amux(r.t.Context(), "sessions", "list", "hermes", "--json").Output()
			if err != nil || strings.Contains(string(out), "session_id") {
				r.t.Errorf("%v: %s%s", err, out, stderrOf(err))
			}
			if _, err := os.Stat(filepath.Join(r.dir, "home", ".hermes", "state.db")); !os.IsNotExist(err) {
				r.t.Errorf("a database was made: %v", err)
			}
		},
		"tools by ACP": func(r *run) {
			r.once("[fm:text-then-bash]", "--driver", "acp", "--approve", "auto")
			r.ok(1)
			r.tokens(2)
			if code := one[pluginapi.ShellExit](r).ExitCode; code == nil || *code != 0 || !strings.Contains(string(one[pluginapi.ToolResult](r).Output), "hi") {
				r.t.Errorf("exit %v, %+v", code, all[pluginapi.ToolResult](r))
			}
			failing := r.again().once("[fm:fail]", "--driver", "acp", "--approve", "auto")
			failing.ok(1)
			if code := one[pluginapi.ShellExit](failing).ExitCode; code == nil || *code != 3 {
				r.t.Errorf("shell exit %v, want 3", code)
			}
		},
		"rules are judged when it asks": func(r *run) {
			r.once("[fm:write="+r.path("made")+"]", "--approve", "rules", "--allow", "write_file")
			r.ok(1)
			r.want("approval_request", "approval_granted", "tool_result")
			if _, err := os.Stat(r.path("made")); err != nil {
				r.t.Errorf("what a rule allows was not done: %v", err)
			}
			r.again().once("[fm:write="+r.path("other")+"]", "--approve", "auto", "--deny", "write_file").ok(1)
			if _, err := os.Stat(r.path("other")); err == nil {
				r.t.Error("what a rule denies was done")
			}
		},
	} {
		if !selected(hermesRow, "besides: "+name) {
			continue
		}
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			do(newRun(t, hermesRow))
		})
	}
}
