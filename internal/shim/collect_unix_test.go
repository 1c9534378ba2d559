//go:build unix

package shim

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The agent chooses what lies where a file is to be collected: nothing of it may hold
// up the end of the run.
func TestCollectStrangeFiles(t *testing.T) {
	dir := t.TempDir()
	for name, make := range map[string]func(path string) error{
		"fifo":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"zero":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"none":   func(string) error { return nil },
	} {
		path := filepath.Join(dir, name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if got := collect(path); !got.Absent || got.Content != nil || got.Path != path {
			t.Errorf("%s: %d bytes, absent %v", name, len(got.Content), got.Absent)
		}
	}
	path := filepath.Join(dir, "long")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", collectLimit+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := collect(path); got.Absent || len(got.Content) != collectLimit {
		t.Errorf("%d bytes, absent %v", len(got.Content), got.Absent)
	}
}
