//go:build unix

package app

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// IsWindows says which system this program is built for.
const IsWindows = false

// IsSuspend reports whether a signal is that of Ctrl-Z.
func IsSuspend(sig os.Signal) bool { return sig == syscall.SIGTSTP }

// IsQuit reports whether a signal is that of Ctrl-\.
func IsQuit(sig os.Signal) bool { return sig == syscall.SIGQUIT }

// Suspend stops this process and returns when it is continued. It waits for the
// signal that says so: the thread that stops the process runs on for a moment.
func Suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(os.Getpid(), syscall.SIGSTOP) == nil {
		<-continued
	}
}

// isBrokenPipe reports whether the reader of a pipe has gone.
func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
