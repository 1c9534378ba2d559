//go:build linux && (amd64 || arm64)

package rawio

import (
	"os"
	"syscall"
)

// Pipe reads a pipe that does not block.
type Pipe struct{ raw syscall.RawConn }

// NewPipe reads f, which stays the caller's.
func NewPipe(f *os.File) (Pipe, error) {
	raw, err := f.SyscallConn()
	return Pipe{raw}, err
}

// Read is that of io.Reader.
func (p Pipe) Read(b []byte) (int, error) {
	n, err := read(p.raw, func(fd uintptr) uintptr { return fd }, b)
	return n, named("read", err)
}
