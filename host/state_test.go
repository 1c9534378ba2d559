package host

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// Every change of state that is not listed is refused, and what has ended stays as it
// is.
func TestTransitions(t *testing.T) {
	t.Parallel()
	states := []string{
		stateQueued, stateStarting, stateRunning, stateWaiting, statePaused,
		stateCompleted, stateFailed, stateCanceled, stateTimedOut, stateLost,
	}
	allowed := map[[2]string]bool{
		{"", stateQueued}: true, {stateQueued, stateStarting}: true, {stateStarting, stateRunning}: true,
		{stateRunning, stateWaiting}: true, {stateWaiting, stateRunning}: true, {stateRunning, statePaused}: true,
		{statePaused, stateRunning}: true, {stateWaiting, statePaused}: true, {statePaused, stateWaiting}: true,
	}
	for i, from := range states {
		for _, end := range states[5:] {
			never := i >= 5 || from == stateQueued && (end == stateCompleted || end == stateTimedOut) || from == stateStarting && end == stateCompleted
			allowed[[2]string{from, end}] = !never
		}
	}
	for i, from := range append([]string{""}, states...) {
		if got := terminal(from); got != (i > 5) {
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
