package engine

import (
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// The states of a run.
const (
	Queued    = code.StateQueued
	Starting  = code.StateStarting
	Running   = code.StateRunning
	Waiting   = code.StateWaiting // for an answer
	Paused    = code.StatePaused
	Completed = code.StateCompleted
	Failed    = code.StateFailed
	Canceled  = code.StateCanceled
	TimedOut  = code.StateTimedOut
	Lost      = code.StateLost
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
