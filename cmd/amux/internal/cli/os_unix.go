//go:build unix

package cli

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

const isWindows = false

// isSuspend reports whether a signal is that of Ctrl-Z.
func isSuspend(sig os.Signal) bool { return sig == syscall.SIGTSTP }

// isQuit reports whether a signal is that of Ctrl-\.
func isQuit(sig os.Signal) bool { return sig == syscall.SIGQUIT }

// suspend stops this process and returns when it is continued. It waits for the
// signal that says so: the thread that stops the process runs on for a moment.
func suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(os.Getpid(), syscall.SIGSTOP) == nil {
		<-continued
	}
}

// isBrokenPipe reports whether the reader of a pipe has gone.
func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
