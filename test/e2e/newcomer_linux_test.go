package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A newcomer's path, from nothing to a plugin that somebody else has installed by
// its signature: in under ten commands, without network, and by a user who has no
// Go and cannot read the author's files.
func TestNewcomersPath(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a plugin")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir, which only its owner may enter.
	shared, err := os.MkdirTemp("", "newcomer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shared) })
	author, user, out := filepath.Join(shared, "author"), filepath.Join(shared, "user"), filepath.Join(shared, "out")
	for dir, mode := range map[string]os.FileMode{shared: 0o755, author: 0o700, user: 0o755, out: 0o755, filepath.Join(user, "bin"): 0o755, filepath.Join(user, "home"): 0o755} {
		if err := os.MkdirAll(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := exec.Command("cp", "-R", filepath.Join(root, "bin"), filepath.Join(shared, "amux")).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, text)
	}
	// The agent: it prints what its prompt was, in its own JSON.
	agent := "#!/bin/sh\nread prompt\nprintf '{\"type\":\"text\",\"text\":\"You said %s\"}\\n' \"$prompt\"\n"
	if err := os.WriteFile(filepath.Join(user, "bin", "acme"), []byte(agent), 0o755); err != nil {
		t.Fatal(err)
	}

	commands := 0
	run := func(asUser bool, args ...string) string {
		t.Helper()
		commands++
		cmd := exec.Command(args[0], args[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		amux := filepath.Join(shared, "amux")
		if asUser {
			cmd.Dir = user
			cmd.Env = []string{"HOME=" + filepath.Join(user, "home"), "PATH=" + amux + ":" + filepath.Join(user, "bin"), "AGENT_MUX_PROJECT_DIR=" + user}
			if os.Geteuid() == 0 {
				cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: false}
			}
		} else {
			cmd.Dir = author
			cmd.Env = []string{
				"HOME=" + author, "PATH=" + amux + ":" + os.Getenv("PATH"), "GOPROXY=off", "GOFLAGS=",
				"GOCACHE=" + goEnv(t, "GOCACHE"), "GOMODCACHE=" + goEnv(t, "GOMODCACHE"),
			}
		}
		if os.Geteuid() != 0 {
			cmd.SysProcAttr.Cloneflags = 0 // only root makes a network namespace without a user's
		}
		// LookPath is by our PATH, not by the command's.
		for _, dir := range filepath.SplitList(strings.TrimPrefix(cmd.Env[1], "PATH=")) {
			if info, err := os.Stat(filepath.Join(dir, args[0])); err == nil && info.Mode().IsRegular() {
				cmd.Path, cmd.Err = filepath.Join(dir, args[0]), nil
				break
			}
		}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if _, err := patiently(t, cmd, 3*time.Minute); err != nil {
			t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
		}
		return stdout.String()
	}

	run(false, "amux", "plugin", "new", "acme", "--sdk", root, "--dir", "acme")
	run(false, "go", "-C", "acme", "test", "./...")
	run(false, "amux", "plugin", "package", "acme", "--platform", runtime.GOOS+"/"+runtime.GOARCH, "--out", out)
	run(false, "amux", "plugin", "sign", "--generate", "mine", "--no-password")
	run(false, "amux", "plugin", "sign", out, "--key", "mine.key")
	public, err := os.ReadFile(filepath.Join(author, "mine.pub"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(user, "home"), 0o777); err != nil {
		t.Fatal(err)
	}
	// From here on the author's files cannot be read: the user is not root.
	if err := os.Chmod(author, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(author, 0o700) })
	lines := strings.Split(strings.TrimSpace(string(public)), "\n")
	run(true, "amux", "plugin", "trust", "add", "acme", lines[len(lines)-1])
	run(true, "amux", "plugin", "install", "../out")
	if got := run(true, "amux", "run", "acme", "hello"); got != "You said hello\n" && got != "You said hello" {
		t.Errorf("the run said %q", got)
	}
	if commands >= 10 {
		t.Errorf("it took %d commands", commands)
	}
	if list := run(true, "amux", "plugin", "list"); !strings.Contains(list, "signed by acme") {
		t.Errorf("listed\n%s", list)
	}
}
