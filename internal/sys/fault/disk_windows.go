package fault

import (
	"errors"
	"syscall"
)

const (
	errHandleDiskFull = syscall.Errno(39)
	errDiskFull       = syscall.Errno(112)
)

// Full reports whether something was not written for lack of space.
func Full(err error) bool {
	return errors.Is(err, errHandleDiskFull) || errors.Is(err, errDiskFull)
}
