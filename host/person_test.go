//go:build linux

package host_test

import (
	"context"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// The silence of a person is not the agent's: a conversation waits between turns
// for as long as it takes, and before the first one. In a turn the limit holds.
func TestPersonMayThink(t *testing.T) {
	const idle = 700 * time.Millisecond
	for name, first := range map[string]string{"no prompt yet": "", "after a turn": "[say:hi]"} {
		t.Run(name, func(t *testing.T) {
			here, _, _ := terminals(t)
			r := start(t, here, host.RunSpec{Conversation: true, Prompt: first, Limits: host.Limits{IdleTimeout: idle}})
			if first != "" {
				until(t, r, "turn_end")
			} else {
				until(t, r, "session_start")
			}
			time.Sleep(3 * idle)
			if end := r.Info().End; end != nil {
				t.Fatalf("it ended: %+v", end)
			}
			if err := r.Send(t.Context(), "[sleep:100]"); err != nil {
				t.Fatal(err)
			}
			if result, _ := r.Wait(context.Background()); result.Err == nil || result.Err.Code != pluginapi.CodeInactivityTimeout {
				t.Errorf("%+v", result)
			}
		})
	}
}
