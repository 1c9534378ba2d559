package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A limit of the user's own shell that amux, its shim or a plugin runs into is named, with
// the way out, wherever it is met; nobody is told to reinstall anything.
func TestLimitsOfTheShell(t *testing.T) {
	t.Parallel()
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	home := runtimeDir(t)
	run := func(home, script string, who *syscall.Credential) (stderr string, code int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), hostileTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(script, "AMUX", amux))
		cmd.Env, cmd.Dir = []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + home, "PATH=" + os.Getenv("PATH")}, home
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Skipf("SKIPPED: sh cannot be run as it is to: %v", err)
		}
		if ctx.Err() != nil {
			t.Fatalf("%s hangs: %s", script, &errs)
		}
		return errs.String(), cmd.ProcessState.ExitCode()
	}
	limited := func(resource string, value int, home string) (stderr string, code int) {
		return run(home, fmt.Sprintf("ulimit -%s %d && exec AMUX run demo '[say:ok]'", resource, value), nil)
	}
	refused := func(name, stderr string, code int, wants ...string) {
		t.Helper()
		bad := code == 0 || strings.Count(stderr, "amux: error: ") != 1 || strings.Contains(stderr, "reinstall") || strings.Contains(stderr, "doctor") || strings.Contains(stderr, "goroutine ")
		for _, want := range wants {
			bad = bad || !strings.Contains(stderr, want)
		}
		if bad {
			t.Errorf("%s: exit code %d, want %q: %s", name, code, wants, stderr)
		}
	}

	stderr, code := limited("f", 8, runtimeDir(t)) // the plugin's copy
	refused("no plugin yet, ulimit -f 8", stderr, code, "cannot write in ", "this process may not write larger files", "hint: raise the limit: ulimit -f")
	if stderr, code := run(home, "exec AMUX run demo '[say:ok]'", nil); code != 0 {
		t.Fatalf("without a limit: %d: %s", code, stderr)
	}
	for _, blocks := range []int{0, 1, 2, 4} { // run.json, the exit record, the journal
		stderr, code := limited("f", blocks, home)
		refused(fmt.Sprint("ulimit -f ", blocks), stderr, code, "the folder of the run", "ulimit -f")
	}
	// A full disk is waited for half a minute, this limit is not.
	begun := time.Now()
	stderr, code = run(home, "ulimit -f 8 && exec AMUX run demo hi", nil)
	refused("events that outgrow ulimit -f 8", stderr, code, "ulimit -f")
	const flood = `[agents.flood]
adapter = "command"
command = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"
`
	if err := os.WriteFile(home+"/.agent-mux/config.toml", []byte(flood), 0o600); err != nil {
		t.Fatal(err)
	}
	stderr, code = run(home, "ulimit -f 64 && exec AMUX run flood hi", nil)
	refused("a journal that outgrows ulimit -f 64", stderr, code, "ulimit -f")
	if took := time.Since(begun); took > 25*time.Second {
		t.Errorf("runs that outgrew ulimit -f took %v", took)
	}

	// The runtime of Go itself needs eight. Around what is enough it is a matter of timing
	// what is refused.
	enough := 0
	for files := 8; enough < 4 && files < 100 && !t.Failed(); files++ {
		if stderr, code = limited("n", files, home); code != 0 {
			refused(fmt.Sprint("ulimit -n ", files), stderr, code, "open", "hint: raise the limit: ulimit -n")
		} else if enough++; files < 10 {
			t.Errorf("%d descriptors are enough, so nothing was tested", files)
		}
	}

	who, mine := (*syscall.Credential)(nil), runtimeDir(t)
	if os.Getuid() == 0 {
		who = &syscall.Credential{Uid: 54321, Gid: 54321}
		if err := errors.Join(os.Chown(mine, 54321, 54321), os.Chmod(mine, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	if stderr, code = run(mine, "exec AMUX version", who); code != 0 {
		t.Skipf("SKIPPED: another user cannot run %s: %s", amux, stderr)
	}
	stderr, code = run(mine, "ulimit -u 24 2>/dev/null || ulimit -p 24; exec AMUX run demo '[say:ok]'", who)
	refused("ulimit -u 24", stderr, code, "you may have 24 processes and threads", "ulimit -u")
}

// An agent that the system cannot start says why, read from its file.
func TestAgentThatCannotStart(t *testing.T) {
	t.Parallel()
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	home, config, runtime := t.TempDir(), t.TempDir(), runtimeDir(t)
	agents := []struct{ name, content, says string }{
		{"text", "I am a text\n", "nor a script with a #! line"},
		{"interpreter", "#!/no/such/interpreter\n", "its interpreter /no/such/interpreter does not exist here"},
		{"mark", "\xef\xbb\xbf#!/bin/sh\n", "byte order mark"},
		{"lines", "#!/bin/sh\r\n", "carriage return"},
		{"empty", "", "it is an empty file"},
		{"windows", "MZ\x90\x00", "it is a program for Windows"},
	}
	var settings strings.Builder
	for _, agent := range agents {
		path := filepath.Join(home, agent.name)
		if err := os.WriteFile(path, []byte(agent.content), 0o700); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&settings, "[agents.%s]\nadapter = \"command\"\ncommand = [%q]\n", agent.name, path)
	}
	if err := os.WriteFile(config+"/config.toml", []byte(settings.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, agent := range agents {
		for _, flag := range []string{"", " --json", " -d", " --pty"} {
			if flag != "" && agent.name != "interpreter" {
				continue
			}
			line := "run " + agent.name + " hi" + flag
			stdout, stderr, _ := tryHostile(t, amux, home, home, config, runtime, strings.Fields(line)...)
			if !strings.Contains(stderr, "amux: error: agent "+agent.name+": cannot start "+filepath.Join(home, agent.name)+": ") ||
				!strings.Contains(stderr, agent.says) || strings.Count(stderr, "error: ") != 1 {
				t.Errorf("amux %s: %s%s", line, stdout, stderr)
			}
			if hint := strings.Contains(stderr, "amux: hint: "); hint != (agent.name != "empty") {
				t.Errorf("amux %s: hint %v: %s", line, hint, stderr)
			}
			if flag == " --json" && (!strings.Contains(stdout, `"code":"SPAWN_ERROR"`) || !strings.Contains(stdout, `"hint":"install it, or correct the #! line"`)) {
				t.Errorf("amux %s: %s", line, stdout)
			}
		}
	}
}
