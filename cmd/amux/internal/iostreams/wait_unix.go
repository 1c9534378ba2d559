//go:build unix

package iostreams

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// waitsForKeys: waitReadable tells of a terminal too.
const waitsForKeys = true

// waitReadable waits until a read of f would return, and takes nothing out of it.
func waitReadable(f *os.File, d time.Duration) bool {
	for deadline := time.Now().Add(d); ; {
		left := max(0, time.Until(deadline))
		fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(left.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && n > 0
	}
}
