package pty

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
	// limited says that ENXIO means that all are in use.
	limited = true
)

func openSlave(master int) (int, error) {
	if err := unix.IoctlSetInt(master, unix.TIOCPTYGRANT, 0); err != nil {
		return -1, os.NewSyscallError("grant the terminal", err)
	}
	if err := unix.IoctlSetInt(master, unix.TIOCPTYUNLK, 0); err != nil {
		return -1, os.NewSyscallError("unlock the terminal", err)
	}
	var name [128]byte // as the request says
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(master), unix.TIOCPTYGNAME, uintptr(unsafe.Pointer(&name))); errno != 0 {
		return -1, os.NewSyscallError("name the terminal", errno)
	}
	path, _, _ := bytes.Cut(name[:], []byte{0})
	fd, err := unix.Open(string(path), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: string(path), Err: err}
	}
	return fd, nil
}

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
