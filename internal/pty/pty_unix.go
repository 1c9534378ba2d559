//go:build unix

package pty

import (
	"os"

	creack "github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Open makes a pseudo-terminal of that many columns and rows. An error that is
// errors.ErrUnsupported says that this system has none to give; any other, that
// one could not be had now.
func Open(cols, rows int) (master, slave *os.File, err error) {
	if err := checkSize(cols, rows); err != nil {
		return nil, nil, err
	}
	master, slave, err = open(cols, rows)
	if err == nil {
		return master, slave, nil
	}
	if none := (errNone{err}); none.never() {
		return nil, nil, none
	}
	return nil, nil, exhausted(err)
}

// open makes the pair. Both ends are closed on exec, and neither becomes the
// controlling terminal of this process.
func open(cols, rows int) (_, _ *os.File, _ error) {
	blocking, slave, err := creack.Open()
	if err != nil {
		return nil, nil, err
	}
	master, err := pollable(blocking)
	if closeErr := blocking.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = Resize(master, cols, rows)
	}
	if err == nil {
		err = setUTF8(slave)
	}
	if err != nil {
		_ = slave.Close()
		if master != nil {
			_ = master.Close()
		}
		return nil, nil, err
	}
	return master, slave, nil
}

// pollable returns f as a file that waits in the runtime's poller. creack/pty
// leaves its master in blocking mode, where every read that waits holds a thread
// and deadlines do not work.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("duplicate the terminal", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("set the terminal to non-blocking", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// setUTF8 makes the line discipline erase characters, not bytes.
func setUTF8(slave *os.File) error {
	fd := int(slave.Fd()) // this also makes it blocking, as the program that gets it expects
	termios, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return os.NewSyscallError("read the terminal's modes", err)
	}
	termios.Iflag |= unix.IUTF8
	return os.NewSyscallError("set the terminal's modes", unix.IoctlSetTermios(fd, setTermios, termios))
}

// Resize tells the terminal, and with it the program, its new size. The file is
// not asked for its descriptor, which would make it block.
func Resize(master *os.File, cols, rows int) error {
	conn, err := master.SyscallConn()
	if err != nil {
		return err
	}
	size := unix.Winsize{Col: uint16(cols), Row: uint16(rows)}
	var setErr error
	err = conn.Control(func(fd uintptr) { setErr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &size) })
	if err == nil {
		err = os.NewSyscallError("resize the terminal", setErr)
	}
	return err
}
