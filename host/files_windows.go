package host

import (
	"errors"

	"golang.org/x/sys/windows"
)

// checkPrivate trusts the user's own temp folder, which Windows protects.
func checkPrivate(string) error { return nil }

func isDiskFull(err error) bool { return errors.Is(err, windows.ERROR_DISK_FULL) }
