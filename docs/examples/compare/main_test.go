package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/hosttest"
	"github.com/amux-dev/amux/pluginapi"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed: apt install git")
	}
	writes := func(text string, usd float64) hosttest.Script {
		return func(a *hosttest.Agent) {
			a.Prompt()
			if err := os.WriteFile(filepath.Join(a.Cwd(), "answer.txt"), []byte(text), 0o600); err != nil {
				t.Error(err)
			}
			a.Spend(1, 1, usd)
		}
	}
	m := hosttest.NewMachine(t, map[string]hosttest.Script{
		"claude": writes("one\n", 0.5), "codex": writes("one\ntwo\n", 0),
		"gemini": func(a *hosttest.Agent) { a.Prompt(); a.Fail(pluginapi.CodeRateLimited, "slow down") },
	})
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = m.Cwd()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var got bytes.Buffer
	compare(t.Context(), m.Host(host.Options{}), []string{"claude", "codex", "gemini", "absent"}, "write", m.Cwd(), &got)
	for i, want := range []string{
		`^AGENT +STATE +TIME +COST +DIFF +WORKTREE$`, `^claude +completed +\d+s +\$0\.50 +1 files \+1 -0 +claude-`, `^codex +completed +\d+s +\? +1 files \+2 -0 +codex-`,
		`^gemini +failed +\d+s +\? +0 files \+0 -0 +gemini-`, `^absent +not started: `,
	} {
		if line := strings.Split(got.String(), "\n")[i]; !regexp.MustCompile(want).MatchString(line) {
			t.Errorf("%q, want %s", line, want)
		}
	}
	if _, err := os.Stat(filepath.Join(m.Cwd(), "answer.txt")); err == nil {
		t.Error("an agent wrote to the user's own files")
	}
}
