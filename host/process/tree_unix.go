//go:build unix

package process

import (
	"os"
	"syscall"
)

// Tree is every process below the one of that pid, which adopts what loses its
// parent: see AdoptOrphans.
type Tree int

// Signal sends the signals to each and says how many there are; without any it
// only counts them.
func (t Tree) Signal(signals ...syscall.Signal) int {
	if int(t) == os.Getpid() && childless() {
		return 0
	}
	members := Descendants(int(t))
	for _, id := range members {
		for _, sig := range signals {
			// A process that cannot be signalled is found again in the next round.
			_, _ = Signal(id, sig)
		}
	}
	return len(members)
}

// Start is when the live process pid started; 0 if there is none.
func (t Tree) Start(pid int) uint64 {
	start, alive := Start(pid)
	if !alive {
		return 0
	}
	return start
}
