//go:build unix

package sessionfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestStrangeFilesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, zero, long := filepath.Join(dir, "fifo"), filepath.Join(dir, "zero"), filepath.Join(dir, "long")
	for _, err := range []error{syscall.Mkfifo(fifo, 0o600), os.Symlink("/dev/zero", zero), os.WriteFile(long, []byte("12345"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{fifo, zero, dir, filepath.Join(dir, "none")} {
		if lines, err := Open(path); err == nil {
			lines.Close()
			t.Errorf("%s was opened", path)
		}
	}
	if _, err := Read(long, 4); err == nil {
		t.Error("a file over the limit was read")
	}
	if data, err := Read(long, 5); err != nil || string(data) != "12345" {
		t.Errorf("got %q, %v", data, err)
	}
}
