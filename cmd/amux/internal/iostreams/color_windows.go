package iostreams

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableColor asks the console to understand escape sequences.
func enableColor(f *os.File) bool {
	handle := windows.Handle(f.Fd())
	var mode uint32
	if windows.GetConsoleMode(handle, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
