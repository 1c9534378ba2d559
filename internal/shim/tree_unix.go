//go:build unix

package shim

import (
	"syscall"
	"time"
)

// settleTime is how long processes that have ended are left alone if the tree was
// walked through just before. Their threads take down what the walk has made of them
// in /proc, and whoever reaps a process meanwhile spins until they have, however long
// others keep the processor from them: with 200 runs that end at once, half of all the
// time that it takes.
const settleTime = 8 * time.Millisecond

// reap collects every process that has ended: the leader, and orphans of the run
// that became our children.
func (t *tree) reap() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.walked {
		t.walked = false
		t.mu.Unlock()
		time.Sleep(settleTime)
		t.mu.Lock()
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		t.reaped(pid, status)
	}
}
