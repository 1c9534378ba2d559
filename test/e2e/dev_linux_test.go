package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A plugin is built again when it is saved; what does not build leaves the last
// good build in place; Ctrl-C ends it.
func TestPluginDev(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a plugin")
	}
	d := newDesk(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "")
	d.must("plugin", "new", "acme", "--sdk", root, "--dir", "work")
	source := filepath.Join(d.root, "work", "adapter.go")
	agent := filepath.Join(d.root, "bin", "acme")
	if err := os.MkdirAll(filepath.Dir(agent), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(agent, []byte("#!/bin/sh\necho '{\"type\":\"text\",\"text\":\"one\"}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(agent)+":"+os.Getenv("PATH"))

	cmd := exec.Command(d.amux, "plugin", "dev", "work")
	cmd.Dir = d.root
	cmd.Env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+d.config, "HOME="+d.root, "GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	wait := func(text string) {
		t.Helper()
		last, at := "", time.Now() // how far what it started is, and since when
		look := time.NewTicker(5 * time.Second)
		defer look.Stop()
		var seen []string
		for {
			select {
			case line, ok := <-lines:
				seen = append(seen, line)
				if strings.Contains(line, text) {
					return
				}
				if !ok {
					t.Fatalf("it ended without %q:\n%s", text, strings.Join(seen, "\n"))
				}
			case <-look.C:
				if now := ticksOf(processesBelow(cmd.Process.Pid)[1:]); now != last {
					last, at = now, time.Now()
				} else if time.Since(at) > 3*time.Minute {
					t.Fatalf("no %q:\n%s", text, strings.Join(seen, "\n"))
				}
			}
		}
	}
	edit := func(old, replacement string) {
		t.Helper()
		data, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), old) {
			t.Fatalf("no %q to edit", old)
		}
		if err := os.WriteFile(source, []byte(strings.Replace(string(data), old, replacement, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	said := func(want string) {
		t.Helper()
		if got := strings.TrimSpace(d.must("run", "acme", "hi")); got != want {
			t.Errorf("the run said %q, want %q", got, want)
		}
	}
	wait("built acme 0.1.0")
	said("one")
	edit("Delta: said.Text", `Delta: said.Text + " and two"`)
	wait("built acme 0.1.0")
	said("one and two")
	edit(`" and two"`, `" and two`)
	wait("cannot be built")
	said("one and two")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	wait("interrupted")
	err = cmd.Wait()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 130 || exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("it ended with %v", err)
	}
}
