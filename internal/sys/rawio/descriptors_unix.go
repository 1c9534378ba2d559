//go:build unix

package rawio

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// CloseOnExec keeps what this process was given beside stdin, stdout and stderr
// from what it starts: who waits for the end of a pipe would wait for that.
func CloseOnExec() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
