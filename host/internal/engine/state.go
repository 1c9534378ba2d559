package engine

import "github.com/amux-dev/amux/pluginapi"

// The states of a run.
const (
	Queued    = "queued"
	Starting  = "starting"
	Running   = "running"
	Waiting   = "waiting" // for an answer
	Paused    = "paused"
	Completed = "completed"
	Failed    = "failed"
	Canceled  = "canceled"
	TimedOut  = "timed_out"
	Lost      = "lost"
)

// transitions lists what may follow each state. A terminal state has no entry:
// nothing follows it.
var transitions = map[string][]string{
	"":       {Queued},
	Queued:   {Starting, Canceled, Failed, Lost},
	Starting: {Running, Failed, Canceled, TimedOut, Lost},
	Running:  {Waiting, Paused, Completed, Failed, Canceled, TimedOut, Lost},
	Waiting:  {Running, Paused, Completed, Failed, Canceled, TimedOut, Lost},
	Paused:   {Running, Waiting, Completed, Failed, Canceled, TimedOut, Lost},
}

// Terminal reports whether a state is the last one of a run.
func Terminal(state string) bool { return state != "" && transitions[state] == nil }

// checkTransition is the one gate of every change of state.
func checkTransition(from, to string) error {
	for _, next := range transitions[from] {
		if next == to {
			return nil
		}
	}
	return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "a run cannot go from %q to %q", from, to)
}
