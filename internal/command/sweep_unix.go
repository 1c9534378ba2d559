//go:build unix

package command

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/process"
)

// descendants are the live processes below one.
func descendants(pid int) []process.ID { return process.Descendants(pid) }

// sweepCommand kills what a command has left: left, which was below one that was cut off,
// and what carries its mark. To look for a mark takes a walk through all processes, and most
// commands leave nothing: where this process has adopted nobody, nobody is looked for.
func sweepCommand(mark string, left []process.ID) {
	var orphans []process.ID
	if process.Adopting() {
		if orphans = process.Orphans(); len(orphans)+len(left) == 0 {
			return
		}
	}
	killed := left
	for _, id := range left {
		for _, below := range append(process.Descendants(id.PID), id) {
			_, _ = process.Signal(below, unix.SIGKILL) // gone is what we want
			killed = append(killed, below)
		}
	}
	process.Sweep(mark, false)
	for _, id := range append(killed, orphans...) {
		reap(id.PID) // where it was adopted
	}
}

// reap collects a child that this process has adopted and killed.
func reap(pid int) {
	var status syscall.WaitStatus
	_, _ = syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
}
