//go:build unix

package fault

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

func noExec(err error) bool { return errors.Is(err, syscall.ENOEXEC) }

const (
	noThreads   = "no more processes or threads may be started"
	moreThreads = "end some programs, or raise the limit: ulimit -u"
)

// Limit says which limit of this process, or of the system, something has reached, and the
// way out; "" if it has failed for another reason.
func Limit(err error) (why, hint string) {
	switch {
	case errors.Is(err, syscall.EFBIG):
		return "this process may not write larger files", "raise the limit: ulimit -f unlimited"
	case errors.Is(err, syscall.EDQUOT):
		return "your quota of the disk is used up", "free some space"
	case Full(err):
		return "the disk is full", "free some space"
	case errors.Is(err, syscall.EMFILE):
		var has syscall.Rlimit
		_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &has)
		return fmt.Sprintf("this process may open no more files (its limit is %d)", has.Cur), "raise the limit: ulimit -n 4096"
	case errors.Is(err, syscall.ENFILE):
		return "the system may open no more files", "close some programs"
	case errors.Is(err, syscall.ENOMEM):
		return "there is no memory left", "end some programs"
	}
	return "", ""
}

// unstartable is Limit for a program that could not be started.
func unstartable(err error) (why, hint string) {
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return noThreads, moreThreads
	case errors.Is(err, syscall.EBADF): // it has no number left for what the child is to inherit
		return Limit(syscall.EMFILE)
	case errors.Is(err, syscall.E2BIG):
		return "its arguments and environment are longer than the system takes", "shorten the prompt, or unset large variables"
	}
	return Limit(err)
}

// Told is Limit for an error of this process of which only the words are left.
func Told(words string) (why, hint string) {
	for _, limit := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		if strings.Contains(words, limit.Error()) {
			return Limit(limit)
		}
	}
	return "", ""
}

// Death says which limit a Go program has reached, by the first line that its runtime
// wrote when it gave up; "" if it died of something else.
func Death(line string) (why, hint string) {
	switch {
	case strings.HasPrefix(line, "runtime: failed to create new OS thread"):
		return noThreads, moreThreads
	case strings.HasPrefix(line, "runtime: epollcreate failed with"), strings.HasPrefix(line, "runtime: eventfd failed with"):
		return "it may open no more files", "raise the limit: ulimit -n 4096"
	}
	return "", ""
}
