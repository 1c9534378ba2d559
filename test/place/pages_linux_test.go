package place

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/test/dockerd"
	"github.com/amux-dev/amux/internal/test/home"
	"github.com/amux-dev/amux/internal/test/sshd"
)

// claude speaks as much of Claude Code's protocol as it takes to be asked something once.
const claude = `#!/bin/sh
[ "$1" != --version ] || { echo "2.1.50 (Claude Code)"; exit; }
session='"session_id":"00000000-0000-4000-8000-000000000001"'
while read -r line; do
	case $line in
	*'"control_request"'*)
		id=${line#*'"request_id":"'}
		echo "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"${id%%\"*}\",\"response\":{}}}" ;;
	*'"user"'*)
		echo changed >changed
		echo '{"type":"system","subtype":"init","cwd":"/","model":"none","tools":[],"mcp_servers":[],"permissionMode":"default",'$session'}'
		echo '{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"none","content":[{"type":"text","text":"It is done."}]},'$session'}'
		echo '{"type":"result","subtype":"success","is_error":false,"result":"It is done.","num_turns":1,"duration_ms":1,'$session'}' ;;
	esac
done
`

// page is what a page of the documentation shows first: settings, and commands to type.
func page(t *testing.T, name string) (settings string, commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "places", name))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for i, block := range strings.Split(string(text), "```") {
		kind, body, _ := strings.Cut(block, "\n")
		if i%2 == 1 && shown[kind] == "" {
			shown[kind] = body
		}
	}
	for line := range strings.Lines(shown["console"]) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok {
			t.Errorf("%s: %q is no command", name, line)
		}
		commands = append(commands, command)
	}
	if len(commands) < 4 || shown["toml"] == "" {
		t.Fatalf("%s: %d commands, settings %q", name, len(commands), shown["toml"])
	}
	return shown["toml"], commands
}

// types types commands in one shell, and wants each run to answer.
func (v *visitor) types(commands []string) {
	v.T.Helper()
	script := "set -e\n"
	runs := 0
	for _, command := range commands {
		script += command + "\n"
		if strings.HasPrefix(command, "amux run") {
			runs++
		}
	}
	said, err := v.Try(nil, "sh", "-c", script)
	if err != nil || strings.Count(said, "It is done.") != runs {
		v.T.Errorf("%v\n%s\n%s", err, script, said)
	}
}

// program puts a program into a folder.
func program(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// which is where a program is; without it the test is skipped.
func which(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: its page of docs/places is not typed", name)
	}
	return path
}

// first has programs of a folder be found first.
func (v *visitor) first(dir string) {
	at := slices.IndexFunc(v.Env, func(variable string) bool { return strings.HasPrefix(variable, "PATH=") })
	v.Env[at] = "PATH=" + dir + ":" + strings.TrimPrefix(v.Env[at], "PATH=")
}

// The page of each place can be typed as it stands.
func TestPages(t *testing.T) {
	t.Parallel()
	t.Run("ssh", func(t *testing.T) {
		settings, commands := page(t, "ssh.md")
		v := &visitor{home.New(t), sshd.Start(t)}
		v.server.Reach(t, "build-box", v.server.Port)
		app := filepath.Join(v.server.Home, "app")
		v.Sh(nil, "git", "clone", "-q", v.Dir, app)
		// Logins by this name find the agent; those of other tests do not.
		program(t, filepath.Join(v.server.Home, "pages"), "claude", claude)
		if err := os.WriteFile(filepath.Join(v.server.Home, ".bash_profile"), []byte("[ -z \"$PAGES\" ] || PATH=$HOME/pages:$PATH\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		v.server.Set(t, "build-box", "SetEnv PAGES=1")
		v.config(settings)
		v.types(commands)
	})
	t.Run("container", func(t *testing.T) {
		settings, commands := page(t, "container.md")
		engine := dockerd.Start(t)
		v := &visitor{home.New(t), nil}
		v.Env = append(v.Env, engine.Env(), "DOCKER_BUILDKIT=0")
		program(t, v.Dir, "claude", claude)
		program(t, v.Dir, "Dockerfile", "FROM "+dockerd.Image+"\nENV PATH=/bin\nCOPY claude /bin/claude\n")
		// The engine of the tests may not bound memory.
		v.config(strings.Replace(settings, `args = ["--memory", "4g"]`, "", 1))
		v.types(commands)
	})
	t.Run("kubernetes", func(t *testing.T) {
		settings, commands := page(t, "kubernetes.md")
		tools := filepath.Join(t.TempDir(), "tools")
		program(t, tools, "claude", claude)
		c := inCluster(t, tools)
		if err := os.WriteFile(c.config, []byte(strings.Replace(c.cluster.Config(), "contexts: [{name: test,", "contexts: [{name: work,", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		c.Env = append(c.Env, "KUBECONFIG="+c.config)
		c.visitor.config(strings.Replace(settings, "[places.cluster]", "[places.cluster]\nfolder = \"~\"", 1)) // a pod of this cluster has no /work
		c.types(commands)
		c.empty()
	})
	t.Run("helper", func(t *testing.T) {
		settings, commands := page(t, "helper.md")
		which(t, "python3")
		v := &visitor{home.New(t), nil}
		helper, err := filepath.Abs("../../docs/example-place/amux-place-home")
		if err != nil {
			t.Fatal(err)
		}
		here := strings.NewReplacer("/usr/local/bin/amux-place-home", helper, "/srv/agents", filepath.Join(v.User, "agents"))
		program(t, filepath.Join(v.User, "tools"), "claude", claude)
		v.first(filepath.Join(v.User, "tools"))
		for i := range commands {
			commands[i] = here.Replace(commands[i])
		}
		v.config(here.Replace(settings))
		v.types(commands)
	})
}
