package engine

import (
	"sync"
	"time"
)

// watchdog says when a plugin has held an input for too long. It runs only while the
// host waits for an answer, so that a slow consumer is not taken for a slow plugin,
// and it counts on until an input is done: answers that finish none are no progress.
type watchdog struct {
	clock Clock
	limit time.Duration

	mu       sync.Mutex
	fire     func()
	timer    Timer // looks after the watchdog from time to time, which costs less than to set it for each batch
	armed    bool
	since    time.Time     // when the wait began, while it runs
	spent    time.Duration // waited before that, since the last progress
	lineSize int           // bytes of the longest line in pieces, for which there is more time
	batches  int
	inRecv   bool
	stopped  bool
}

// onEnd says what is done when the time is over.
func (w *watchdog) onEnd(fire func()) { w.change(func() { w.fire = fire }) }

func (w *watchdog) sent(lineSize int) { w.change(func() { w.batches++; w.lineSize = lineSize }) }
func (w *watchdog) waiting()          { w.change(func() { w.inRecv = true }) }
func (w *watchdog) received()         { w.change(func() { w.inRecv = false }) }
func (w *watchdog) running() bool     { return w.batches > 0 && w.inRecv && !w.stopped }

// open says how many batches are unanswered, and whether an input was done.
func (w *watchdog) open(n int, progress bool) {
	w.change(func() {
		w.batches = n
		if progress {
			w.spent = 0
		}
	})
}

// lineTime is how much longer a long line may take.
const lineTime = time.Second / (16 << 20) // for each byte

// left is what remains, while it runs.
func (w *watchdog) left() time.Duration {
	return w.limit + time.Duration(w.lineSize)*lineTime - w.spent - w.clock.Now().Sub(w.since)
}

// stalled is how long the plugin was waited for since the last progress.
func (w *watchdog) stalled() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running() {
		return w.spent + w.clock.Now().Sub(w.since)
	}
	return w.spent
}

func (w *watchdog) stop() {
	w.change(func() {
		w.stopped = true
		if w.timer != nil {
			w.timer.Stop() // it holds the run
		}
	})
}

func (w *watchdog) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.running()
	f()
	switch now := w.running(); {
	case before && !now:
		w.spent += w.clock.Now().Sub(w.since)
	case now && !before:
		w.since = w.clock.Now()
		if !w.armed {
			w.arm(w.left())
		}
	}
}

func (w *watchdog) arm(after time.Duration) {
	w.armed = true
	if w.timer == nil {
		w.timer = w.clock.AfterFunc(after, w.look)
	} else {
		w.timer.Reset(after)
	}
}

func (w *watchdog) look() {
	w.mu.Lock()
	w.armed = false
	fire := func() {}
	if w.running() {
		if left := w.left(); left > 0 {
			w.arm(left)
		} else {
			fire = w.fire
		}
	}
	w.mu.Unlock()
	fire()
}
