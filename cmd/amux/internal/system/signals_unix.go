//go:build unix

package system

import (
	"os"
	"syscall"
)

var (
	caught     = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP}
	quit       = []os.Signal{syscall.SIGQUIT}
	resize     = []os.Signal{syscall.SIGWINCH}
	brokenPipe = []os.Signal{syscall.SIGPIPE}
)
