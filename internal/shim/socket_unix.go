//go:build unix

package shim

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

// The shim speaks to its socket without package net, which would double its
// memory.

type socket struct{ *os.File }

// Close takes the socket away. Its descriptor ends with the process.
func (s socket) Close() error { return os.Remove(s.Name()) }

func listen(path string) (Listener, error) {
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
	return socket{os.NewFile(uintptr(fd), path)}, nil
}

// Accept is that of Listener.
func (s socket) Accept() (Stream, error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var failed error
	err = raw.Read(func(from uintptr) bool {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, _, failed = unix.Accept(int(from)); failed == nil { // does not block
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
