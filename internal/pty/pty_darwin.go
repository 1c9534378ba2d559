package pty

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
	// limited says that ENXIO means that all are in use.
	limited = true
)

// exhausted names the limit that was reached, if that is what err says.
func exhausted(err error) error {
	switch {
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.EIO), errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("all pseudo-terminals are in use (sysctl kern.tty.ptmx_max): %w", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("no pseudo-terminal can be opened (limit of open files of a process, ulimit -n): %w", err)
	}
	return err
}
