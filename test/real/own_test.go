//go:build unix

package real

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	wait "github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// ownCommand is a command of an agent's own, with what it is given on stdin.
type ownCommand struct {
	args  []string
	input string
	// until ends the wait for an answer to the input; "": the command ends by itself.
	until string
}

// listsMCP is how agents list the MCP servers in their settings.
var listsMCP = map[string]ownCommand{
	"claude":        {args: []string{"mcp", "list"}},
	"codex":         {args: []string{"mcp", "list"}},
	"copilot":       {args: []string{"mcp", "list"}},
	"gemini":        {args: []string{"mcp", "list"}},
	"hermes":        {args: []string{"mcp", "list"}},
	"openclaw":      {args: []string{"mcp", "list"}},
	"opencode":      {args: []string{"mcp", "list"}},
	"opencode-http": {args: []string{"mcp", "list"}},
	"pi":            {args: []string{"mcp", "list"}},
	"qwen":          {args: []string{"mcp", "list"}},
}

// unlisted are agents without such a command: the server itself shows that it was started.
var unlisted = map[string]ownCommand{
	"omp": {args: []string{"--mode", "rpc"}, until: "\x00"},
}

// trust makes an agent read the settings of a folder, where it asks a person first, and
// returns a variable that does. Pi asks on a terminal only.
func trust(r *run) (variable string) {
	home := filepath.Join(r.dir, "home")
	write := func(name, text string) {
		r.t.Helper()
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			r.t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			r.t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			r.t.Fatal(err)
		}
	}
	switch r.agent.id {
	case "codex":
		write(".codex/config.toml", "\n# mine\n[projects.'"+r.cwd+"'] # trusted\ntrust_level = \"trusted\"\n")
	case "copilot":
		write(".copilot/config.json", `{"trusted_folders": ["`+r.cwd+`"]}`)
	case "gemini":
		return "GEMINI_CLI_TRUST_WORKSPACE=true"
	}
	return "AMUX_TEST_TRUSTED=1"
}

// run runs the agent's own command, and returns all that it prints.
func (c ownCommand) run(r *run, env []string, done func(said string) bool) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), max(time.Minute, r.agent.patience))
	defer cancel()
	program, err := tc.Program(r.agent.program)
	if err != nil {
		r.t.Fatal(err)
	}
	said := &lockedBuffer{}
	cmd := exec.CommandContext(ctx, program, c.args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, r.cwd, said, said
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 5*time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	_, _ = io.WriteString(in, c.input)
	if done != nil {
		wait.Eventually(r.t, max(time.Minute, r.agent.patience), strings.Join(c.args, " ")+" answers", func() bool { return done(said.String()) })
	}
	_ = in.Close()
	if done != nil {
		cancel()
	}
	_ = cmd.Wait() // pi mcp list fails where a server does
	return said.String()
}

// ownJSON is what an amux agents command prints with --json.
func ownJSON[T any](r *run, env []string, args ...string) (list []T) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(binDir(), "amux"), append(args, "--json")...)
	var said bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stderr = env, r.cwd, &said
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		r.t.Fatalf("amux %s: %v\n%s%s", strings.Join(args, " "), err, out, &said)
	}
	return list
}

// ownAmux runs an amux agents command that changes something.
func ownAmux(r *run, env []string, input string, args ...string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(binDir(), "amux"), args...)
	cmd.Env, cmd.Dir, cmd.Stdin = env, r.cwd, strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("amux %s: %v\n%s", strings.Join(args, " "), err, out)
	} else if strings.Contains(string(out), "amux-secret") {
		r.t.Errorf("amux %s prints a value: %s", strings.Join(args, " "), out)
	}
}

