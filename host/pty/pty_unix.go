//go:build unix

package pty

import (
	"os"

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
func open(cols, rows int) (_, _ *os.File, retErr error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	// Non-blocking before os.NewFile: then the poller has it.
	master := os.NewFile(uintptr(fd), "/dev/ptmx")
	defer func() {
		if retErr != nil {
			_ = master.Close()
		}
	}()
	peer, err := openSlave(fd)
	if err != nil {
		return nil, nil, err
	}
	slave := os.NewFile(uintptr(peer), "pty")
	err = Resize(master, cols, rows)
	if err == nil {
		err = setUTF8(peer)
	}
	if err != nil {
		_ = slave.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

// setUTF8 has the line discipline erase characters and not bytes.
func setUTF8(fd int) error {
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
