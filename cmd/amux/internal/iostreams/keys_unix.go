//go:build unix

package iostreams

import (
	"os"

	"golang.org/x/sys/unix"
)

// passKeys makes a terminal pass on keys as they are typed, without showing them.
func passKeys(f *os.File) (restore func() error, err error) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	keys := *before
	keys.Iflag &^= unix.ICRNL
	keys.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, setTermios, &keys); err != nil {
		return nil, err
	}
	return func() error { return unix.IoctlSetTermios(fd, setTermios, before) }, nil
}
