// Package fault says in plain words why the system has refused something, and what to do
// about it: the system's own words blame the wrong file, or nothing at all.
package fault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"
)

// Start says why the program at path could not be started in dir, which may be empty, and
// the way out; no hint where none is known. A script whose interpreter is missing reads
// "no such file or directory" in the system's words.
func Start(path, dir string, err error) (why, hint string) {
	if why, hint := unstartable(err); why != "" {
		return why, hint
	}
	if dir != "" {
		if _, err := os.Stat(filepath.Join(dir, ".")); err != nil {
			return fmt.Sprintf("its folder %s cannot be entered: %s", readable(dir), Plain(err)), "run it in a folder that exists and is yours"
		}
	}
	if why, hint := unfit(path, err); why != "" {
		return why, hint
	}
	return Plain(err).Error(), ""
}

// Plain is an error without the operation and the path that package os puts before it.
func Plain(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// unfit looks at the file for what keeps the system from executing it.
func unfit(path string, err error) (why, hint string) {
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Op == "open" { // for its standard streams
		return readable(e.Path) + " cannot be opened: " + e.Err.Error(), "a container or chroot needs /dev/null too"
	}
	missing, format, denied := errors.Is(err, fs.ErrNotExist), noExec(err), errors.Is(err, fs.ErrPermission)
	if denied {
		return "it may not be executed", "look at its mode, that of its interpreter, and whether its file system is mounted noexec"
	}
	if !missing && !format {
		return "", ""
	}
	f, openErr := os.Open(path)
	if openErr != nil {
		return "", ""
	}
	defer f.Close()
	start := make([]byte, 256)
	n, _ := io.ReadFull(f, start)
	start = start[:n]
	first, _, _ := bytes.Cut(start, []byte("\n"))
	switch {
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf#!")):
		return "it begins with a byte order mark, so its #! line does not count", "save it as UTF-8 without a byte order mark"
	case bytes.HasPrefix(start, []byte("#!")):
		words := strings.Fields(string(first[2:]))
		if len(words) == 0 {
			return "its #! line names no interpreter", ""
		}
		if bytes.HasSuffix(first, []byte("\r")) {
			return "its #! line ends in a carriage return, so its interpreter is not found", "save it with Unix line ends"
		}
		return "its interpreter " + readable(words[0]) + " does not exist here", "install it, or correct the #! line"
	case n == 0:
		return "it is an empty file", ""
	case bytes.HasPrefix(start, []byte("\x7fELF")):
		if missing {
			return "the loader that it was linked with does not exist here", "it was built for another C library; link it statically"
		}
		return "it was built for another processor than " + runtime.GOARCH, "get the build for " + runtime.GOOS + "/" + runtime.GOARCH
	case bytes.HasPrefix(start, []byte("MZ")):
		return "it is a program for Windows", "get the build for " + runtime.GOOS + "/" + runtime.GOARCH
	case isMachO(start):
		return "it is a program for macOS", "get the build for " + runtime.GOOS + "/" + runtime.GOARCH
	case format:
		return "it is neither a program for " + runtime.GOOS + "/" + runtime.GOARCH + " nor a script with a #! line", "a script begins with #! and its interpreter"
	}
	return "", ""
}

func isMachO(start []byte) bool {
	for _, magic := range []string{"\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xca\xfe\xba\xbe"} {
		if bytes.HasPrefix(start, []byte(magic)) {
			return true
		}
	}
	return false
}

// readable leaves out what a terminal would obey, or show in another order.
func readable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || unicode.Is(unicode.C, r) || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, text)
}
