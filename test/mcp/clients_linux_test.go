package mcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/test/toolchain"
)

// inspect runs the MCP inspector's command line on amux mcp and returns what it prints.
func (h user) inspect(args ...string) (string, error) {
	h.T.Helper()
	cli, err := filepath.Abs(filepath.Join(inspectorDir(), "node_modules", ".bin", "mcp-inspector"))
	if err != nil {
		h.T.Fatal(err)
	}
	return h.Try(nil, append([]string{cli, "--cli", h.Amux, "mcp"}, args...)...)
}

func TestInspector(t *testing.T) {
	t.Parallel()
	if leftOut != "" {
		t.Skip(leftOut)
	}
	h := newHome(t)
	out, err := h.inspect("--method", "tools/list", "--strict")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var list struct {
		Tools []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Tools) != 8 {
		t.Errorf("tools/list prints %s", out)
	}
	type result struct {
		IsError           bool            `json:"isError"`
		StructuredContent json.RawMessage `json:"structuredContent"`
	}
	tool := func(name string, args ...string) string {
		t.Helper()
		all := []string{"--method", "tools/call", "--tool-name", name}
		for _, a := range args {
			all = append(all, "--tool-arg", a)
		}
		out, err := h.inspect(all...)
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		var r result
		if err := json.Unmarshal([]byte(out), &r); err != nil || r.IsError {
			t.Fatalf("%s prints %s", name, out)
		}
		return string(r.StructuredContent)
	}
	if out := tool("agents_list"); !strings.Contains(out, `"demo"`) {
		t.Errorf("agents_list has no demo: %s", out)
	}
	id := lastRun(t, []string{tool("run_start", "agent=demo", "prompt=hello", "approve=auto")}, 0)
	if out := tool("run_wait", `run_ids=["`+id+`"]`); !strings.Contains(out, `"completed"`) {
		t.Errorf("run_wait returns %s", out)
	}
	if out := tool("run_read", "run_id="+id); !strings.Contains(out, "hello") {
		t.Errorf("run_read returns %s", out)
	}
}

// TestClaudeCode has the real Claude Code start another one, wait for it, read its changes,
// and stop a third.
func TestClaudeCode(t *testing.T) {
	t.Parallel()
	if leftOut != "" {
		t.Skip(leftOut)
	}
	tc, err := toolchain.Install(t.Context()) // it is there: TestMain
	if err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	start := func(prompt string, more map[string]any) func([]string) toolCall {
		return func([]string) toolCall {
			in := map[string]any{"agent": "claude", "prompt": prompt, "approve": "auto", "cwd": h.Dir}
			for k, v := range more {
				in[k] = v
			}
			return toolCall{"run_start", in}
		}
	}
	d := newDirector(t,
		start("[fm:write="+filepath.Join(h.Dir, "made.txt")+"] make it", nil),
		func(r []string) toolCall {
			return toolCall{"run_wait", map[string]any{"run_ids": []string{lastRun(t, r, 0)}}}
		},
		func(r []string) toolCall {
			return toolCall{"run_diff", map[string]any{"run_id": lastRun(t, r, 0), "patch": true}}
		},
		start("[fm:text] talk", map[string]any{"conversation": true}),
		func(r []string) toolCall {
			return toolCall{"run_stop", map[string]any{"run_ids": []string{lastRun(t, r, 3)}}}
		},
		func(r []string) toolCall {
			return toolCall{"run_wait", map[string]any{"run_ids": []string{lastRun(t, r, 3)}}}
		},
		// It is no run below it.
		func([]string) toolCall { return toolCall{"run_list", map[string]any{"all": true}} },
		func([]string) toolCall { return toolCall{"run_stop", map[string]any{"run_ids": []string{"director"}}} },
	)
	env := append(toolchain.Env(h.User), toolchain.Anthropic("", d.URL)...)
	env = append(env, "PATH="+filepath.Dir(h.Amux)+":"+tc.Path())
	out, err := h.Try(env, h.Amux, "run", "claude", "--approve", "auto", "--name", "director", "--mcp", "amux="+h.Amux+" mcp", direction+" lead them", "--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := d.seen()
	if len(seen) != 8 {
		t.Fatalf("%d of 8 steps: %q\n%s", len(seen), seen, out)
	}
	for n, want := range []string{"run_id", `"completed"`, "made.txt", "run_id", "run_id", `"ended":true`, "run_id", "was started from here"} {
		if !strings.Contains(seen[n], want) {
			t.Errorf("step %d: no %s in %s", n, want, seen[n])
		}
	}
	if !strings.Contains(seen[2], "+hello") {
		t.Errorf("the diff is %s", seen[2])
	}
	if strings.Contains(seen[6], `"director"`) {
		t.Errorf("the list has the run above: %s", seen[6])
	}
	if data, err := os.ReadFile(filepath.Join(h.Dir, "made.txt")); err != nil || string(data) != "hello\nworld\n" {
		t.Errorf("made.txt is %q, %v", data, err)
	}
}
