package real

import (
	"cmp"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// option is a capability and the arguments that ask for it.
type option struct {
	capability string
	args       []string
	// seen shows that the option has its effect; scenario is the one that does.
	seen     func(r *run, args []string)
	scenario string
}

var options = []option{
	{capability: "model", args: []string{"--model", "MODEL"}, seen: func(r *run, args []string) {
		r.once("[fm:text]", args...)
		r.ok(1)
		if a := r.asked(0); !strings.Contains(a.Model, path.Base(r.agent.model)) {
			r.t.Errorf("model %s", a.Model)
		}
	}},
	{capability: "system_append", args: []string{"--system", "SYSTEM-MARK"}, seen: func(r *run, args []string) {
		r.once("[fm:text]", args...)
		r.ok(1)
		if !strings.Contains(r.asked(0).System, "SYSTEM-MARK") {
			r.t.Error("the system prompt does not have the addition")
		}
	}},
	{capability: "system_replace", args: []string{"--system", "x", "--system-mode", "replace"}, scenario: "system replaced"},
	{capability: "resume", args: []string{"--resume", "0123456789abcdef"}, scenario: "resume"},
	{capability: "continue_last", args: []string{"--continue"}, scenario: "resume"},
	{capability: "fork", args: []string{"--resume", "0123456789abcdef", "--fork"}, scenario: "fork"},
	{capability: "multi_turn", args: []string{"--input", "ndjson"}, scenario: "two turns"},
	{capability: "approvals", args: []string{"--approve", "ask"}, scenario: "approval granted"},
	{capability: "mcp", args: []string{"--mcp", "echo=/bin/true"}, scenario: "mcp"},
	{capability: "max_turns", args: []string{"--max-turns", "2"}, scenario: "max turns"},
	{capability: "json_schema", args: []string{"--json-schema", `{"type":"object"}`}, scenario: "json schema"},
	{capability: "attach_images", args: []string{"--file", "one.png"}, scenario: "image"},
	{capability: "attach_files", args: []string{"--file", "note.txt"}, seen: func(r *run, args []string) {
		r.once("[fm:text] read it", args...)
		r.ok(1)
		if !r.asked(0).contains("FILE-MARK") {
			r.t.Error("the file did not reach the model")
		}
	}},
	{capability: "no_session", args: []string{"--no-session"}, seen: func(r *run, args []string) {
		if kept := stored(r.again().once("[fm:text]")); kept != 1 && r.agent.id != "codex" {
			r.t.Errorf("%d sessions after a usual run", kept)
		}
		before := stored(r)
		r.once("[fm:text]", args...)
		r.ok(1)
		if after := stored(r); after != before {
			r.t.Errorf("%d sessions were %d before", after, before)
		}
	}},
	{capability: "add_dirs", args: []string{"--add-dir", "further"}, seen: func(r *run, args []string) {
		file := r.path("further/made")
		r.once("[fm:write="+file+"]", append(args, "--approve", "auto")...)
		r.ok(1)
		a := r.asked(0)
		if !strings.Contains(a.System, r.path("further")) && !a.contains(r.path("further")) {
			r.t.Error("the model was not told of the directory")
		}
		if _, err := os.Stat(file); err != nil {
			r.t.Error(err)
		}
	}},
	{capability: "tool_rules", args: []string{"--approve", "rules", "--allow", "SHELL(touch *)"}, seen: func(r *run, args []string) {
		r.once("[fm:touch="+r.path("made")+"]", args...)
		if _, err := os.Stat(r.path("made")); err != nil {
			r.t.Errorf("what a rule allows was not done: %v", err)
		}
	}},
}

// stored is how many sessions amux lists.
func stored(r *run) int {
	r.t.Helper()
	list, err := r.amux(r.t.Context(), "sessions", "list", cmp.Or(r.agent.stores, r.agent.id), "--json").Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Count(string(list), `"path"`)
}

// Each option that an agent has is seen in what its model is asked, here or in a
// scenario; one that it has not is refused before anything starts.
func TestOptions(t *testing.T) {
	for _, a := range agents {
		can := capabilities(t, a.id)
		can["tool_rules"] = can["tool_rules"] || can["approvals"] // amux judges what it is asked
		t.Run(a.id, func(t *testing.T) {
			t.Parallel()
			for _, o := range options {
				if !selected(a, "option "+o.capability) {
					continue
				}
				t.Run(o.capability, func(t *testing.T) {
					if can[o.capability] && o.scenario != "" {
						if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == o.scenario }) {
							t.Fatalf("there is no scenario %s", o.scenario)
						}
						if reason, ok := a.na[o.scenario]; ok {
							t.Skipf("declared, but not seen by %s: %s", o.scenario, reason)
						}
						return
					}
					if reason, ok := a.na["option "+o.capability]; ok {
						t.Skip(reason)
					}
					t.Parallel()
					r := newRun(t, a)
					for name, content := range map[string]string{"one.png": string(pixel(t)), "note.txt": "FILE-MARK\n"} {
						if err := os.WriteFile(r.path(name), []byte(content), 0o600); err != nil {
							t.Fatal(err)
						}
					}
					if err := os.Mkdir(r.path("further"), 0o700); err != nil {
						t.Fatal(err)
					}
					args := slices.Clone(o.args)
					for i := range args {
						args[i] = strings.NewReplacer("SHELL", r.agent.shell, "MODEL", r.agent.model).Replace(args[i])
					}
					if can[o.capability] {
						o.seen(r, args)
						return
					}
					r.plain = !slices.Contains(args, "ndjson")
					r.once("[fm:text]", args...)
					said := r.stderr.String()
					if r.exit != int(pluginapi.CodeCapability.Info().Exit) || !strings.Contains(said, "agent "+a.id+" ") && !strings.Contains(said, a.id+" cannot") || !strings.Contains(said, "amux: hint: ") {
						t.Errorf("exit %d, said %q", r.exit, said)
					}
					if n := len(r.model.Requests()); n != 0 {
						t.Errorf("%d requests at the model", n)
					}
					if runs, _ := filepath.Glob(filepath.Join(r.dir, "config", "runs", "0*")); len(runs) != 0 {
						t.Errorf("it left %q", runs)
					}
				})
			}
		})
	}
}

// capabilities are what the plugin that has the agent declares.
func capabilities(t *testing.T, agent string) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(binDir(), "plugins", "*", "describe.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no plugin is built: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var plugin struct {
			Agents []struct {
				ID           string          `json:"id"`
				Capabilities map[string]bool `json:"capabilities"`
			} `json:"agents"`
		}
		if err := json.Unmarshal(data, &plugin); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, a := range plugin.Agents {
			if a.ID == agent {
				return a.Capabilities
			}
		}
	}
	t.Fatalf("no plugin has %s", agent)
	return nil
}
