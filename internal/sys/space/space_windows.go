package space

import (
	"errors"
	"syscall"
)

const (
	errHandleDiskFull = syscall.Errno(39)
	errDiskFull       = syscall.Errno(112)
)

// Exhausted reports whether something was not written for lack of space.
func Exhausted(err error) bool {
	return errors.Is(err, errHandleDiskFull) || errors.Is(err, errDiskFull)
}
