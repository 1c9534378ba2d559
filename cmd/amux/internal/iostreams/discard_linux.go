package iostreams

import (
	"os"

	"golang.org/x/sys/unix"
)

// getTermios and setTermios read and set the modes of a terminal.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// discardTyped drops what was typed on the terminal and not read yet.
func discardTyped(f *os.File) { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
