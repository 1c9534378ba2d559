//go:build unix

package clients

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/amux-dev/amux/internal/test/npm"
)

// patience is for a slow machine that does much besides.
const patience = 5 * time.Minute

func path(t *testing.T, parts ...string) string {
	t.Helper()
	full, err := filepath.Abs(filepath.Join(append([]string{"..", ".."}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return full
}

// amux is the built program.
func amux(t *testing.T) string {
	program := path(t, "bin", "amux")
	if _, err := os.Stat(program); err != nil {
		t.Fatal("bin/amux is not there: make build")
	}
	return program
}

// need finds a program. Without it the tests fail, unless nothing may be fetched: then
// this is a machine that has what it has.
func need(t *testing.T, name string) string {
	program, err := exec.LookPath(name)
	if err == nil {
		return program
	}
	if os.Getenv("AMUX_TEST_OFFLINE") != "" {
		t.Skipf("there is no %s, and AMUX_TEST_OFFLINE is set", name)
	}
	t.Fatalf("there is no %s; AMUX_TEST_OFFLINE=1 leaves these tests out", name)
	return ""
}

// run runs a command in a folder, with PATH and what env adds and nothing else of the
// environment.
func run(t *testing.T, dir string, env []string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append([]string{"PATH=" + os.Getenv("PATH")}, env...), 10*time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// atLeast fails if the number that pattern finds is smaller: tests that are not found
// pass as well.
func atLeast(t *testing.T, n int, pattern, out string) {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no %s in\n%s", pattern, out)
	}
	if got, err := strconv.Atoi(m[1]); err != nil || got < n {
		t.Errorf("%s tests ran, at least %d were expected\n%s", m[1], n, out)
	}
	t.Logf("%s tests", m[1])
}

func TestPython(t *testing.T) {
	t.Parallel()
	python := need(t, "python3")
	dir, program := path(t, "clients", "python"), amux(t)
	const probe = "import sys; sys.exit(sys.version_info < (3, 11))"
	if exec.Command(python, "-c", probe).Run() != nil {
		if os.Getenv("AMUX_TEST_OFFLINE") != "" {
			t.Skip("python3 is older than 3.11, and AMUX_TEST_OFFLINE is set")
		}
		t.Fatal("python3 is older than 3.11; AMUX_TEST_OFFLINE=1 leaves this test out")
	}
	// go test keeps a result until a file that the test has read changes.
	if err := os.CopyFS(t.TempDir(), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + t.TempDir(), "AMUX_PROGRAM=" + program, "PYTHONDONTWRITEBYTECODE=1"}
	out := run(t, dir, env, python, "-W", "error::ResourceWarning", "-m", "unittest")
	atLeast(t, 39, `Ran (\d+) tests`, out)
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it fetches the TypeScript compiler: make test")
	}
	need(t, "npm")
	node, program := need(t, "node"), amux(t)
	source, work := path(t, "clients", "typescript"), path(t, ".cache", "clients", "typescript")
	if err := os.MkdirAll(filepath.Dir(work), 0o755); err != nil {
		t.Fatal(err)
	}
	lock := flock.New(work + ".lock")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		t.Fatalf("wait for another test: %v", err)
	}
	defer lock.Unlock()
	if err := npm.Install(ctx, source, work, "tsconfig.json"); errors.Is(err, npm.ErrOffline) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"src", "test", "examples", "dist"} {
		if err := os.RemoveAll(filepath.Join(work, dir)); err != nil {
			t.Fatal(err)
		}
		if dir != "dist" {
			if err := os.CopyFS(filepath.Join(work, dir), os.DirFS(filepath.Join(source, dir))); err != nil {
				t.Fatal(err)
			}
		}
	}
	env := []string{"HOME=" + t.TempDir(), "AMUX_PROGRAM=" + program, "NO_COLOR=1"}
	run(t, work, env, node, filepath.Join(work, "node_modules", "typescript", "bin", "tsc"))
	tests, err := filepath.Glob(filepath.Join(work, "dist", "test", "*.test.js"))
	if err != nil || len(tests) < 2 {
		t.Fatalf("%d files of tests: %v", len(tests), err)
	}
	out := run(t, work, env, slices.Concat([]string{node, "--test", "--test-reporter=tap"}, tests)...)
	atLeast(t, 26, `(?m)^# pass (\d+)`, out)
}
