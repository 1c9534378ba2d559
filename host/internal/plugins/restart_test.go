package plugins

import (
	"errors"
	"testing"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/internal/adapter"
)

// A run shares the next process if nothing of its own was at work in the one that died, and not forever.
func TestShares(t *testing.T) {
	t.Parallel()
	died := func(cause error, sent, done uint64) *engine.Broken {
		return &engine.Broken{Cause: cause, Sent: sent, Done: done}
	}
	for name, test := range map[string]struct {
		broken *engine.Broken
		want   bool
	}{
		"died at rest":              {died(adapter.ErrDied, 7, 7), true},
		"killed at rest":            {died(adapter.ErrKilled, 7, 7), true},
		"died before the first":     {died(adapter.ErrDied, 0, 0), true},
		"died at work":              {died(adapter.ErrDied, 8, 7), false},
		"killed at work":            {died(adapter.ErrKilled, 8, 7), false},
		"hangs":                     {died(engine.ErrHung, 7, 7), false},
		"the adapter's own refusal": {died(errors.New("no"), 7, 7), false},
	} {
		if got := new(Lives).Shares(test.broken, time.Second); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	var l Lives
	for i := range 6 {
		if got, want := l.Shares(died(adapter.ErrDied, 7, 7), time.Second), i < maxShared; got != want {
			t.Errorf("death %d: %v", i+1, got)
		}
	}
	if !l.Shares(died(adapter.ErrDied, 7, 7), 2*longLife) {
		t.Error("the death of one that lived long counts with those before")
	}
}
