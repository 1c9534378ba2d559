package cli

import (
	"errors"
	"os"
	"syscall"
)

const isWindows = true

func isSuspend(os.Signal) bool { return false }

func isQuit(os.Signal) bool { return false }

func suspend() {}

// isBrokenPipe reports whether the reader of a pipe has gone.
func isBrokenPipe(err error) bool {
	const noData = syscall.Errno(232) // ERROR_NO_DATA
	return errors.Is(err, syscall.ERROR_BROKEN_PIPE) || errors.Is(err, noData)
}
