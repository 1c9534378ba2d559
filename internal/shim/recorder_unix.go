//go:build unix

package shim

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/journal"
)

// copyRest moves what is in a pipe that was not read to its end in time: the
// records before it may have waited for a full disk. It stops at what a pipe can
// hold, for whoever writes on is no process of the run.
func (r *recorder) copyRest(f *os.File, kind journal.Kind, buf []byte) {
	raw, err := f.SyscallConn()
	if err != nil || f.SetReadDeadline(time.Time{}) != nil {
		return
	}
	const most = 1 << 20 // what the kernel grants to users
	for left := most; left > 0; {
		n := 0
		_ = raw.Read(func(fd uintptr) bool {
			n, _ = unix.Read(int(fd), buf[journal.RecordHeader:])
			return true // whatever is there now
		})
		if n <= 0 {
			return
		}
		r.appendFramed(kind, buf[:journal.RecordHeader+n])
		left -= n
	}
}
