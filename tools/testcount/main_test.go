package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each case is the body of a test in a module of its own, whose failures go through
// the built testcount.
func TestSecondChance(t *testing.T) {
	const first = `_, err := os.Stat("ran"); os.WriteFile("ran", nil, 0o600); first := err != nil; `
	for _, c := range []struct {
		name, body, says, not string
		passes                bool
	}{
		{"passes", first + `_ = first`, "1 passed, 0 failed, 0 skipped\n", "once more", true},
		{"unsteady", first + `if first { t.Fatal("too late") }`, "1 passed, 0 failed, 0 skipped, 1 of the passed only when run again\n", "", true},
		{"unsteady below", first + `t.Run("a (b)", func(t *testing.T) { if first { t.Fatal("too late") } }); t.Run("c", func(t *testing.T) {})`, "3 passed, 0 failed, 0 skipped, 1 of the passed", "", true},
		{"unsteady above", first + `t.Run("sub", func(t *testing.T) {}); if first { t.Fatal("too late") }`, "2 passed, 0 failed, 0 skipped, 1 of the passed", "", true},
		{"fails", first + `_ = first; t.Fatal("always")`, "0 passed, 1 failed", "only when", false},
		{"a survivor", first + `if first { t.Fatal("survived: 12") }`, "0 passed, 1 failed", "once more", false},
		{"a panic", first + `if first { panic("oh") }`, "0 passed, 1 failed", "once more", false},
		{"exits", first + `if first { os.Exit(3) }`, "1 failed", "", false},
		{"ends the program", `t.Run("a", func(t *testing.T) { ` + first + `if first { t.Error("too late") } }); t.Run("b", func(t *testing.T) { if t.Failed() { return }; os.Exit(1) })`, "failed", "only when", false},
		{"is not Go", `!`, "0 passed, 1 failed", "once more", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "go.mod", "module example.org/x\n")
			write(t, dir, "x_test.go", "package x\nimport (\"os\"; \"testing\")\nfunc TestX(t *testing.T) {\n"+c.body+"\n}\n")
			if err := os.Mkdir(filepath.Join(dir, "tools"), 0o700); err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", `go -C .. test -json ./... | "$0"`, self)
			cmd.Dir = filepath.Join(dir, "tools")
			cmd.Env = append(os.Environ(), asTestcount+"=1", "AMUX_TEST_REPORT=", "GOFLAGS=")
			out, err := cmd.CombinedOutput()
			if (err == nil) != c.passes || !strings.Contains(string(out), c.says) {
				t.Errorf("%v, want it to pass: %v, and %q in:\n%s", err, c.passes, c.says, out)
			}
			if c.not != "" && strings.Contains(string(out), c.not) {
				t.Errorf("%q in:\n%s", c.not, out)
			}
		})
	}
}

// asTestcount makes the test's program be testcount.
const asTestcount = "TESTCOUNT_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asTestcount) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
