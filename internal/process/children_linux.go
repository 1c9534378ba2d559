package process

import (
	"os"
	"sync"
)

// started are the children that this process has started itself. It is the
// process's, as adoption is.
var started struct {
	// starting is held from the start of a child until it is known.
	starting sync.RWMutex
	mu       sync.Mutex
	children map[ID]bool
}

// Starting calls start, which starts a child of this process and gives its pid: it
// is no orphan then.
func Starting(start func() (pid int, err error)) error {
	started.starting.RLock()
	defer started.starting.RUnlock()
	pid, err := start()
	if err != nil {
		return err
	}
	if st, there := readStat(pid); there { // also one that has ended already
		started.mu.Lock()
		defer started.mu.Unlock()
		if started.children == nil || len(started.children)%256 == 255 {
			forgetDead()
		}
		started.children[ID{pid, st.start}] = true
	}
	return nil
}

// forgetDead forgets those that are gone. One that has ended and was not waited for is
// still a child, and somebody's to wait for.
func forgetDead() {
	there := map[ID]bool{}
	for id := range started.children {
		if st, ok := readStat(id.PID); ok && st.start == id.Start {
			there[id] = true
		}
	}
	started.children = there
}

// Orphans are the live processes that this one has adopted, and all below them.
// The children that it has started itself, and all below them, are no orphans.
func Orphans() []ID {
	started.starting.Lock()
	defer started.starting.Unlock()
	started.mu.Lock()
	defer started.mu.Unlock()
	forgetDead()
	own := map[int]bool{}
	for id := range started.children {
		own[id.PID] = true
	}
	return below(os.Getpid(), own)
}
