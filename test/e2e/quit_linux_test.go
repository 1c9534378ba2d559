package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/serve"
)

// Ctrl-\ ends every command as it ends other programs, and a run by a stop. No command
// prints its goroutines.
func TestQuit(t *testing.T) {
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("/tmp", "aq") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	config, runtime := root+"/config", root+"/run"
	for dir, mode := range map[string]os.FileMode{config: 0o700, runtime: 0o700} {
		if err := os.Mkdir(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	const settings = "[agents.slow]\nadapter = \"command\"\ncommand = \"echo begun; sleep 1000\"\n"
	if err := os.WriteFile(config+"/config.toml", []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
		var stderr bytes.Buffer
		cmd := exec.Command(amux, args...)
		cmd.Dir, cmd.Stderr = root, &stderr
		cmd.Env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+config, "XDG_RUNTIME_DIR="+runtime, "HOME="+root)
		return cmd, &stderr
	}
	run := func(args ...string) string {
		t.Helper()
		cmd, stderr := command(args...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("amux %v: %v\n%s", args, err, stderr)
		}
		return string(out)
	}
	t.Cleanup(func() { _ = stopServe(runtime) })
	state := func(name string) string {
		var info struct{ State string }
		if err := json.Unmarshal([]byte(run("inspect", name, "--json")), &info); err != nil {
			t.Fatal(err)
		}
		return info.State
	}
	// quit starts a command, quits it once ready says so, and wants that code.
	quit := func(code int, ready func(pid int, out *os.File) bool, args ...string) {
		t.Helper()
		cmd, stderr := command(args...)
		out, err := os.Create(filepath.Join(root, "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); !ready(cmd.Process.Pid, out); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				_ = cmd.Process.Kill()
				t.Fatalf("amux %v is not ready:\n%s", args, stderr)
			}
		}
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != code || strings.Contains(stderr.String(), "goroutine ") {
			t.Errorf("amux %v: exit code %d, want %d\n%.400s", args, got, code, stderr)
		}
	}
	begun := func(_ int, out *os.File) bool { // what is no terminal gets text late, events at once
		data, _ := os.ReadFile(out.Name())
		return bytes.Contains(data, []byte("begun"))
	}
	looks := 0 // in a row: whoever asks for the state opens the file for a moment
	follows := func(pid int, _ *os.File) bool {
		dir := fmt.Sprintf("/proc/%d/fd/", pid)
		files, _ := os.ReadDir(dir)
		open := slices.ContainsFunc(files, func(f os.DirEntry) bool {
			to, _ := os.Readlink(dir + f.Name())
			return filepath.Base(to) == "events.jsonl"
		})
		if looks++; !open {
			looks = 0
		}
		return looks == 20
	}
	quit(131, begun, "run", "slow", "x", "--name", "front", "--json")
	if got := state("front"); got != "canceled" {
		t.Errorf("the run is %s", got)
	}

	run("run", "-d", "slow", "x", "--name", "back")
	id := idOfRunning(t, run, "back")
	quit(131, begun, "logs", "-f", "back", "--json")
	quit(0, follows, "attach", "back")
	waiting := time.Now()
	quit(131, func(int, *os.File) bool { return time.Since(waiting) > 500*time.Millisecond }, "wait", "back")
	reply, err := serve.Call(context.Background(), filepath.Join(runtime, "amux"), serve.Request{Op: "pid"})
	if err != nil {
		t.Fatal(err)
	}
	start, _ := process.Start(reply.PID)
	if err := syscall.Kill(reply.PID, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	for process.Alive(process.ID{PID: reply.PID, Start: start}) {
		time.Sleep(time.Millisecond)
	}
	if len(process.Marked(id)) == 0 {
		t.Error("the detached run ended with its server")
	}
	run("stop", "back")
	stopped, _ := command("wait", "back")
	_ = stopped.Run()
	if got := state("back"); got != "canceled" {
		t.Errorf("the detached run is %s", got)
	}
}

// idOfRunning waits until a run runs, and gives its id.
func idOfRunning(t *testing.T, run func(...string) string, name string) string {
	t.Helper()
	for {
		var info struct {
			ID    string
			RunID string `json:"run_id"`
			State string
		}
		if err := json.Unmarshal([]byte(run("inspect", name, "--json")), &info); err != nil {
			t.Fatal(err)
		}
		if info.State == "running" {
			if info.RunID != "" {
				return info.RunID
			}
			return info.ID
		}
		time.Sleep(5 * time.Millisecond)
	}
}
