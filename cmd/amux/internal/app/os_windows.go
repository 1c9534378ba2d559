package app

import (
	"errors"
	"os"
	"syscall"
)

// IsWindows says which system this program is built for.
const IsWindows = true

func IsSuspend(os.Signal) bool { return false }

func IsQuit(os.Signal) bool { return false }

func Suspend() {}

// isBrokenPipe reports whether the reader of a pipe has gone.
func isBrokenPipe(err error) bool {
	const noData = syscall.Errno(232) // ERROR_NO_DATA
	return errors.Is(err, syscall.ERROR_BROKEN_PIPE) || errors.Is(err, noData)
}
