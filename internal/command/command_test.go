package command

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// What a command prints must not fill the host's memory, however it is copied.
func TestLimited(t *testing.T) {
	var l limited
	n, err := io.Copy(&l, bytes.NewReader(make([]byte, 3*execLimit)))
	if err != nil || n != 3*execLimit || l.kept.Len() != execLimit {
		t.Errorf("took %d, %v, kept %d", n, err, l.kept.Len())
	}
}

// What a session's command prints goes into a file, all of it; who prints more than is
// taken is ended.
func TestCommandToFile(t *testing.T) {
	c := Command{Env: os.Environ(), Dir: filepath.Join(t.TempDir(), "scratch")}
	if runtime.GOOS == "windows" {
		t.Skip("it is a shell's command")
	}
	print := []string{"sh", "-c", "head -c 3000000 /dev/zero; exit 3"}
	result := c.ToFile(t.Context(), print)
	info, err := os.Stat(result.File)
	if err != nil || info.Size() != 3_000_000 || len(result.Stdout) != 0 || result.ExitCode != 3 {
		t.Errorf("file %v, %v; exit %d, %d bytes of stdout", info, err, result.ExitCode, len(result.Stdout))
	}
	if result := c.Exec(t.Context(), print); result.File != "" || len(result.Stdout) != execLimit {
		t.Errorf("not asked for: file %q, %d bytes", result.File, len(result.Stdout))
	}
	if result := c.ToFile(t.Context(), []string{"no-such-program"}); result.ExitCode != -1 {
		t.Errorf("no program: exit %d", result.ExitCode)
	}
	c.limit = 100_000
	if result := c.ToFile(t.Context(), []string{"sh", "-c", "cat /dev/zero"}); result.File != "" || result.ExitCode != -1 {
		t.Errorf("too much: file %q, exit %d", result.File, result.ExitCode)
	}
}
