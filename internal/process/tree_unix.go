//go:build unix

package process

import (
	"os"
	"strconv"
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
		if len(signals) > 0 {
			// A process that cannot be signalled is found again in the next round.
			_, _ = Signal(id, signals...)
		}
	}
	return len(members)
}

// Stop stops each that is not, and says how many still ran code when they were
// looked at. One that sleeps where no signal wakes it runs none before it stops. A
// process is stopped before its children are looked for, so that it starts no more.
func (t Tree) Stop() (running int) {
	walk(int(t), func(id ID) {
		switch stateOf(id.PID) {
		case stopped:
			return
		case active:
			running++
		}
		_, _ = Signal(id, syscall.SIGSTOP)
	})
	return running
}

// Continue continues each that is stopped, and says how many were.
func (t Tree) Continue() (were int) {
	for _, id := range Descendants(int(t)) {
		if stateOf(id.PID) == stopped {
			were++
			_, _ = Signal(id, syscall.SIGCONT)
		}
	}
	return were
}

// heldNames is how many of those that cannot be ended are named.
const heldNames = 8

// Held names those that are left, with the reason, if none of them can be ended now.
func (t Tree) Held() []string {
	var held []string
	left := t.left()
	for _, pid := range left {
		why := heldBy(pid)
		if why == "" {
			return nil
		}
		if len(held) < heldNames {
			held = append(held, why)
		}
	}
	if more := len(left) - len(held); more > 0 {
		held = append(held, strconv.Itoa(more)+" more")
	}
	return held
}

// state is what a process does now.
type state int

const (
	active  state = iota
	stopped       // by a signal or by its tracer
	asleep        // where no signal wakes it
)

// Start is when the live process pid started; 0 if there is none.
func (t Tree) Start(pid int) uint64 {
	start, alive := Start(pid)
	if !alive {
		return 0
	}
	return start
}
