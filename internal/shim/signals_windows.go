package shim

import (
	"os"
	"os/signal"
	"syscall"
)

// starter is what a Tree has besides. The shim is in the tree's job itself, so every
// process that it starts is in it from its first instruction.
type starter interface {
	// SpareConsole leaves the host of leader's pseudo-console, which the system has
	// started, out of the tree until restore is called.
	SpareConsole(leader int) (restore func())
	// Console sends an event to every process on the console, the shim among them.
	Console(event uint32) error
}

// catchSignals is called before anything is started. What it returns waits until the
// shim may leave.
func (s *supervisor) catchSignals() (wait func()) {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM) // the agent's console is the shim's
	return func() { <-s.done }
}
