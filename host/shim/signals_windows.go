package shim

import (
	"os"
	"os/signal"
	"syscall"
)

// starter is what a Tree has besides: processes are in its job from their first
// instruction on.
type starter interface {
	// Spawn starts a program, which inherits attr.Files and nothing else, or has the
	// pseudo-console if that is not 0.
	Spawn(program string, argv []string, attr *syscall.ProcAttr, console uintptr) (pid int, process uintptr, err error)
	// Console sends an event to every process on the console, the shim among them.
	Console(event uint32) error
}

// catchSignals is called before anything is started. What it returns waits until the
// shim may leave.
func (s *supervisor) catchSignals() (wait func()) {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM) // the agent's console is the shim's
	return func() { <-s.done }
}
