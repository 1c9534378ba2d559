package real

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/fakemodel"
	"github.com/amux-dev/amux/internal/test/toolchain"
	"github.com/amux-dev/amux/pluginapi"
)

// TestOpenclawOptions is what OpenClaw has besides the scenarios, which are by its
// command exec: sessions that go on, a gateway, its own screen.
func TestOpenclawOptions(t *testing.T) {
	for name, do := range map[string]func(*run){
		"a session goes on": func(r *run) {
			r.once("[fm:touch=made] first", "--driver", "local", "--model", "fake/other-model", "--effort", "low")
			r.ok(1)
			r.tokens(2)
			if a := r.asked(0); a.Model != "other-model" || a.Effort != "low" {
				r.t.Errorf("model %s, effort %s", a.Model, a.Effort)
			}
			// It works in the folder of the run, and adds nothing of its own to it.
			if entries, _ := os.ReadDir(r.cwd); len(entries) != 1 || entries[0].Name() != "made" {
				r.t.Errorf("the folder has %v", entries)
			}
			id := one[pluginapi.SessionStart](r).SessionID
			next := r.again().once("[fm:text] second", "--resume", id)
			next.ok(1)
			next.tokens(1)
			if start := one[pluginapi.SessionStart](next); start.SessionID != id || !start.Resumed || !next.asked(-1).contains("] first") {
				r.t.Errorf("resumed %s: %+v", id, start)
			}
			r.listed(id)
		},
		"an mcp server": func(r *run) {
			r.once("[fm:mcp=echo__echo]", "--env", mcpEnv+"=1", "--mcp", "echo="+mcpProgram(r.t))
			r.ok(1)
			if a := r.asked(-1); !a.contains("echo: ping") {
				r.t.Errorf("the model was not told what the server answered; it has %q, and was told %q", a.Tools, a.Texts)
			}
		},
		"a gateway": func(r *run) {
			gateway := r.gateway()
			r.converse("--driver", "acp", "--approve", "auto", "--effort", "low")
			r.prompt("[fm:text-then-bash] one")
			r.until("turn_end")
			r.prompt("[fm:sleep] two")
			r.until("shell_start")
			r.send(map[string]any{"type": "interrupt"})
			r.until("turn_end")
			r.prompt("[fm:text] three")
			r.until("turn_end")
			r.send(map[string]any{"type": "end"})
			r.wait()
			r.ok(3)
			r.want("session_start", "turn_start", "tool_call_start", "tool_call_ready", "shell_start", "shell_exit", "tool_result", "message_stop",
				"turn_end", "shell_start", "interrupted", "turn_end", "message_stop", "turn_end")
			if code := all[pluginapi.ShellExit](r)[0].ExitCode; code == nil || *code != 0 {
				r.t.Errorf("shell exit %v", code)
			}
			if !r.asked(-1).contains("] one") || r.finalText() != fakemodel.HelloText {
				r.t.Errorf("the last turn does not know the first; said %q", r.finalText())
			}
			id := one[pluginapi.SessionStart](r).SessionID
			next := r.again()
			next.once("[fm:text] four", "--driver", "acp", "--approve", "auto", "--resume", id)
			next.ok(1)
			if !next.asked(-1).contains("] one") {
				r.t.Error("the session did not go on")
			}
			// What the provider refuses is not told there: silence is no success.
			r.again().once("[fm:401]", "--driver", "acp", "--approve", "auto").failed(pluginapi.CodeAgentFailed, 1)
			if err := gateway.Process.Signal(syscall.Signal(0)); err != nil {
				r.t.Errorf("the gateway is gone: %v", err)
			}
		},
		"no gateway": func(r *run) {
			token := filepath.Join(r.dir, "token")
			if err := os.WriteFile(token, []byte("fake-token"), 0o600); err != nil {
				r.t.Fatal(err)
			}
			r.env = append(r.env, "AMUX_OPENCLAW_URL=ws://127.0.0.1:9", "AMUX_OPENCLAW_TOKEN_FILE="+token)
			r.once("[fm:text]", "--driver", "acp", "--approve", "auto").failed(pluginapi.CodeNetwork, 1)
		},
		"its own screen": func(r *run) {
			r.start("[fm:text] hello", "--pty", "--approve", "auto")
			id := r.until("run_state").RunID
			shows := func(text string) {
				r.t.Helper()
				var screen []byte
				for deadline := time.Now().Add(r.agent.patience); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
					screen, _ = r.amux(r.t.Context(), "screen", id).CombinedOutput()
					if strings.Contains(string(screen), text) {
						return
					}
				}
				r.t.Fatalf("the screen does not show %q:\n%s", text, screen)
			}
			shows(fakemodel.HelloText)
			if output, err := r.amux(r.t.Context(), "send", id, "--keys", "=/exit", "Enter").CombinedOutput(); err != nil {
				r.t.Fatalf("amux send: %v\n%s", err, output)
			}
			r.wait()
			if end := r.end(); r.exit != 0 || end.State != "completed" {
				r.t.Errorf("exit %d, state %s", r.exit, end.State)
			}
			r.want("turn_start", "turn_end", "run_end")
		},
	} {
		if !selected(openclawRow, "besides: "+name) {
			continue
		}
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			agent := openclawRow
			agent.unpriced = name == "a gateway"
			agent.lacks = map[string]string{}
			do(newRun(t, agent))
		})
	}
}

// listed waits until amux lists a session. The CLI is asked, and may need longer
// than amux gives it where much else runs.
func (r *run) listed(id string) {
	r.t.Helper()
	var list []byte
	for deadline := time.Now().Add(r.agent.patience); time.Now().Before(deadline); {
		var err error
		if list, err = r.amux(r.t.Context(), "sessions", "list", r.agent.id, "--json", "--all").CombinedOutput(); err != nil {
			continue
		}
		if strings.Contains(string(list), id) {
			return
		}
		break
	}
	r.t.Errorf("session %s is not listed: %s", id, list)
}

// gateway starts one, as its user would, and waits until it listens.
func (r *run) gateway() *exec.Cmd {
	r.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	program, err := tc.Program("openclaw")
	if err != nil {
		r.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	token := filepath.Join(r.dir, "token")
	if err := os.WriteFile(token, []byte("fake-token"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	home := filepath.Join(r.dir, "home")
	var log lockedBuffer
	cmd := exec.CommandContext(context.Background(), program, "gateway", "run", "--port", port, "--bind", "loopback", "--auth", "token")
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.cwd, &log, &log
	cmd.Env = append(toolchain.Env(home), openclawEnv(home, r.provider)...)
	cmd.Env = append(cmd.Env, "PATH="+tc.Path(), "OPENCLAW_GATEWAY_TOKEN=fake-token", "OPENCLAW_DISABLE_BONJOUR=1", "OPENCLAW_SKIP_CHANNELS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		if r.t.Failed() {
			r.t.Logf("gateway %s: %.20000s", strconv.Itoa(cmd.Process.Pid), log.String())
		}
	})
	for deadline := time.Now().Add(r.agent.patience); ; time.Sleep(200 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the gateway does not listen: %s", log.String())
		}
	}
	r.env = append(r.env, "AMUX_OPENCLAW_URL=ws://"+address, "AMUX_OPENCLAW_TOKEN_FILE="+token)
	return cmd
}