// refusedOwn holds that an agent without an ability is refused in one line.
func refusedOwn(r *run, args ...string) {
	r.t.Helper()
	out, err := r.amux(r.t.Context(), args...).CombinedOutput()
	exit, _ := err.(*exec.ExitError)
	if exit == nil || exit.ExitCode() != pluginapi.CodeCapability.Info().Exit || strings.Count(string(out), "amux: error: ") != 1 {
		r.t.Errorf("amux %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// A server that amux adds to the agent's settings is one that the agent itself knows, in
// each scope and of each transport; once it is removed the agent has none.
func TestAgentMCPSettings(t *testing.T) {
	for _, a := range agents {
		if a.stores != "" || !selected(a, "mcp settings") {
			continue // its settings are those of another
		}
		t.Run(a.id, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, a)
			list, lists := listsMCP[a.id]
			starts, started := unlisted[a.id]
			if can := capabilities(t, a.id)["mcp_settings"]; can != (lists || started) {
				t.Fatalf("declared: %v, tested: %v", can, lists || started)
			}
			if !lists && !started {
				refusedOwn(r, "agents", "mcp", "list", a.id)
				return
			}
			if err := os.Mkdir(r.path(".git"), 0o700); err != nil {
				t.Fatal(err)
			}
			env := r.amux(t.Context()).Env // once: it writes the agent's settings
			env = append(env, trust(r))
			mark := filepath.Join(r.dir, "started")
			server := filepath.Join(r.dir, "server")
			text := "#!/bin/sh\necho \"$AMUX_MARK\" >> '" + mark + "'\nAMUX_TEST_MCP=1 exec '" + mcpProgram(t) + "'\n"
			if err := os.WriteFile(server, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			type own struct{ Name, Scope, Path, Transport string }
			scopes := []string{"user", "project"}
			if a.id == "openclaw" || a.id == "hermes" {
				scopes = scopes[:1] // they have no settings of a project
			}
			for _, scope := range scopes {
				ownAmux(r, env, "MARK=amux-secret-"+scope+"\n", "agents", "mcp", "add", a.id, "amuxcmd-"+scope, "--scope", scope, "--env", "AMUX_MARK=MARK", "--values", "-", "--", server, "one two")
				ownAmux(r, env, "AUTH=Bearer amux-secret\n", "agents", "mcp", "add", a.id, "amuxurl-"+scope, "http://127.0.0.1:9/mcp", "--scope", scope, "--header", "Authorization=AUTH", "--values", "-")
			}
			servers := ownJSON[own](r, env, "agents", "mcp", "list", a.id)
			if len(servers) != 2*len(scopes) {
				t.Errorf("amux lists %+v", servers)
			}
			all := func(said string) bool {
				for _, s := range servers {
					if !strings.Contains(said, s.Name) && (a.id != "pi" || s.Scope != "project") {
						return false
					}
				}
				return true
			}
			if lists {
				if said := list.run(r, env, nil); !all(said) {
					t.Errorf("the agent's own list:\n%s", said)
				}
			} else {
				starts.run(r, env, func(string) bool {
					text, _ := os.ReadFile(mark)
					return strings.Contains(string(text), "amux-secret-user\n") && strings.Contains(string(text), "amux-secret-project\n")
				})
			}
			for _, s := range servers {
				ownAmux(r, env, "", "agents", "mcp", "remove", a.id, s.Name)
			}
			if left := ownJSON[own](r, env, "agents", "mcp", "list", a.id); len(left) != 0 {
				t.Errorf("amux lists %+v", left)
			}
			if lists {
				if said := list.run(r, env, nil); strings.Contains(said, "amuxcmd") || strings.Contains(said, "amuxurl") {
					t.Errorf("the agent's own list, after they were removed:\n%s", said)
				}
			}
		})
	}
}

// listsSkills is how agents tell which skills they find.
var listsSkills = map[string]ownCommand{
	"claude": {
		args:  []string{"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"},
		input: `{"type":"user","message":{"role":"user","content":"hi"}}` + "\n", until: `"skills":`,
	},
	"codex": {
		args: []string{"app-server"}, until: `"skills":`,
		input: `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"amux","version":"1"}}}` + "\n" +
			`{"method":"initialized"}` + "\n" + `{"id":2,"method":"skills/list","params":{"cwds":["CWD"]}}` + "\n",
	},
	"copilot":       {args: []string{"skill", "list"}},
	"gemini":        {args: []string{"skills", "list"}},
	"hermes":        {args: []string{"skills", "list"}},
	"omp":           {args: []string{"--mode", "rpc"}, input: `{"id":"1","type":"get_available_commands"}` + "\n", until: `"id":"1"`},
	"openclaw":      {args: []string{"skills", "list", "--json"}},
	"opencode":      {args: []string{"debug", "skill"}},
	"opencode-http": {args: []string{"debug", "skill"}},
	"pi":            {args: []string{"--mode", "rpc"}, input: `{"id":"1","type":"get_commands"}` + "\n", until: `"id":"1"`},
	"qwen":          {args: []string{"-p", "hi", "--output-format", "stream-json"}, until: `"slash_commands":`},
}

// A skill that amux copies into the agent's folder is one that the agent itself finds, in
// each scope; once it is removed the agent has none.
func TestAgentSkills(t *testing.T) {
	for _, a := range agents {
		if a.stores != "" || !selected(a, "skills") {
			continue // its folders are those of another
		}
		t.Run(a.id, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, a)
			list, has := listsSkills[a.id]
			if !has {
				refusedOwn(r, "agents", "skills", "list", a.id)
				return
			}
			list.input = strings.ReplaceAll(list.input, "CWD", r.cwd)
			if err := os.Mkdir(r.path(".git"), 0o700); err != nil {
				t.Fatal(err)
			}
			env := r.amux(t.Context()).Env
			env = append(env, trust(r))
			type own struct{ Name, Description, Scope, Path string }
			want := []string{"user", "project"}
			if a.id == "openclaw" || a.id == "hermes" {
				want = want[:1]
			}
			for _, scope := range want {
				skill := filepath.Join(r.dir, "amuxskill-"+scope)
				if err := os.Mkdir(skill, 0o700); err != nil {
					t.Fatal(err)
				}
				text := "---\nname: amuxskill-" + scope + "\ndescription: Says hello\n---\n\nSay hello.\n"
				if err := os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				ownAmux(r, env, "", "agents", "skills", "install", a.id, skill, "--scope", scope)
			}
			skills := ownJSON[own](r, env, "agents", "skills", "list", a.id)
			if len(skills) < len(want) {
				t.Errorf("amux lists %+v", skills)
			}
			var done func(string) bool
			if list.until != "" {
				done = func(said string) bool {
					_, behind, found := strings.Cut(said, list.until)
					return found && strings.Contains(behind, "\n")
				}
			}
			said := list.run(r, env, done)
			for _, scope := range want {
				if !strings.Contains(said, "amuxskill-"+scope) && (a.id != "pi" || scope != "project") {
					t.Errorf("the agent's own list lacks that of %s:\n%s", scope, said)
				}
				ownAmux(r, env, "", "agents", "skills", "remove", a.id, "amuxskill-"+scope)
			}
			if said := list.run(r, env, done); strings.Contains(said, "amuxskill-") {
				t.Errorf("the agent's own list, after they were removed:\n%s", said)
			}
		})
	}
}
