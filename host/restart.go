package host

import (
	"context"
	"errors"
	"time"

	"github.com/amux-dev/amux/host/adapter"
	"github.com/amux-dev/amux/host/internal/engine"
)

// lives counts the plugin processes in a row that died without one of them getting
// further than those before.
type lives struct {
	stuck, killed int
	stalled       time.Duration // what they took for it together
}

// left is how long the next one may be without progress, of what all may be.
func (l *lives) left(of limits) time.Duration {
	return min(of.progress, max(of.stall-l.stalled, of.progress/4).Round(of.progress/100))
}

const (
	maxStuck = 5
	// Of those that somebody has killed there may be more: it is no fault of theirs, and
	// may be over soon.
	maxKilled = 12
	killPause = 10 * time.Millisecond // twice as long each time, up to
	killRest  = 500 * time.Millisecond
)

// again notes how one has died, and how long it took for that, and reports whether
// another is worth it. It waits a little behind those that were killed.
func (l *lives) again(ctx context.Context, cause error, took time.Duration, of limits) bool {
	switch {
	case errors.Is(cause, adapter.ErrKilled):
		if l.killed++; l.killed == maxKilled {
			return false
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(killPause<<l.killed, killRest)):
		}
		return true
	case errors.Is(cause, adapter.ErrDied) || errors.Is(cause, engine.ErrHung):
		l.stuck++
		l.stalled += took
		return l.stuck <= maxStuck && l.stalled < of.stall
	}
	return false
}

// crashSuspect is the input that plugin processes of a run may have died of: one of
// from + 1 … to. Once it is known that it was no chance these are fed one by one, so
// that the input can be named.
type crashSuspect struct {
	from, to uint64
	single   bool
	deaths   int
}

// again notes a death, which may have been a slow one, and reports whether another
// process may help: not when one input has killed twice those who were fed nothing else.
func (s *crashSuspect) again(broken *engine.Broken, slow bool) bool {
	if errors.Is(broken.Cause, adapter.ErrKilled) {
		return true // by no input
	}
	// These take their time to die: the second time is the last.
	slow = slow || errors.Is(broken.Cause, engine.ErrHung) || errors.Is(broken.Cause, adapter.ErrLarge)
	if s.single && broken.Done >= s.from && broken.Done < s.to {
		if slow || broken.Sent-broken.Done <= engine.Window && s.to-s.from == 1 {
			return false
		}
		// The next one shows whether it was this input.
		s.from, s.to = broken.Done, broken.Done+1
		s.deaths++
		return true
	}
	s.deaths++
	s.from, s.to, s.single = broken.Done, broken.Sent, slow || s.deaths > 1
	return true
}
