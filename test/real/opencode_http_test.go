package real

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/toolchain"
	"github.com/amux-dev/amux/pluginapi"
)

var opencodeHTTPRow = agentRow{
	id: "opencode-http", program: "opencode", env: opencodeEnv, read: readChat, shell: "bash",
	model: "fake/other-model", mcpTool: "echo_echo",
	noCacheWrites: true, patience: 3 * time.Minute, slow: true,
	with: []string{"opencode"},
	lacks: map[string]string{
		"tool_input_delta": "a tool is told when it is whole",
		"how long to wait": "it tells the time at which it tries again, not how long that is",
	},
	na: map[string]string{
		"max turns":                "it has no limit of requests in a turn, and amux counts prompts",
		"max budget":               "it has no limit of money",
		"system replaced":          "it can add to its system prompt only",
		"prompt above the context": "it compacts the conversation instead and goes on",
	},
	elsewise: map[string]otherCode{
		"a flag that the agent does not know": {pluginapi.CodeAgentFailed, "it prints its help and does not name the flag"},
	},
}

// serveOpencode starts a server of the user's own, and gives its URL.
func (r *run) serveOpencode(password string) (url string, server *exec.Cmd) {
	r.t.Helper()
	program, err := tc.Program("opencode")
	if err != nil {
		r.t.Fatal(err)
	}
	home := filepath.Join(r.dir, "home")
	server = exec.Command(program, "serve", "--hostname=127.0.0.1", "--port=0")
	server.Dir = r.cwd
	server.Env = append(toolchain.Env(home), opencodeEnv(home, r.provider)...)
	server.Env = append(server.Env, "PATH="+tc.Path(), "TMPDIR="+filepath.Join(r.dir, "tmp"), "OPENCODE_SERVER_PASSWORD="+password)
	stdout, err := server.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if m := regexp.MustCompile(`listening on (http://\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			return m[1], server
		}
	}
	r.t.Fatal("the server did not say its URL")
	return "", nil
}

// TestOpencodeHTTPOptions is what OpenCode's server has besides the scenarios: its
// death, servers that run already, and options that no scenario has.
func TestOpencodeHTTPOptions(t *testing.T) {
	for name, do := range map[string]func(*run){
		"the server is killed": func(r *run) {
			r.start("[fm:sleep]", "--approve", "auto")
			r.until("shell_start")
			r.running(`"sleep 987`)
			killed := 0
			for _, p := range processesWith(r.events[0].RunID) {
				if pid, command, _ := strings.Cut(p, " "); strings.Contains(command, "opencode serve") && !strings.Contains(command, "amux-bridge") {
					n, _ := strconv.Atoi(pid)
					if server, err := os.FindProcess(n); err == nil && server.Kill() == nil {
						killed++
					}
				}
			}
			r.wait()
			end := r.failed(pluginapi.CodeAgentCrash, 12)
			if killed != 1 || !strings.Contains(end.Message, "the server ended: signal: killed") {
				r.t.Errorf("%d servers killed: %s", killed, end.Message)
			}
			r.want("tool_error", "crash", "run_end")
		},
		"a server that runs already": func(r *run) {
			const password = "of-the-user-himself"
			url, server := r.serveOpencode(password)
			r.env = append(r.env, "AMUX_OPENCODE_URL="+url, "OPENCODE_SERVER_PASSWORD="+password)
			file := r.path("made")
			r.once("[fm:touch=" + file + "]")
			r.ok(1)
			r.want("approval_request", "approval_denied", "tool_error")
			id := one[pluginapi.SessionStart](r).SessionID
			next := r.again().once("[fm:bash] again", "--resume", id, "--fork", "--approve", "auto")
			next.ok(1)
			if start := one[pluginapi.SessionStart](next); start.ForkedFrom != id || !next.asked(-1).contains(file) {
				r.t.Errorf("%+v", start)
			}
			if err := server.Process.Signal(syscall.Signal(0)); err != nil {
				r.t.Errorf("the server was ended: %v", err)
			}
			wrong := r.again()
			wrong.env = append(wrong.env, "OPENCODE_SERVER_PASSWORD=another")
			wrong.once("[fm:text]").failed(pluginapi.CodeAuth, 5)
			server.Process.Kill()
			server.Wait()
			r.again().once("[fm:text]").failed(pluginapi.CodeNetwork, 1)
		},
		"a model that is not there": func(r *run) {
			r.once("[fm:text]", "--model", "fake/none")
			end := r.failed(pluginapi.CodeValidation, 2)
			if !strings.Contains(end.Message, "Model not found: fake/none") {
				r.t.Errorf("message %q", end.Message)
			}
			r.again().once("[fm:text]", "--model", "fake/none", "--effort", "low").failed(pluginapi.CodeCapability, 6)
		},
	} {
		if !selected(opencodeHTTPRow, "besides: "+name) {
			continue
		}
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			do(newRun(t, opencodeHTTPRow))
		})
	}
}
