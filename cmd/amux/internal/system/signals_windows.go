package system

import (
	"os"
	"syscall"
)

var (
	caught     = []os.Signal{os.Interrupt, syscall.SIGTERM}
	quit       []os.Signal                    // there is none
	resize     []os.Signal                    // there is none: the size is that of the start
	brokenPipe = []os.Signal{syscall.SIGPIPE} // never comes
)
