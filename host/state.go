package host

import "github.com/amux-dev/amux/pluginapi"

// The states of a run.
const (
	stateQueued    = "queued"
	stateStarting  = "starting"
	stateRunning   = "running"
	stateWaiting   = "waiting" // for an answer
	statePaused    = "paused"
	stateCompleted = "completed"
	stateFailed    = "failed"
	stateCanceled  = "canceled"
	stateTimedOut  = "timed_out"
	stateLost      = "lost"
)

// transitions lists what may follow each state. A terminal state has no entry:
// nothing follows it.
var transitions = map[string][]string{
	"":            {stateQueued},
	stateQueued:   {stateStarting, stateCanceled, stateFailed, stateLost},
	stateStarting: {stateRunning, stateFailed, stateCanceled, stateTimedOut, stateLost},
	stateRunning:  {stateWaiting, statePaused, stateCompleted, stateFailed, stateCanceled, stateTimedOut, stateLost},
	stateWaiting:  {stateRunning, statePaused, stateCompleted, stateFailed, stateCanceled, stateTimedOut, stateLost},
	statePaused:   {stateRunning, stateWaiting, stateCompleted, stateFailed, stateCanceled, stateTimedOut, stateLost},
}

func terminal(state string) bool { return state != "" && transitions[state] == nil }

// checkTransition is the one gate of every change of state.
func checkTransition(from, to string) error {
	for _, next := range transitions[from] {
		if next == to {
			return nil
		}
	}
	return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "a run cannot go from %q to %q", from, to)
}
