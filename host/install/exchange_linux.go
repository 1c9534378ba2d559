package install

import (
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps two folders, so that at every moment one of them is in place.
func exchange(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	if err == unix.EINVAL || err == unix.ENOSYS { // the file system cannot
		return exchangeSlowly(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "exchange", Old: from, New: to, Err: err}
	}
	return nil
}
