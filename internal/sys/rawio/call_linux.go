//go:build linux && (amd64 || arm64)

package rawio

import (
	"errors"
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call reads or writes without the runtime's knowledge. Calls that know no offset
// ignore it.
func call(trap, fd uintptr, b []byte, offset int64) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(offset), 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
			continue
		}
		return 0, errno
	}
}

// reader reads a descriptor. What a read needs and gives stands here, so that there is no
// garbage for each line.
type reader struct {
	raw syscall.RawConn
	try func(fd uintptr) bool // reads once
	b   []byte
	n   int
	err error
}

// newReader waits with raw until there is something to read, from the descriptor that of
// makes of raw's own.
func newReader(raw syscall.RawConn, of func(fd uintptr) uintptr) *reader {
	r := &reader{raw: raw}
	r.try = func(fd uintptr) bool {
		r.n, r.err = call(unix.SYS_READ, of(fd), r.b, 0)
		return r.err != unix.EAGAIN
	}
	return r
}

func (r *reader) read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	r.b, r.n, r.err = b, 0, nil
	waited := r.raw.Read(r.try)
	n, err := r.n, r.err
	r.b, r.err = nil, nil
	switch {
	case errors.Is(waited, os.ErrDeadlineExceeded):
		return 0, waited
	case waited != nil: // in words of the runtime's own
		return 0, os.ErrClosed
	case n == 0 && err == nil:
		return 0, io.EOF
	}
	return n, named("read", err)
}
