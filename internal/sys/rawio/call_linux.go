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

// read waits with raw until there is something to read, from the descriptor that of
// makes of raw's own.
func read(raw syscall.RawConn, of func(fd uintptr) uintptr, b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	waited := raw.Read(func(fd uintptr) bool {
		n, err = call(unix.SYS_READ, of(fd), b, 0)
		return err != unix.EAGAIN
	})
	switch {
	case errors.Is(waited, os.ErrDeadlineExceeded):
		return 0, waited
	case waited != nil: // in words of the runtime's own
		return 0, os.ErrClosed
	case n == 0 && err == nil:
		return 0, io.EOF
	}
	return n, err
}
