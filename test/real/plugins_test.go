//go:build unix

package real

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	wait "github.com/amux-dev/amux/internal/test/agents"
)

// ownPlugin is what an agent's own commands do with a plugin in a folder.
type ownPlugin struct {
	add     [][]string // DIR is the folder, MARKET the one that has it
	answer  string     // on stdin
	id      string     // as the agent names it then
	version string
	source  string // what amux installs it from
	off     bool   // its settings keep it disabled when it comes back
}

// ownPlugins are the agents that have some.
var ownPlugins = map[string]ownPlugin{
	"claude":   {add: [][]string{{"plugin", "marketplace", "add", "MARKET"}, {"plugin", "install", "hello@local"}}, id: "hello@local", version: "1.2.3", source: "hello@local"},
	"codex":    {add: [][]string{{"plugin", "marketplace", "add", "MARKET"}, {"plugin", "add", "hello@local"}}, id: "hello@local", version: "1.2.3", source: "hello@local"},
	"copilot":  {add: [][]string{{"plugin", "install", "DIR"}}, id: "hello", version: "1.2.3", source: "DIR"},
	"gemini":   {add: [][]string{{"extensions", "link", "DIR", "--consent"}}, id: "hello", version: "1.2.3", source: "DIR"},
	"omp":      {add: [][]string{{"plugin", "link", "DIR"}}, id: "hello", version: "1.2.3", source: "DIR"},
	"openclaw": {add: [][]string{{"plugins", "install", "DIR", "--force", "--accept-capabilities"}}, id: "hello", version: "1.2.3", source: "DIR", off: true},
	"pi":       {add: [][]string{{"install", "DIR"}}, id: "hello", source: "DIR"}, // by its path, and of no version
	"qwen":     {add: [][]string{{"extensions", "link", "DIR"}}, answer: "y\n", id: "hello", version: "1.2.3", source: "DIR"},
}

// pluginFiles are a plugin of every agent's kind, and the marketplaces that have it.
var pluginFiles = map[string]string{
	".claude-plugin/marketplace.json": `{"name": "local", "owner": {"name": "dev"}, "plugins": [{"name": "hello", "source": "./hello", "description": "says hello"}]}`,
	".agents/plugins/marketplace.json": `{"name": "local", "interface": {"displayName": "Local"}, "plugins": [{"name": "hello", "source": {"source": "local", "path": "./hello"},
  "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}, "category": "Coding"}]}`,
	"hello/.claude-plugin/plugin.json": `{"name": "hello", "version": "1.2.3", "description": "says hello"}`,
	"hello/.codex-plugin/plugin.json":  `{"name": "hello", "version": "1.2.3", "description": "says hello"}`,
	"hello/plugin.json":                `{"name": "hello", "version": "1.2.3", "description": "says hello"}`,
	"hello/gemini-extension.json":      `{"name": "hello", "version": "1.2.3", "description": "says hello"}`,
	"hello/qwen-extension.json":        `{"name": "hello", "version": "1.2.3", "description": "says hello"}`,
	"hello/openclaw.plugin.json":       `{"id": "hello", "name": "hello", "version": "1.2.3", "configSchema": {"type": "object", "additionalProperties": false, "properties": {}}}`,
	"hello/package.json":               `{"name": "hello", "version": "1.2.3", "type": "module", "omp": {"extensions": ["./index.ts"]}, "openclaw": {"extensions": ["./index.js"]}, "pi": {"extensions": ["./index.ts"]}}`,
	"hello/index.js":                   "export default { id: \"hello\", register() {} };\n",
	"hello/index.ts":                   "export default function () {}\n",
	"hello/commands/hello.md":          "Say hello\n",
}

// amux agents plugins lists none, and then the one that the agent's own command has
// added; it removes that one, and installs it again. Of an agent that has none it says so.
func TestAgentPlugins(t *testing.T) {
	for _, a := range agents {
		if a.stores != "" {
			continue // its plugins are those of another
		}
		own, has := ownPlugins[a.id]
		if !selected(a, "plugins") {
			continue
		}
		t.Run(a.id, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, a)
			if can := capabilities(t, a.id)["list_plugins"]; can != has {
				t.Fatalf("declared: %v, tested: %v", can, has)
			}
			if can := capabilities(t, a.id)["change_plugins"]; can != has {
				t.Fatalf("changes declared: %v, tested: %v", can, has)
			}
			if !has {
				refusedOwn(r, "agents", "plugins", a.id)
				refusedOwn(r, "agents", "plugins", "install", a.id, "hello")
				return
			}
			env := r.amux(t.Context()).Env // once: it writes the agent's settings
			if found := listed(r, env, own.id); found != nil {
				t.Errorf("before it was added there is %+v", found)
			}
			market := filepath.Join(r.dir, "market")
			for name, content := range pluginFiles {
				file := filepath.Join(market, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range own.add {
				for i := range args {
					args[i] = strings.NewReplacer("DIR", filepath.Join(market, "hello"), "MARKET", market).Replace(args[i])
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				program, err := tc.Program(a.program)
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(ctx, program, args...)
				cmd.Env, cmd.Dir, cmd.Stdin = env, r.cwd, strings.NewReader(own.answer)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s %v: %v\n%s", a.program, args, err, out)
				}
			}
			found := listed(r, env, own.id)
			if found == nil || !found.Enabled || found.Version != own.version {
				t.Fatalf("after it was added there is %+v", found)
			}
			source := strings.ReplaceAll(own.source, "DIR", filepath.Join(market, "hello"))
			id := found.ID
			if a.id == "pi" {
				id = source // its list has another path than its command takes
			}
			ownAmux(r, env, "", "agents", "plugins", "remove", a.id, id)
			if found := listed(r, env, own.id); found != nil {
				t.Errorf("after it was removed there is %+v", found)
			}
			ownAmux(r, env, "", "agents", "plugins", "install", a.id, source)
			if found := listed(r, env, own.id); found == nil || found.Enabled == own.off || found.Version != own.version {
				t.Errorf("after it was installed there is %+v", found)
			}
		})
	}
}

// ownListed is a plugin in --json.
type ownListed struct {
	ID, Version, Path string
	Enabled           bool
}

// listed is a plugin in the agent's list, which may take the agent's command longer
// than amux waits on a busy machine.
func listed(r *run, env []string, id string) (found *ownListed) {
	r.t.Helper()
	var list []ownListed
	var said string
	defer func() {
		if r.t.Failed() {
			r.t.Logf("it has %+v; stderr: %s", list, said)
		}
	}()
	wait.Eventually(r.t, max(time.Minute, r.agent.patience), "the list comes", func() bool {
		cmd := exec.CommandContext(r.t.Context(), filepath.Join(binDir(), "amux"), "agents", "plugins", r.agent.id, "--json")
		cmd.Env, cmd.Dir = env, r.cwd
		out, err := cmd.Output()
		if exit, ok := err.(*exec.ExitError); ok {
			said = string(exit.Stderr)
		}
		return err == nil && json.Unmarshal(out, &list) == nil
	})
	for _, p := range list {
		if p.ID == id || strings.HasSuffix(p.ID, "/"+id) {
			return &p
		}
	}
	return nil
}
