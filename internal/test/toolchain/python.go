package toolchain

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// What pins a set of PyPI's: requirements names its package, requirementsLock that and
// all that it needs, each with the hashes of its files.
const (
	requirements     = "requirements.in"
	requirementsLock = "requirements.txt"
)

// pythonVersion is the version of a package that requirements name, or nothing.
func pythonVersion(requirements []byte, pkg string) string {
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(pkg) + `(?:\[[\w,-]+\])?==(\S+)$`).FindSubmatch(requirements)
	if m == nil {
		return ""
	}
	return string(m[1])
}

// errLacks is what this machine lacks for an agent.
type errLacks string

func (e errLacks) Error() string { return string(e) }

// python wants a python3 that can run what is pinned.
func python(ctx context.Context) error {
	const probe = "import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))"
	if exec.CommandContext(ctx, "python3", "-c", probe).Run() != nil {
		return errLacks("this machine has no python3 of 3.11 to 3.14 with venv")
	}
	return nil
}

// fetchPython makes a virtual environment of the machine's python3 with exactly what
// the lock file names. Nothing is built, so nothing of a package runs.
func fetchPython(ctx context.Context, dir string, lockfile []byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	lock := filepath.Join(dir, requirementsLock)
	if err := os.WriteFile(lock, lockfile, 0o644); err != nil {
		return err
	}
	venv := filepath.Join(dir, "venv")
	for _, args := range [][]string{
		{"python3", "-m", "venv", venv},
		{filepath.Join(venv, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
			"--no-deps", "--require-hashes", "--only-binary=:all:", "-r", lock},
	} {
		if output, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s (AMUX_TEST_OFFLINE=1 leaves the agents out): %w\n%s", filepath.Base(args[0]), args[2], err, bytes.TrimSpace(output))
		}
	}
	return nil
}
