//go:build unix

package home

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Patience is for a slow machine that does much besides.
const Patience = 2 * time.Minute

// Home is a user with an amux of their own, whose runs end with the test.
type Home struct {
	T    *testing.T
	Amux string // program
	User string // home folder
	Dir  string // git work tree with one commit
	Env  []string

	serve *exec.Cmd
}

// New makes a home. There is no amux serve yet.
func New(t *testing.T) *Home {
	t.Helper()
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(amux); err != nil {
		t.Fatal("bin/amux is not there: make build")
	}
	sockets, err := os.MkdirTemp("/tmp", "amux-home")
	if err != nil {
		t.Fatal(err)
	}
	user := t.TempDir()
	dir := filepath.Join(user, "work")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h := &Home{T: t, Amux: amux, User: user, Dir: dir, Env: []string{
		"HOME=" + user, "PATH=" + filepath.Dir(amux) + ":" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + sockets, "GIT_CONFIG_GLOBAL=/dev/null",
	}}
	h.Sh(nil, "git", "init", "-q", dir)
	h.Sh(nil, "git", "-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "first")
	t.Cleanup(func() {
		for id := range strings.FieldsSeq(h.Sh(nil, h.Amux, "ps", "-q")) {
			_, _ = h.Try(nil, h.Amux, "kill", id) // it may have ended
		}
		h.stop(os.Interrupt)
		h.stopServers()
		os.RemoveAll(sockets)
	})
	return h
}

// Runtime is the folder of amux's sockets.
func (h *Home) Runtime() string { return filepath.Join(h.Getenv("XDG_RUNTIME_DIR"), "amux") }

// Getenv is a variable of the user's environment.
func (h *Home) Getenv(name string) string {
	for _, v := range h.Env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// Serve starts amux serve, and waits until it is there.
func (h *Home) Serve() {
	h.T.Helper()
	h.serve = exec.Command(h.Amux, "serve")
	h.serve.Dir, h.serve.Env = h.Dir, h.Env
	if err := h.serve.Start(); err != nil {
		h.T.Fatal(err)
	}
	h.Until("amux serve is there", func() bool {
		found, _ := filepath.Glob(filepath.Join(h.Runtime(), "serve*.sock"))
		return len(found) > 0
	})
}

// KillServe kills the server that Serve started.
func (h *Home) KillServe() { h.stop(os.Kill) }

func (h *Home) stop(s os.Signal) {
	if h.serve == nil {
		return
	}
	_ = h.serve.Process.Signal(s)
	_ = h.serve.Wait()
	h.serve = nil
}

// stopServers ends the servers that were started because one was needed, as far as the system
// shows them: they would write into the home while it is removed.
func (h *Home) stopServers() {
	for _, dir := range servers(h.User) {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if p, err := os.FindProcess(pid); err == nil && p.Signal(os.Interrupt) == nil {
			for end := time.Now().Add(Patience); len(servers(h.User)) > 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			}
		}
	}
}

// servers are the folders in /proc of the servers of a home.
func servers(user string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		command, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.Contains(command, []byte("amux\x00serve\x00")) {
			continue
		}
		if env, err := os.ReadFile(filepath.Join(dir, "environ")); err == nil && bytes.Contains(env, []byte("HOME="+user+"\x00")) {
			found = append(found, dir)
		}
	}
	return found
}

// Until waits for something.
func (h *Home) Until(what string, done func() bool) {
	h.T.Helper()
	for end := time.Now().Add(Patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.T.Fatalf("never: %s", what)
		}
	}
}

// Sh runs a command and returns its stdout.
func (h *Home) Sh(env []string, argv ...string) string {
	h.T.Helper()
	out, err := h.Try(env, argv...)
	if err != nil {
		h.T.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return out
}

// Try is Sh for a command that may fail: then it returns both its outputs.
func (h *Home) Try(env []string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = h.Dir, append(slices.Clone(h.Env), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		return out.String() + errs.String(), err
	}
	return strings.TrimSpace(out.String()), nil
}
