package sandbox

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Reason says why a program could not be started, or how it ended, and the way out. The
// system's own words blame the wrong file: a script whose interpreter is missing reads
// "no such file or directory".
func Reason(path string, err error) (why, hint string) {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if why := ended(exit); why != "" {
			return why, ""
		}
		return exit.Error(), ""
	}
	if why, hint := scarce(err); why != "" {
		return why, hint
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return "it left a process that holds its output open", "it must wait for what it starts, and start nothing here"
	}
	if why, hint := unfit(path, err); why != "" {
		return why, hint
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error(), ""
	}
	return err.Error(), ""
}

// unfit looks at the file for what keeps the system from executing it.
func unfit(path string, err error) (why, hint string) {
	missing, format := errors.Is(err, fs.ErrNotExist), noExec(err)
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
