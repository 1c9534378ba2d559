//go:build unix

package foreign

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// strange makes what a hostile folder may hold, by name.
func strange(t *testing.T, dir string) {
	t.Helper()
	big, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := errors.Join(
		big.Truncate(1<<30), big.Close(),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
		os.Symlink("/dev/zero", filepath.Join(dir, "zero")),
		os.Symlink("fifo", filepath.Join(dir, "tofifo")),
		os.Symlink("/etc/passwd", filepath.Join(dir, "passwd")),
		os.Symlink("zero", filepath.Join(dir, "tolink")),
		os.Symlink("loop", filepath.Join(dir, "loop")),
		os.Mkdir(filepath.Join(dir, "folder"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
}

func TestStrangeFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	strange(t, dir)
	for name, want := range map[string][2]string{ // links allowed, links refused
		"sparse": {"it is larger than 1 MiB", "it is larger than 1 MiB"},
		"fifo":   {"it is a FIFO, not a regular file", "it is a FIFO, not a regular file"},
		"socket": {"it is a socket, not a regular file", "it is a socket, not a regular file"},
		"zero":   {"it is a device, not a regular file", "it is a link"},
		"tofifo": {"it is a FIFO, not a regular file", "it is a link"},
		"tolink": {"it is a device, not a regular file", "it is a link"},
		"passwd": {"", "it is a link"},
		"loop":   {"too many levels", "it is a link"},
		"folder": {"it is a folder, not a regular file", "it is a folder, not a regular file"},
	} {
		path := filepath.Join(dir, name)
		_, follows := Read(path, Rule{Limit: 1 << 20})
		_, strict := Read(path, Rule{Limit: 1 << 20, NoLink: true})
		_, in := ReadIn(dir, name, Rule{Limit: 1 << 20})
		for what, got := range map[string]struct {
			err  error
			want string
		}{"links allowed": {follows, want[0]}, "links refused": {strict, want[1]}, "in the folder": {in, want[1]}} {
			if got.want == "" && got.err == nil {
				continue
			}
			if got.err == nil || !strings.Contains(got.err.Error(), got.want) || !strings.Contains(got.err.Error(), path) {
				t.Errorf("%s, %s: got %v, want %s", name, what, got.err, got.want)
			}
			if _, ok := errors.AsType[*Refusal](got.err); ok && Fix(got.err) == "" {
				t.Errorf("%s, %s: no way out", name, what)
			}
		}
		if _, err := OpenAppend(path); err == nil && name != "sparse" {
			t.Errorf("%s was opened for appending", name)
		}
	}
}

func TestReadInFollowsNoFolderLink(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "file"), []byte("secret"), 0o600),
		os.Symlink(outside, filepath.Join(dir, "sub"))); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "sub") + ": it is a link"
	if data, err := ReadIn(dir, "sub/file", Rule{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, %v, want %s", data, err, want)
	}
}

func TestOpenAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for range 2 {
		f, err := OpenAppend(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() != 2 || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
}

func TestModes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[fs.FileMode]bool{0o600: true, 0o644: true, 0o444: true, 0o666: false, 0o602: false} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		_, err := Read(file, Rule{Private: true})
		if os.Getuid() != 0 && mode&0o400 == 0 {
			continue
		}
		if (err == nil) != ok {
			t.Errorf("mode %o: %v", mode, err)
		}
		if err != nil && !strings.Contains(err.Error(), "mode 0"+modeDigits(mode)) {
			t.Errorf("mode %o is not in %v", mode, err)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := CheckFolder(dir); err == nil || !strings.Contains(err.Error(), "mode 0777") {
		t.Errorf("got %v", err)
	}
	if err := CheckFolder(filepath.Join(dir, "none")); err != nil {
		t.Errorf("got %v", err)
	}
}

func modeDigits(mode fs.FileMode) string {
	const digits = "01234567"
	return string([]byte{digits[mode>>6&7], digits[mode>>3&7], digits[mode&7]})
}

func TestOwners(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(file, nil, 0o644), os.Chown(file, 54321, 54321)); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file, Rule{}); err != nil {
		t.Errorf("got %v", err)
	}
	if _, err := Read(file, Rule{Private: true}); err == nil || !strings.Contains(err.Error(), "uid 54321") {
		t.Errorf("got %v", err)
	}
	if _, err := OpenAppend(file); err == nil || !strings.Contains(err.Error(), "uid 54321") {
		t.Errorf("got %v", err)
	}
	if err := os.Chown(dir, 54321, 54321); err != nil {
		t.Fatal(err)
	}
	if err := CheckFolder(dir); err == nil || !strings.Contains(err.Error(), "uid 54321") {
		t.Errorf("got %v", err)
	}
}
