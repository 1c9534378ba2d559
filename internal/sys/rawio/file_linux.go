//go:build linux && (amd64 || arm64)

package rawio

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ReadAt is that of io.ReaderAt.
func (f regular) ReadAt(b []byte, offset int64) (int, error) {
	return f.all("read", unix.SYS_PREAD64, b, offset, io.EOF)
}

// WriteAt is that of io.WriterAt.
func (f regular) WriteAt(b []byte, offset int64) (int, error) {
	return f.all("write", unix.SYS_PWRITE64, b, offset, io.ErrShortWrite)
}

// all calls until all of b is done; none is the error of a call that did nothing.
func (f regular) all(op string, trap uintptr, b []byte, offset int64, none error) (done int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	closed := raw.Control(func(fd uintptr) {
		for err == nil && done < len(b) {
			var n int
			n, err = call(trap, fd, b[done:], offset+int64(done))
			if done += n; n == 0 && err == nil {
				err = none
			}
		}
	})
	switch {
	case closed != nil:
		return 0, os.ErrClosed
	case err == nil || err == none:
		return done, err
	}
	return done, &os.PathError{Op: op, Path: f.Name(), Err: err}
}
