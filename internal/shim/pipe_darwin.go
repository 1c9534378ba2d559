package shim

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// cloexecPipe holds the fork lock: macOS has no pipe2, and a fork in between
// would inherit the ends.
func cloexecPipe(p *[2]int) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := unix.Pipe(p[:]); err != nil {
		return err
	}
	unix.CloseOnExec(p[0])
	unix.CloseOnExec(p[1])
	return nil
}
