package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Every command in the guide is run, in its order, in one shell.
func TestWritingAnAdapter(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a plugin")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "writing-an-adapter.md"))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	commands := 0
	for i, block := range strings.Split(string(page), "```") {
		if i%2 == 0 || !strings.HasPrefix(block, "console\n") {
			continue
		}
		for line := range strings.Lines(strings.TrimPrefix(block, "console\n")) {
			command, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				t.Errorf("a line that is no command: %q", line)
			}
			commands++
			script.WriteString("echo '+ '" + quoteShell(command) + "\n" + command)
		}
	}
	if commands < 15 {
		t.Fatalf("only %d commands were found", commands)
	}
	home := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", script.String())
	cmd.Dir = t.TempDir()
	cmd.Env = []string{
		"HOME=" + home, "PATH=" + filepath.Join(root, "bin") + ":" + os.Getenv("PATH"), "AMUX=" + root, "AGENT_MUX_PROJECT_DIR=" + cmd.Dir,
		"GOPROXY=off", "GOFLAGS=-mod=mod", "GOCACHE=" + goEnv(t, "GOCACHE"), "GOMODCACHE=" + goEnv(t, "GOMODCACHE"),
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"You said hello", "✓ acme 0.1.0: signed by acme", "signed by acme"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
}

func quoteShell(text string) string {
	return "'" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "'", `'\''`) + "'"
}
