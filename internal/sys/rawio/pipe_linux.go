//go:build linux && (amd64 || arm64)

package rawio

import "os"

// Pipe reads a pipe that does not block. It is for one goroutine.
type Pipe struct{ in *reader }

// NewPipe reads f, which stays the caller's.
func NewPipe(f *os.File) (Pipe, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return Pipe{}, err
	}
	return Pipe{newReader(raw, func(fd uintptr) uintptr { return fd })}, nil
}

// Read is that of io.Reader.
func (p Pipe) Read(b []byte) (int, error) { return p.in.read(b) }
