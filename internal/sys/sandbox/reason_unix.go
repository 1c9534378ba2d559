//go:build unix

package sandbox

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
)

func noExec(err error) bool { return errors.Is(err, syscall.ENOEXEC) }

// scarce names what the system has run out of.
func scarce(err error) (why, hint string) {
	switch {
	case errors.Is(err, syscall.EMFILE):
		var has syscall.Rlimit
		_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &has)
		return fmt.Sprintf("this process may open no more files (its limit is %d)", has.Cur), "raise the limit: ulimit -n 4096"
	case errors.Is(err, syscall.ENFILE):
		return "the system may open no more files", "close some programs"
	case errors.Is(err, syscall.EAGAIN):
		return "no more processes may be started", "end some, or raise the limit: ulimit -u"
	case errors.Is(err, syscall.ENOMEM):
		return "there is no memory to start it", "end some programs"
	case errors.Is(err, syscall.EACCES):
		return "it may not be executed", "look at its mode, that of its interpreter, and whether its file system is mounted noexec"
	}
	return "", ""
}

// ended says which signal has ended a program; "" if it exited.
func ended(exit *exec.ExitError) string {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return "it was ended by a signal: " + status.Signal().String()
	}
	return ""
}
