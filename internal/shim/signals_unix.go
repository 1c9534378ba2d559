//go:build unix

package shim

import (
	"os"
	"os/signal"
	"syscall"
)

// starter is what a Tree has besides: here processes are started by nobody's help.
type starter any

// catchSignals is called before anything is started. What it returns collects the
// processes that end, until the shim may leave.
func (s *supervisor) catchSignals() (wait func()) {
	// Terminal signals of whoever started the host are not for us; Notify, not
	// Ignore, because ignored signals stay ignored in the agent.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGTSTP)
	reaped := make(chan os.Signal, 1)
	signal.Notify(reaped, syscall.SIGCHLD)
	return func() {
		for {
			select {
			case <-ignored:
			case <-reaped:
				s.tree.reap()
			case <-s.done:
				return
			}
		}
	}
}
