package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// buildWhisper makes the example in Python in the folder out of a desk, and returns the
// folder of its source. The test is skipped where that cannot be done.
func buildWhisper(t *testing.T, d *desk) (example string) {
	t.Helper()
	if os.Getenv("AMUX_TEST_OFFLINE") != "" {
		t.Skip("AMUX_TEST_OFFLINE is set: gRPC for Python is not fetched")
	}
	if testing.Short() {
		t.Skip("starts an interpreter many times")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	example = filepath.Join(root, "docs", "example-python")
	command := func(env []string, name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = d.root, append(os.Environ(), env...)
		if out, err := patiently(t, cmd, 5*time.Minute); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	venv := filepath.Join(root, ".cache", "python")
	want, err := os.ReadFile(filepath.Join(example, "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	done := filepath.Join(venv, "requirements.txt")
	if have, _ := os.ReadFile(done); string(have) != string(want) {
		command(nil, python, "-m", "venv", venv)
		command(nil, filepath.Join(venv, "bin", "pip"), "install", "-q", "-r", filepath.Join(example, "requirements.txt"))
		if err := os.WriteFile(done, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(d.root, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	command([]string{"PYTHON=" + filepath.Join(venv, "bin", "python")}, "sh", filepath.Join(example, "build.sh"), out)
	return example
}

// A plugin that is not in Go passes the same checks, runs, and is installed as any
// other. Its packages come from PyPI, into .cache.
func TestPythonPlugin(t *testing.T) {
	d := newDesk(t)
	example := buildWhisper(t, d)
	if text := d.must("plugin", "test", "out"); strings.Contains(text, "✗") || strings.Count(text, "✓") < 20 || !strings.Contains(text, "✓ H3 ") { // H3 is the lifeline
		t.Errorf("checks:\n%s", text)
	}
	if text := d.must("run", "--plugin", "whisper=out", "whisper", "HELLO World"); text != "hello world\n" {
		t.Errorf("it said %q", text)
	}
	d.must("plugin", "package", example, "--out", "dist", "--binary", runtime.GOOS+"/"+runtime.GOARCH+"=out/amux-plugin-whisper")
	d.must("plugin", "install", "./dist", "--require", "none")
	if text := d.must("run", "whisper", "INSTALLED"); text != "installed\n" {
		t.Errorf("installed, it said %q", text)
	}
}
