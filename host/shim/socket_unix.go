//go:build unix

package shim

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/rawio"
)

// The keeper speaks to its socket without package net, which would double its
// memory.

func listen(path string) (*os.File, error) {
	_ = os.Remove(path)
	// Under the fork lock, here and in accept: the agent inherits no socket.
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	// The folder is the user's alone; so is the socket, from its first moment.
	old := unix.Umask(0o177)
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	unix.Umask(old)
	if err == nil {
		err = unix.Listen(fd, 16)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

func accept(listener *os.File) (*rawio.Conn, error) {
	raw, err := listener.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var failed error
	err = raw.Read(func(l uintptr) bool {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, _, failed = unix.Accept(int(l)); failed == nil { // does not block
			unix.CloseOnExec(fd)
		}
		return failed != unix.EAGAIN && failed != unix.EINTR && failed != unix.ECONNABORTED
	})
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	return rawio.NewConn(fd)
}
