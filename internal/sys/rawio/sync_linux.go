package rawio

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Sync brings the content of a file to the disk, and of its properties what is needed
// to read it again. It blocks a thread until the disk has answered.
func Sync(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for failed = unix.Fdatasync(int(fd)); errors.Is(failed, unix.EINTR); {
			failed = unix.Fdatasync(int(fd))
		}
	})
	if err == nil && failed != nil {
		err = &os.PathError{Op: "fdatasync", Path: f.Name(), Err: failed}
	}
	return err
}
