//go:build linux && (amd64 || arm64)

package rawio

import (
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a connection. One goroutine may read it and one write it at a time, others
// close it or set its deadline.
type Conn struct {
	fd int
	// ready is an epoll instance that watches for input alone. The runtime waits
	// for this in place of the socket, and it keeps fd open for its user.
	ready *os.File
	raw   syscall.RawConn
	in    *reader
	out   writing
	once  sync.Once
	err   error
}

// writing is what a write needs and gives, kept for the reason that reader has.
type writing struct {
	try func(fd uintptr) // writes once
	b   []byte
	n   int
	err error
}

// NewConn takes over the socket fd.
func NewConn(fd int) (_ *Conn, retErr error) {
	defer func() {
		if retErr != nil {
			_ = unix.Close(fd)
		}
	}()
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: int32(fd)}
	err = unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &event)
	if err == nil {
		err = unix.SetNonblock(poll, true)
	}
	if err != nil {
		_ = unix.Close(poll)
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	c := &Conn{fd: fd, ready: os.NewFile(uintptr(poll), "connection")}
	if c.raw, err = c.ready.SyscallConn(); err == nil {
		err = c.ready.SetDeadline(time.Time{}) // fails where the runtime cannot wait for it
	}
	if err != nil {
		_ = c.ready.Close()
		return nil, err
	}
	c.in = newReader(c.raw, func(uintptr) uintptr { return uintptr(c.fd) })
	c.out.try = func(uintptr) { c.out.n, c.out.err = call(unix.SYS_WRITE, uintptr(c.fd), c.out.b, 0) }
	return c, nil
}

// Read is that of io.Reader.
func (c *Conn) Read(b []byte) (int, error) { return c.in.read(b) }

// TryWrite writes what the socket has room for, which may be nothing.
func (c *Conn) TryWrite(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	c.out.b, c.out.n, c.out.err = b, 0, nil
	closed := c.raw.Control(c.out.try)
	n, err := c.out.n, c.out.err
	c.out.b = nil
	switch {
	case closed != nil:
		return 0, os.ErrClosed
	case err == unix.EAGAIN:
		return 0, nil
	}
	return n, named("write", err)
}

// Write is that of io.Writer.
func (c *Conn) Write(b []byte) (written int, err error) {
	for written < len(b) {
		n, err := c.TryWrite(b[written:])
		if err != nil {
			return written, err
		}
		if written += n; n == 0 {
			n, err := c.writeSlowly(b[written:])
			return written + n, err
		}
	}
	return written, nil
}

// writeSlowly waits for room by a descriptor of its own, which the runtime knows.
func (c *Conn) writeSlowly(b []byte) (int, error) {
	fd, err := -1, error(nil)
	closed := c.raw.Control(func(uintptr) { fd, err = unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 0) })
	if closed != nil {
		return 0, os.ErrClosed
	}
	if err != nil {
		return 0, os.NewSyscallError("fcntl", err)
	}
	f := os.NewFile(uintptr(fd), "connection")
	defer f.Close()
	return f.Write(b)
}

// SetReadDeadline is that of net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.ready.SetReadDeadline(t) }

// Close ends the connection, and with it what waits for it.
func (c *Conn) Close() error {
	c.once.Do(func() {
		_ = c.raw.Control(func(uintptr) { _ = unix.Shutdown(c.fd, unix.SHUT_RDWR) }) // ends a Write that waits
		c.err = c.ready.Close()                                                      // returns when nobody uses fd
		_ = unix.Close(c.fd)
	})
	return c.err
}

// named says which call gave an error of the system.
func named(call string, err error) error {
	if errno, ok := err.(unix.Errno); ok {
		return os.NewSyscallError(call, errno)
	}
	return err
}
