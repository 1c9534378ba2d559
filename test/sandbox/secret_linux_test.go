package sandbox

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// A key that stays outside is nowhere inside: not in the environment, the memory or the
// files of any process, nor in what amux records; and its host gets it.
func TestSecretStaysOutside(t *testing.T) {
	t.Parallel()
	h, _ := user(t)
	if err := os.WriteFile(filepath.Join(h.User, ".agent-mux", "config.toml"), []byte("[agents.sh]\nadapter = \"command\"\ncommand = \"exec sh\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const key = "sk-test-0123456789-abcdefghij-outside"
	var got atomic.Int32
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+key {
			got.Add(1)
		}
		fmt.Fprintln(rw, "allowed")
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("it needs python3")
	}
	real := h.Sh(nil, python, "-c", "import sys; print(sys.base_prefix)")
	script := `python3 -c '
import os, urllib.request
r = urllib.request.Request("http://localhost:` + port + `/", headers={"Authorization": "Bearer " + os.environ["TEST_KEY"]})
print(urllib.request.urlopen(r, timeout=20).read().decode(), os.environ["TEST_KEY"], os.environ["OTHER"])
'; echo asked; cat; sleep 600`
	cmd := exec.Command(h.Amux, "run", "sh", "--name", "holds", "--sandbox-secret", "TEST_KEY=localhost:"+port, "--sandbox-read", real, "--env", "PATH="+filepath.Join(real, "bin")+":/usr/bin:/bin", script)
	cmd.Dir, cmd.Env = h.Dir, append(slices.Clone(h.Env), "TEST_KEY="+key, "OTHER=with "+key, "MARK=secret-test")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	h.Until("the host was asked", func() bool {
		out, err := h.Try(nil, h.Amux, "logs", "holds")
		return err == nil && strings.Contains(out, "asked")
	})
	if got.Load() != 1 {
		t.Errorf("its host has got the key %d times", got.Load())
	}
	if out := h.Sh(nil, h.Amux, "logs", "holds"); !strings.Contains(out, "allowed sk-test-0123") && !strings.Contains(out, "placeholder") {
		t.Errorf("it says %q", out)
	}
	looked := 0
	for _, pid := range marked("MARK=secret-test") {
		if !inside(pid) {
			continue
		}
		looked++
		if where := memoryWith(pid, key); where != "" {
			t.Errorf("process %d %s has the key: %s", pid, program(pid), where)
		}
	}
	if looked < 2 {
		t.Errorf("%d processes are inside", looked)
	}
	for _, dir := range []string{h.User, "/tmp"} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || dir == "/tmp" && path != dir && d.IsDir() && !strings.HasPrefix(d.Name(), "agent-mux-") && !strings.Contains(path, "/agent-mux-") {
				return filepath.SkipDir
			}
			if d.Type().IsRegular() {
				if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(key)) {
					t.Errorf("%s has the key", path)
				}
			}
			return nil
		})
	}
	for args, says := range map[string]string{
		"TEST_KEY": "expected NAME=HOST", "=localhost:1": "expected NAME=HOST", "TEST_KEY=*.example.com": "for one host", "NOT_THERE=example.com": "no such variable", "SHORT=example.com": "fewer than",
	} {
		if out, err := h.Try([]string{"TEST_KEY=" + key, "SHORT=abc"}, h.Amux, "run", "sh", "x", "--sandbox-secret", args); err == nil || !strings.Contains(out, says) || strings.Contains(out, key) {
			t.Errorf("%s: %v, %s", args, err, out)
		}
	}
	if out, err := h.Try([]string{"TEST_KEY=" + key}, h.Amux, "run", "sh", "x", "--sandbox-net", "all", "--sandbox-secret", "TEST_KEY=example.com"); err == nil || !strings.Contains(out, "needs a network of hosts") {
		t.Errorf("with the whole network: %v, %s", err, out)
	}
}

// memoryWith looks for a text in the environment and the memory of a process.
func memoryWith(pid int, text string) string {
	if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && bytes.Contains(env, []byte(text)) {
		return "environment"
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return ""
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n < 3 || !strings.HasPrefix(mode, "rw") || to-from > 256<<20 {
			continue
		}
		data := make([]byte, to-from)
		if n, _ := mem.ReadAt(data, from); bytes.Contains(data[:n], []byte(text)) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
