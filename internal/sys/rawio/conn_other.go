//go:build unix && !(linux && (amd64 || arm64))

package rawio

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a connection. One goroutine may read it and one write it at a time, others
// close it or set its deadline.
type Conn struct {
	file *os.File
	raw  syscall.RawConn
}

// NewConn takes over the socket fd.
func NewConn(fd int) (*Conn, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	c := &Conn{file: os.NewFile(uintptr(fd), "connection")}
	var err error
	c.raw, err = c.file.SyscallConn()
	return c, err
}

// Read is that of io.Reader.
func (c *Conn) Read(b []byte) (int, error) { return c.file.Read(b) }

// TryWrite writes what the socket has room for, which may be nothing.
func (c *Conn) TryWrite(b []byte) (n int, err error) {
	closed := c.raw.Write(func(fd uintptr) bool {
		n, err = unix.Write(int(fd), b)
		return true
	})
	switch {
	case closed != nil:
		return 0, closed
	case errors.Is(err, unix.EAGAIN):
		return 0, nil
	}
	return max(n, 0), os.NewSyscallError("write", err)
}

// Write is that of io.Writer.
func (c *Conn) Write(b []byte) (int, error) { return c.file.Write(b) }

// SetReadDeadline is that of net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.file.SetReadDeadline(t) }

// Close ends the connection, and with it what waits for it.
func (c *Conn) Close() error { return c.file.Close() }
