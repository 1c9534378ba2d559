//go:build unix

package page

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/home"
	"github.com/amux-dev/amux/internal/test/npm"
)

// The terminal that the page has is the one that its makers have published, but for the last
// line, which names a file that is not there.
func sameTerminal(t *testing.T, work string) {
	t.Helper()
	for name, from := range map[string]string{"xterm.mjs": "xterm/lib/xterm.mjs", "xterm.css": "xterm/css/xterm.css", "LICENSE": "xterm/LICENSE", "addon-fit.mjs": "addon-fit/lib/addon-fit.mjs"} {
		mine, err := os.ReadFile(filepath.Join("../../cmd/amux/amux-api/internal/page/site/xterm", name))
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := os.ReadFile(filepath.Join(work, "node_modules/@xterm", filepath.FromSlash(from)))
		if err != nil {
			t.Fatal(err)
		}
		published, _, _ := bytes.Cut(theirs, []byte("//# sourceMappingURL"))
		if !bytes.Equal(bytes.TrimSpace(mine), bytes.TrimSpace(published)) {
			t.Errorf("%s is not that of npm", name)
		}
	}
}

// What a person does on the page, and what is promised of it. AMUX_TEST_PICTURE=FILE takes
// the picture of docs.
func TestPage(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	browser, missing := exec.LookPath("chromium")
	if testing.Short() || err != nil || missing != nil {
		t.Skip("it needs Node.js and chromium (make test installs that for root), and -short leaves it out")
	}
	work, err := filepath.Abs("../../.cache/page")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := npm.Install(ctx, "testdata", work, "page.test.mjs", "claude.mjs"); errors.Is(err, npm.ErrOffline) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	sameTerminal(t, work)
	h := home.New(t)
	h.Sh(nil, "git", "init", "-q", h.Dir)
	h.Sh(nil, "git", "-C", h.Dir, "-c", "user.name=a", "-c", "user.email=a@example.invalid", "commit", "-q", "--allow-empty", "-m", "first")
	config := filepath.Join(h.User, ".agent-mux")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	agent := "[agents.shell]\nadapter = \"command\"\ncommand = \"exec sh -I -i\"\n"
	if err := os.WriteFile(filepath.Join(config, "config.toml"), []byte(agent), 0o600); err != nil {
		t.Fatal(err)
	}
	// An agent that asks whether it may write a file.
	programs := filepath.Join(h.User, "programs")
	if err := os.MkdirAll(programs, 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nexec " + node + " " + filepath.Join(work, "claude.mjs") + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(programs, "claude"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, v := range h.Env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			h.Env[i] = "PATH=" + programs + ":" + path
		}
	}
	h.Env = append(h.Env, "ANTHROPIC_API_KEY=no-key")
	h.Serve()
	shell := h.Sh(nil, h.Amux, "run", "shell", "--pty", "--detach", "x")
	args := []string{"--test", "--test-reporter=tap"}
	if os.Getenv("AMUX_TEST_PICTURE") != "" {
		args = append(args, "--test-name-pattern=^a picture$")
	}
	cmd := exec.CommandContext(ctx, node, append(args, "page.test.mjs")...)
	cmd.Dir = work
	cmd.Env = append(h.Env, "AMUX="+h.Amux, "WORK="+h.Dir, "TOKEN_FILE="+filepath.Join(config, "http.token"), "CHROMIUM="+browser,
		`SHELL_RUN={"run_id":"`+shell+`"}`, "SHOT="+os.Getenv("AMUX_TEST_PICTURE"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, " ms") && !strings.Contains(line, "duration_ms") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
