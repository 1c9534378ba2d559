package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Each exit code of the table in docs/guide.md is that of a command line, and no other
// has been documented.
func TestEachExitCode(t *testing.T) {
	t.Parallel()
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(guide), "\n## Exit codes\n")
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| \S`).FindAllStringSubmatch(table, -1) {
		documented[row[1]] = true
	}

	root, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	const settings = "[agents.slow]\nadapter = \"command\"\ncommand = \"echo begun; sleep 1000\"\n"
	if err := os.WriteFile(root+"/config.toml", []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(ctx context.Context, script string) (*exec.Cmd, *bytes.Buffer) {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, "sh", "-c", script)
		cmd.Dir, cmd.Stderr = root, &stderr
		cmd.Env = []string{"HOME=" + root, "XDG_RUNTIME_DIR=" + root, "AGENT_MUX_CONFIG_DIR=" + root, "PATH=" + filepath.Dir(amux) + ":/usr/bin:/bin", "NO_COLOR=1"}
		return cmd, &stderr
	}
	seen := map[string]bool{}
	check := func(want, script string, cmd *exec.Cmd, stderr *bytes.Buffer) {
		t.Helper()
		if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != want {
			t.Errorf("%s: exit code %s, want %s: %s", script, got, want, stderr)
		}
		seen[want] = true
	}
	ctx, cancel := context.WithTimeout(t.Context(), hostileTime)
	defer cancel()
	const begun = `for i in $(seq 600); do amux logs RUN 2>/dev/null | grep -q begun && break; sleep 0.1; done`
	for _, test := range []struct{ code, script string }{
		{"0", "amux run demo '[say:ok]'"},
		{"1", "amux run demo '[fail:AGENT_FAILED]'"},
		{"2", "amux run demo --effort huge hi"},
		{"3", "amux run demmo hi"},
		{"4", "amux run claude hi"},
		{"5", "amux run demo '[fail:AUTH_ERROR]'"},
		{"6", "amux run demo --resume abc hi"},
		{"7", "mkdir wrong && chmod 700 wrong && echo agent = 7 > wrong/config.toml && amux run demo hi --config-dir wrong"},
		{"8", "amux sessions show nope"},
		{"9", "amux run demo '[fail:PROFILE_NOT_FOUND]'"},
		{"10", "amux plugin info nope"},
		{"11", "amux run demo --timeout 300ms --grace 100ms '[sleep:60]'"},
		{"12", "amux run demo '[exit:7]'"},
		{"13", "amux run slow x --name away --json >/dev/null & " + strings.ReplaceAll(begun, "RUN", "away") + "; amux stop away >/dev/null; wait $!"},
		{"14", "amux run demo '[fail:RATE_LIMITED]'"},
		{"15", "amux run demo '[fail:CONTEXT_EXCEEDED]'"},
		{"16", `printf '{"type":"prompt","text":"[say:one]"}\n{"type":"prompt","text":"[sleep:60]"}\n' | amux run demo --json --input ndjson --max-tokens 10`},
		{"17", "amux run demo '[say:ok]' --name torn && echo torn >> runs/$(amux inspect torn --json | sed -n 's/.*\"run_id\": \"\\(.*\\)\".*/\\1/p')/events.jsonl && amux logs torn"},
	} {
		cmd, stderr := command(ctx, test.script)
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Fatal(err)
		}
		check(test.code, test.script, cmd, stderr)
		if test.code != "0" && !strings.Contains(stderr.String(), "amux: ") || strings.Contains(stderr.String(), "goroutine ") {
			t.Errorf("%s: %s", test.script, stderr)
		}
	}
	for code, signal := range map[string]syscall.Signal{"129": syscall.SIGHUP, "130": syscall.SIGINT, "131": syscall.SIGQUIT, "143": syscall.SIGTERM} {
		script := "exec amux run slow x --json --name by" + code
		cmd, stderr := command(ctx, script)
		out, err := os.Create(filepath.Join(root, "out"+code))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		agentSays(ctx, t, out.Name(), "begun")
		_ = cmd.Process.Signal(signal)
		_ = cmd.Wait()
		check(code, fmt.Sprint(script, ", ", signal), cmd, stderr)
	}
	// Nobody reads what it prints.
	cmd, stderr := command(ctx, "exec amux run demo '[say:ok]' --json")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	cmd.Stdout = writer
	_ = cmd.Run()
	writer.Close()
	check("141", "amux run | true", cmd, stderr)

	for code := range documented {
		if !seen[code] {
			t.Errorf("no command line gave the documented exit code %s", code)
		}
	}
	for code := range seen {
		if !documented[code] {
			t.Errorf("exit code %s is not in docs/guide.md", code)
		}
	}
}

// agentSays waits until a file has a text.
func agentSays(ctx context.Context, t *testing.T, path, text string) {
	t.Helper()
	for data := []byte(nil); !bytes.Contains(data, []byte(text)); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("%s lacks %q: %s", path, text, data)
		}
		data, _ = os.ReadFile(path)
	}
}
