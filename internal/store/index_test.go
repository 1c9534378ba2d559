//go:build unix

package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestIndex(t *testing.T) {
	t.Parallel()
	config, project := filepath.Join(t.TempDir(), "config"), t.TempDir()
	for _, project := range []string{"", project, project} {
		if err := AppendIndex(config, project, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, filepath.Join(config, IndexName)); got != "{}\n{}\n{}\n" {
		t.Errorf("the user's: %q", got)
	}
	if got := read(t, filepath.Join(project, ".agent-mux", IndexName)); got != "{}\n{}\n" {
		t.Errorf("the project's: %q", got)
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for _, args := range [][]string{{"init", "-q"}, {"status", "--porcelain"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = project
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("git %s: %s%v", args[0], out, err)
		}
	}
}

// What a repository holds at the index's place is never written to, nor what it leads to.
func TestIndexOfAHostileProject(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(own, secret string) error{
		"it is a link":   func(own, secret string) error { return os.Symlink(secret, filepath.Join(own, IndexName)) },
		"it is a FIFO":   func(own, _ string) error { return syscall.Mkfifo(filepath.Join(own, IndexName), 0o600) },
		"it is a folder": func(own, _ string) error { return os.Mkdir(filepath.Join(own, IndexName), 0o700) },
		".gitignore: it is a link": func(own, secret string) error {
			return os.Symlink(secret, filepath.Join(own, ".gitignore"))
		},
		".agent-mux: it is a link": func(own, secret string) error {
			return errors.Join(os.Remove(own), os.Symlink(filepath.Dir(secret), own))
		},
		".gitignore: it does not name run-index.jsonl": func(own, _ string) error {
			return os.WriteFile(filepath.Join(own, ".gitignore"), []byte("/bin\n"), 0o600)
		},
	} {
		config, project, home := t.TempDir(), t.TempDir(), t.TempDir()
		own, secret := filepath.Join(project, ".agent-mux"), filepath.Join(home, ".bashrc")
		if err := errors.Join(os.WriteFile(secret, []byte("mine"), 0o600), os.Mkdir(own, 0o700), make(own, secret)); err != nil {
			t.Fatal(err)
		}
		if err := AppendIndex(config, project, []byte("{}")); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
		if got := read(t, secret); got != "mine" {
			t.Errorf("%s: the user's file is %q", name, got)
		}
		if entries, _ := os.ReadDir(home); len(entries) > 1 {
			t.Errorf("%s: %v is new", name, entries)
		}
		if got := read(t, filepath.Join(config, IndexName)); got != "{}\n" {
			t.Errorf("%s: the user's index is %q", name, got)
		}
	}
}
