package iostreams

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

var peekNamedPipe = windows.NewLazySystemDLL("kernel32.dll").NewProc("PeekNamedPipe")

// waitsForKeys: a console has something to read whenever a key moves.
const waitsForKeys = false

// waitReadable waits until a read of f would return, and takes nothing out of it.
func waitReadable(f *os.File, d time.Duration) bool {
	for deadline := time.Now().Add(d); ; time.Sleep(10 * time.Millisecond) {
		var available uint32
		ok, _, _ := peekNamedPipe.Call(f.Fd(), 0, 0, 0, uintptr(unsafe.Pointer(&available)), 0)
		if ok == 0 || available > 0 {
			return true // it has ended, is a file, or has something
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
