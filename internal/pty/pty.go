// Package pty makes pseudo-terminals. The master's reads and writes wait in the
// runtime's poller and so cost no thread each; deadlines work on it. Nothing here
// starts a process: the slave is for whoever does, who then closes it.
package pty

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// checkSize refuses sizes that no terminal has.
func checkSize(cols, rows int) error {
	if cols < 1 || rows < 1 || cols > 1<<15-1 || rows > 1<<15-1 {
		return fmt.Errorf("invalid terminal size %d columns by %d rows", cols, rows)
	}
	return nil
}

// errNone says that there are no pseudo-terminals here.
type errNone struct{ err error }

func (e errNone) Error() string {
	return fmt.Sprintf("this system gives no pseudo-terminal: %v", e.err)
}

func (e errNone) Unwrap() error { return e.err }

func (e errNone) Is(target error) bool { return target == errors.ErrUnsupported }

// never reports whether another try would fail too.
func (e errNone) never() bool {
	return errors.Is(e.err, fs.ErrNotExist) || errors.Is(e.err, fs.ErrPermission) || errors.Is(e.err, errors.ErrUnsupported) ||
		errors.Is(e.err, syscall.ENODEV) || errors.Is(e.err, syscall.ENXIO) && !limited
}
