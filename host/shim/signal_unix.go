//go:build unix

package shim

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// checkSignal wants that there is a signal of that name.
func checkSignal(_ *child, name string) error {
	if unix.SignalNum(name) == 0 {
		return &RemoteError{"VALIDATION_ERROR", "no signal has the name " + name}
	}
	return nil
}

// send sends a signal to the leader, or to the whole tree.
func (k *keeper) send(child *child, name string, tree bool) error {
	sig := unix.SignalNum(name)
	if tree {
		k.signal(sig)
		return nil
	}
	if sent, err := k.signalLeader(child, sig); err != nil || !sent {
		return errNoChild
	}
	return nil
}

// signalLeader signals the leader if it has not been reaped: its pid is its own
// until then.
func (k *keeper) signalLeader(child *child, sig syscall.Signal) (bool, error) {
	k.walk.Lock()
	defer k.walk.Unlock()
	if isClosed(child.exited) {
		return false, nil
	}
	return true, syscall.Kill(child.pid, sig)
}

// askToEnd sends TERM to the tree. Stopped processes cannot answer it, so they are
// continued.
func (k *keeper) askToEnd(*child) bool {
	k.signal(syscall.SIGTERM, syscall.SIGCONT)
	return true
}

// ended says how the leader has ended.
func (c *child) ended() (code int, signal string) {
	if !isClosed(c.exited) {
		return -1, "" // it could not be ended
	}
	if c.status.Signaled() {
		return -1, unix.SignalName(c.status.Signal())
	}
	return c.status.ExitStatus(), ""
}
