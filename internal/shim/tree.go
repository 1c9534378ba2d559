package shim

import (
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	killPause  = time.Millisecond      // between two rounds of KILL, at first
	walkPause  = 16 * time.Millisecond // from which on the whole tree is walked through again
	stuckPause = time.Second           // between two rounds for what does not die
	lostTime   = 10 * time.Second      // of a hunt after processes that come as fast as they go, …
	lostPause  = time.Second           // … after which it takes a tenth of a processor and no more
	pauseTime  = 10 * time.Second      // for all to stop, or to go on
)

// tree is the run's processes, and what has been done about them.
type tree struct {
	processes Tree
	leader    func(pid int, status syscall.WaitStatus) // is called for each that was reaped
	log       func(format string, args ...any)
	heldWait  time.Duration

	// mu keeps walks through the tree and reaping apart: Linux spins while it
	// reaps a process whose entry in /proc somebody has open.
	mu     sync.Mutex
	walked bool // since processes were last reaped
	// asking is held while the tree is stopped, continued or terminated: what was
	// asked last is done last.
	asking sync.Mutex

	deaths chan struct{} // rung when processes were reaped
}

// signal signals all and returns how many there are.
func (t *tree) signal(signals ...syscall.Signal) int {
	return t.walk(func() int { return t.processes.Signal(signals...) })
}

func (t *tree) walk(step func() int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.walked = true
	return step()
}

// reaped takes in that a child of this process has ended. mu is held.
func (t *tree) reaped(pid int, status syscall.WaitStatus) {
	t.leader(pid, status)
	select {
	case t.deaths <- struct{}{}:
	default:
	}
}

// hunt is one round of it. It holds mu: nobody else reaps.
func (t *tree) hunt() (gone, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.processes.Hunt(t.reaped)
}

func (t *tree) held() (names []string) {
	t.walk(func() int { names = t.processes.Held(); return len(names) })
	return names
}

// pause stops or continues all, as long as that is wanted, and reports whether it
// reached them.
func (t *tree) pause(on bool, wanted func() bool) bool {
	round := t.processes.Continue
	if on {
		round = t.processes.Stop
	}
	t.asking.Lock()
	defer t.asking.Unlock()
	// New processes may appear while the tree is walked, and one may be missed
	// whose parent exits meanwhile: until two rounds in a row find nothing to do.
	deadline := time.Now().Add(pauseTime)
	for quiet := 0; quiet < 2 && wanted(); {
		quiet++
		if t.walk(round) > 0 {
			if quiet = 0; time.Now().After(deadline) {
				return false
			}
		}
	}
	return true
}

// kill kills until the leader has exited and the system says that nothing is left. After
// a while it names what cannot be ended and leaves it, so that the run ends. Each nudge
// makes it look again at once.
func (t *tree) kill(exited <-chan struct{}, nudge <-chan stopRequest) (held []string) {
	t.signal(syscall.SIGKILL) // all at once; what they start meanwhile is hunted
	var stuckSince time.Time
	since := time.Now()
	for pause := killPause; ; {
		gone, lost := t.hunt()
		if gone && isClosed(exited) {
			return nil
		}
		if lost {
			pause, stuckSince = killPause, time.Time{}
			if time.Since(since) > lostTime {
				time.Sleep(lostPause)
			}
			continue
		}
		select {
		case <-t.deaths:
			pause = killPause
			continue
		case <-time.After(pause):
		case <-nudge:
		}
		if pause = min(2*pause, stuckPause); pause < walkPause {
			continue
		}
		t.signal(syscall.SIGKILL) // what is below one that does not die is no child of ours
		if pause < stuckPause {
			continue
		}
		switch held = t.held(); {
		case len(held) == 0:
			stuckSince = time.Time{}
		case stuckSince.IsZero():
			stuckSince = time.Now()
			t.log("cannot be killed, and the run waits for it: %s", strings.Join(held, "; "))
		case time.Since(stuckSince) > t.heldWait:
			t.log("the run ends without: %s", strings.Join(held, "; "))
			return held
		}
	}
}
