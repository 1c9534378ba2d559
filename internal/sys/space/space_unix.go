//go:build unix

package space

import (
	"errors"
	"syscall"
)

// Exhausted reports whether something was not written for lack of space, or of quota.
func Exhausted(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
