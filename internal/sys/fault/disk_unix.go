//go:build unix

package fault

import (
	"errors"
	"syscall"
)

// Full reports whether something was not written for lack of space, of quota, or by the
// limit of a file's size.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
