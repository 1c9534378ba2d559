//go:build unix

package cli

import (
	"errors"
	"os"
	"syscall"
)

const isWindows = false

// isSuspend reports whether a signal is that of Ctrl-Z.
func isSuspend(sig os.Signal) bool { return sig == syscall.SIGTSTP }

// suspend stops this process until it is continued.
func suspend() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

// isBrokenPipe reports whether the reader of a pipe has gone.
func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
