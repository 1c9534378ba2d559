package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// A program that cannot be started has a reason of its own, read from the file and not
// from the error alone.
func TestStart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: these are files of Unix")
	}
	self, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, content, why, hint string }{
		{"a text", "hello\n", "it is neither a program for " + runtime.GOOS, "begins with #!"},
		{"no interpreter", "#!/no/such/\x1b[2Jinterpreter -x\n", "its interpreter /no/such/[2Jinterpreter does not exist here", "#! line"},
		{"no name", "#!  \n", "names no interpreter", ""},
		{"byte order mark", "\xef\xbb\xbf#!/bin/sh\n", "byte order mark", "UTF-8"},
		{"Windows line ends", "#!/bin/sh\r\nexit 0\r\n", "carriage return", "Unix line ends"},
		{"empty", "", "an empty file", ""},
		{"of Windows", "MZ\x90\x00", "a program for Windows", runtime.GOOS},
		{"of macOS", "\xcf\xfa\xed\xfe", "a program for macOS", runtime.GOOS},
		{"of another processor", string(self[:18]) + "\xff\x7f" + string(self[20:]), "another processor", runtime.GOARCH},
	} {
		path := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(path, []byte(test.content), 0o700); err != nil {
			t.Fatal(err)
		}
		err := syscall.Exec(path, []string{path}, nil) // returns: it cannot be executed
		if runtime.GOOS != "linux" && strings.HasPrefix(test.name, "of ") {
			continue
		}
		if why, hint := Start(path, "", err); !strings.Contains(why, test.why) || !strings.Contains(hint, test.hint) {
			t.Errorf("%s: %v: %q, %q; want %q, %q", test.name, err, why, hint, test.why, test.hint)
		}
	}
	path, gone := filepath.Join(t.TempDir(), "program"), filepath.Join(t.TempDir(), "gone")
	if err := os.WriteFile(path, self, 0o600); err != nil {
		t.Fatal(err)
	}
	if why, hint := Start(path, "", syscall.Exec(path, []string{path}, nil)); why != "it may not be executed" || hint == "" {
		t.Errorf("not executable: %q, %q", why, hint)
	}
	noDevices := &fs.PathError{Op: "open", Path: "/dev/null", Err: syscall.ENOENT} // of exec.Cmd without a stdin
	if why, hint := Start("/bin/true", "", noDevices); !strings.HasPrefix(why, "/dev/null cannot be opened") || !strings.Contains(hint, "/dev/null") {
		t.Errorf("without /dev/null: %q, %q", why, hint)
	}
	cmd := exec.Command("/bin/true")
	cmd.Dir = gone
	if why, _ := Start("/bin/true", gone, cmd.Run()); !strings.HasPrefix(why, "its folder "+gone+" cannot be entered") {
		t.Errorf("a folder that is gone: %q", why)
	}
}

// Each limit has its name and the way out; an error of anything else has neither.
func TestLimit(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: these are errors of Unix")
	}
	for errno, want := range map[syscall.Errno]string{
		syscall.EFBIG: "ulimit -f", syscall.EMFILE: "ulimit -n", syscall.ENFILE: "close some programs", syscall.ENOMEM: "end some programs",
		syscall.ENOSPC: "free some space", syscall.EDQUOT: "free some space", syscall.EACCES: "", syscall.EAGAIN: "", syscall.ENOENT: "",
	} {
		err := fmt.Errorf("write: %w", &fs.PathError{Op: "write", Path: "/x", Err: errno})
		why, hint := Limit(err)
		if (why == "") != (want == "") || !strings.Contains(hint, want) {
			t.Errorf("%v: %q, %q; want %q", errno, why, hint, want)
		}
		if full := strings.Contains(want, "space") || errno == syscall.EFBIG; Full(err) != full {
			t.Errorf("%v: full is %v", errno, !full)
		}
	}
	for errno, want := range map[syscall.Errno]string{syscall.EAGAIN: "ulimit -u", syscall.E2BIG: "prompt", syscall.EMFILE: "ulimit -n"} {
		if why, hint := Start("/bin/true", "", errno); why == "" || !strings.Contains(hint, want) {
			t.Errorf("start: %v: %q, %q; want %q", errno, why, hint, want)
		}
	}
	if why, _ := Start("/bin/true", "", errors.New("none of these")); why != "none of these" {
		t.Errorf("%q", why)
	}
	for line, want := range map[string]string{
		"runtime: failed to create new OS thread (have 8 already; errno=11)": "ulimit -u",
		"runtime: epollcreate failed with 24":                                "ulimit -n",
		"panic: runtime error":                                               "",
	} {
		if why, hint := Death(line); (why == "") != (want == "") || !strings.Contains(hint, want) {
			t.Errorf("%s: %q, %q", line, why, hint)
		}
	}
}

// What the child is to inherit gets numbers above those of the parent first: where the
// limit leaves none, the system says that a descriptor is bad.
func TestNoDescriptorForTheChild(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: Windows has no limit of open files")
	}
	why, hint := Start("/bin/true", "", &fs.PathError{Op: "fork/exec", Path: "/bin/true", Err: syscall.EBADF})
	told, way := Told("transport: Error while dialing: dial unix plugin: socket: " + syscall.EMFILE.Error())
	if !strings.Contains(why, "may open no more files") || told != why || hint != way || hint == "" {
		t.Errorf("%q, %q; %q, %q", why, hint, told, way)
	}
	if why, _ := Told("connection refused"); why != "" {
		t.Error(why)
	}
}
