package shim

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/internal/journal"
)

var peekNamedPipe = windows.NewLazySystemDLL("kernel32.dll").NewProc("PeekNamedPipe")

// copyRest moves what is in a pipe that was not read to its end in time: the
// records before it may have waited for a full disk.
func (r *recorder) copyRest(f *os.File, kind journal.Kind, buf []byte) {
	raw, err := f.SyscallConn()
	if err != nil || f.SetReadDeadline(time.Time{}) != nil {
		return
	}
	var left uint32
	_ = raw.Control(func(fd uintptr) {
		_, _, _ = peekNamedPipe.Call(fd, 0, 0, 0, uintptr(unsafe.Pointer(&left)), 0)
	})
	for left > 0 {
		part := buf[journal.RecordHeader:]
		n, err := f.Read(part[:min(len(part), int(left))])
		if n > 0 {
			r.appendFramed(kind, buf[:journal.RecordHeader+n])
		}
		if err != nil {
			return
		}
		left -= uint32(n)
	}
}
