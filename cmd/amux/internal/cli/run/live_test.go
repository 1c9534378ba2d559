package run

import (
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// TestTurn: a turn goes on after an error that the agent gets over, so that no further
// prompt is asked for; an error without a turn is about the prompt, and ends the wait.
func TestTurn(t *testing.T) {
	t.Parallel()
	l := &live{}
	for i, step := range []struct {
		event pluginapi.Type
		busy  bool
	}{
		{code.EventUserMessage, true},
		{code.EventError, false}, // the prompt cannot be sent
		{code.EventUserMessage, true},
		{code.EventTurnStart, true},
		{code.EventError, true}, // overloaded; the agent tries again
		{code.EventToolCallStart, true},
		{code.EventTurnEnd, false},
		{code.EventError, false},
		{code.EventTurnStart, true}, // by itself
		{code.EventRunEnd, false},
	} {
		if l.turn(host.Event{Type: step.event}); l.busy != step.busy {
			t.Errorf("step %d, %s: busy is %v", i, step.event, l.busy)
		}
	}
}
