package engine

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// Every change of state that is not listed is refused, and what has ended stays as it
// is.
func TestTransitions(t *testing.T) {
	t.Parallel()
	states := []string{
		Queued, Starting, Running, Waiting, Paused,
		Completed, Failed, Canceled, TimedOut, Lost,
	}
	allowed := map[[2]string]bool{
		{"", Queued}: true, {Queued, Starting}: true, {Starting, Running}: true,
		{Running, Waiting}: true, {Waiting, Running}: true, {Running, Paused}: true,
		{Paused, Running}: true, {Waiting, Paused}: true, {Paused, Waiting}: true,
	}
	for i, from := range states {
		for _, end := range states[5:] {
			never := i >= 5 || from == Queued && (end == Completed || end == TimedOut) || from == Starting && end == Completed
			allowed[[2]string{from, end}] = !never
		}
	}
	for i, from := range append([]string{""}, states...) {
		if got := Terminal(from); got != (i > 5) {
			t.Errorf("%q is terminal: %v", from, got)
		}
		for _, to := range append([]string{""}, states...) {
			err := checkTransition(from, to)
			if (err == nil) != allowed[[2]string{from, to}] {
				t.Errorf("from %q to %q: %v", from, to, err)
			}
			if err != nil && pluginapi.AsError(err).Code != pluginapi.CodeInvalidTransition {
				t.Errorf("from %q to %q: %v", from, to, err)
			}
		}
	}
}
