//go:build linux && (amd64 || arm64)

package rawio

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Output writes to what others may share and read slowly, a pipe as a rule. It is for one goroutine.
type Output struct {
	f   *os.File
	raw syscall.RawConn // nil: it may only be waited for
}

// NewOutput writes to f, which stays the caller's.
func NewOutput(f *os.File) *Output {
	raw, _ := f.SyscallConn()
	return &Output{f, raw}
}

// Write is that of io.Writer. What the system takes at once is written without the runtime's knowledge.
func (o *Output) Write(b []byte) (written int, err error) {
	if o.raw != nil && len(b) > 0 {
		var errno syscall.Errno
		if o.raw.Control(func(fd uintptr) { written, errno = writeNow(fd, b) }) != nil || errno != 0 && errno != unix.EAGAIN {
			o.raw = nil // no pipe, or an old system; and a pipe that nobody reads is for f to tell
		}
		if written == len(b) {
			return written, nil
		}
	}
	n, err := o.f.Write(b[written:])
	return written + n, err
}

// writeNow writes what fits without a wait, though fd may be one that blocks.
func writeNow(fd uintptr, b []byte) (int, syscall.Errno) {
	part := unix.Iovec{Base: &b[0]}
	part.SetLen(len(b))
	const here = ^uintptr(0) // where the file is
	n, _, errno := unix.RawSyscall6(unix.SYS_PWRITEV2, fd, uintptr(unsafe.Pointer(&part)), 1, here, here, unix.RWF_NOWAIT)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
