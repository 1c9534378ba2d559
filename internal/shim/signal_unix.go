//go:build unix

package shim

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/pluginapi/code"
)

// checkSignal returns an error if there is no signal of that name.
func checkSignal(_ *child, name string) error {
	if unix.SignalNum(name) == 0 {
		return &RemoteError{Code: code.Validation, Msg: "unknown signal " + name}
	}
	return nil
}

// send sends a signal to the leader, or to the whole tree.
func (c *child) send(name string, tree bool) error {
	sig := unix.SignalNum(name)
	if tree {
		c.tree.signal(sig)
		return nil
	}
	if sent, err := c.signalLeader(sig); err != nil || !sent {
		return errNoChild
	}
	return nil
}

// signalLeader signals the leader if it has not been reaped: its pid is its own
// until then.
func (c *child) signalLeader(sig syscall.Signal) (bool, error) {
	c.tree.mu.Lock()
	defer c.tree.mu.Unlock()
	if isClosed(c.exited) {
		return false, nil
	}
	return true, syscall.Kill(c.pid, sig)
}

// askToEnd sends TERM to the tree. Stopped processes cannot answer it, so they are
// continued.
func (c *child) askToEnd() bool {
	c.tree.signal(syscall.SIGTERM, syscall.SIGCONT)
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
