package iostreams

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped drops what was typed on the terminal and not read yet.
func discardTyped(f *os.File) {
	const read = 1 // FREAD
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, read)
}
