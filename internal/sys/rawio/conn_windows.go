package rawio

import (
	"os"
	"time"
)

// Conn is a connection: one end of a named pipe. One goroutine may read it and one
// write it at a time, others close it or set its deadline.
type Conn struct{ file *os.File }

// NewConn takes over the handle of a pipe.
func NewConn(handle int) (*Conn, error) {
	return FileConn(os.NewFile(uintptr(handle), "connection")), nil
}

// FileConn takes over a pipe.
func FileConn(f *os.File) *Conn { return &Conn{f} }

// Read is that of io.Reader.
func (c *Conn) Read(b []byte) (int, error) { return c.file.Read(b) }

// TryWrite writes nothing: a pipe does not tell how much room it has.
func (c *Conn) TryWrite([]byte) (int, error) { return 0, nil }

// Write is that of io.Writer.
func (c *Conn) Write(b []byte) (int, error) { return c.file.Write(b) }

// SetReadDeadline is that of net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.file.SetReadDeadline(t) }

// Close ends the connection, and with it what waits for it.
func (c *Conn) Close() error { return c.file.Close() }
