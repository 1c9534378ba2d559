package iostreams

import (
	"os"

	"golang.org/x/sys/unix"
)

// getTermios and setTermios read and set the modes of a terminal.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

// discardTyped drops what was typed on the terminal and not read yet.
func discardTyped(f *os.File) {
	const read = 1 // FREAD
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, read)
}
