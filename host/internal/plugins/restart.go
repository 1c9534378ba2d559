package plugins

import (
	"context"
	"errors"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/internal/adapter"
)

// Lives counts the plugin processes in a row that died without one of them getting
// further than those before.
type Lives struct {
	stuck, killed int
	shared        int           // that died while nothing was waited for
	stalled       time.Duration // what they took for it together
}

// Left is how long the next one may be without progress, of what all may be.
func (l *Lives) Left(of Limits) time.Duration {
	return min(of.Progress, max(of.Stall-l.stalled, of.Progress/4).Round(of.Progress/100))
}

// Shares notes that a shared process has died after a time, and reports whether its run may share the
// next: if it has waited for no answer, and unless that was so too often. What a run has made a plugin
// do may kill it a moment later, and then all others with it, until the run has a process of its own.
func (l *Lives) Shares(broken *engine.Broken, lived time.Duration) bool {
	if broken.Sent > broken.Done || !errors.Is(broken.Cause, adapter.ErrDied) && !errors.Is(broken.Cause, adapter.ErrKilled) {
		return false
	}
	if lived > longLife {
		l.shared = 0
	}
	l.shared++
	return l.shared <= maxShared
}

const (
	// So many shared processes may die in a row of which none has lived long.
	maxShared = 3
	longLife  = time.Minute

	maxStuck = 5
	// Of those that somebody has killed there may be more: it is no fault of theirs, and
	// may be over soon.
	maxKilled = 12
	killPause = 10 * time.Millisecond // twice as long each time, up to
	killRest  = 500 * time.Millisecond
)

// Again notes how one has died, and how long it took for that, and reports whether
// another is worth it. It waits a little behind those that were killed.
func (l *Lives) Again(ctx context.Context, cause error, took time.Duration, of Limits) bool {
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
		return l.stuck <= maxStuck && l.stalled < of.Stall
	}
	return false
}

// Suspect is the input that plugin processes of a run may have died of: one of
// From + 1 … To. Once it is known that it was no chance these are fed one by one, so
// that the input can be named.
type Suspect struct {
	From, To uint64
	Single   bool
	deaths   int
}

// Again notes a death, which may have been a slow one, and reports whether another
// process may help: not when one input has killed twice those who were fed nothing else.
func (s *Suspect) Again(broken *engine.Broken, slow bool) bool {
	if errors.Is(broken.Cause, adapter.ErrKilled) {
		return true // by no input
	}
	// These take their time to die: the second time is the last.
	slow = slow || errors.Is(broken.Cause, engine.ErrHung) || errors.Is(broken.Cause, adapter.ErrLarge)
	if s.Single && broken.Done >= s.From && broken.Done < s.To {
		if slow || broken.Sent-broken.Done <= engine.Window && s.To-s.From == 1 {
			return false
		}
		// The next one shows whether it was this input.
		s.From, s.To = broken.Done, broken.Done+1
		s.deaths++
		return true
	}
	s.deaths++
	s.From, s.To, s.Single = broken.Done, broken.Sent, slow || s.deaths > 1
	return true
}
