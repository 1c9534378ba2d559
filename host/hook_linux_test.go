package host_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
)

// A hook gets JSON on stdin, and nothing that it starts outlives it, however it ends.
func TestHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "A=b"}
	err := host.Hook{Line: `cat > told; echo "$A" >> told; (setsid sleep 1000 & echo $! > left) </dev/null >/dev/null 2>&1`, Env: env, Dir: dir}.Run(t.Context(), map[string]string{"x": "1"})
	if err != nil {
		t.Fatal(err)
	}
	told, err := os.ReadFile(filepath.Join(dir, "told"))
	if err != nil || string(told) != "{\"x\":\"1\"}\nb\n" {
		t.Errorf("it was told %q, %v", told, err)
	}
	gone(t, dir)

	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	since := time.Now()
	err = host.Hook{Argv: []string{"sh", "-c", "echo $$ > left; trap '' TERM; sleep 1000"}, Env: env, Dir: dir}.Run(ctx, nil)
	if err == nil || time.Since(since) > 8*time.Second {
		t.Errorf("after %s: %v", time.Since(since), err)
	}
	gone(t, dir)

	for want, hook := range map[string]host.Hook{
		"cannot be started":       {Argv: []string{"/no/such/program"}},
		"exited with code 3: no!": {Line: "echo no! >&2; exit 3"},
	} {
		hook.Env, hook.Dir = env, dir
		if err := hook.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

// gone waits for the end of the process that the hook has named.
func gone(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "left"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); strings.Contains(string(stat), ") Z ") {
			return // nobody but init collects it here
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d is left", pid)
		}
	}
}
