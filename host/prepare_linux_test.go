package host_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// Prepare is called once for a run, before its agent, and a refusal leaves nothing. A queued
// run is prepared when its turn has come; a refusal is its end.
func TestPrepare(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := limited(t, s, 1)
	refuse := func(context.Context, host.RunInfo) error { return pluginapi.Errorf(pluginapi.CodeConfig, "not today") }
	spec := host.RunSpec{Agent: "fake", Prompt: "say hi"}
	spec.Cwd, spec.Prepare = t.TempDir(), refuse
	if _, err := h.Start(t.Context(), spec); pluginapi.AsError(err).Code != pluginapi.CodeConfig {
		t.Errorf("refused: %v", err)
	}
	if active, _ := os.ReadDir(filepath.Join(s.Config, "runs", "active")); len(active) != 0 {
		t.Errorf("left behind: %v", active)
	}
	if left, err := os.ReadDir(s.Temp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if runs, err := h.Runs(t.Context()); err != nil || len(runs) != 0 {
		t.Errorf("recorded: %v, %v", runs, err)
	}

	var calls atomic.Int32
	spec.Retry = &host.Retry{MaxAttempts: 2, BaseDelay: 1}
	spec.Prompt = "do fail OVERLOADED\nexit 1"
	spec.Prepare = func(_ context.Context, info host.RunInfo) error {
		calls.Add(1)
		if info.ID == "" || info.Cwd != spec.Cwd || info.Agent != "fake" || info.Prompt != spec.Prompt || info.State != "starting" {
			t.Errorf("prepared with %+v", info)
		}
		return nil
	}
	if s.Start(h, spec).Wait(context.Background()); calls.Load() != 1 {
		t.Errorf("prepared %d times", calls.Load())
	}

	first := held(t, s, h)
	spec.Retry, spec.Prepare = nil, refuse
	queued := s.Start(h, spec)
	wantState(t, queued, "queued")
	must(t, first.Stop(t.Context()))
	if result, _ := queued.Wait(context.Background()); result.State != "failed" || result.Err.Code != pluginapi.CodeConfig {
		t.Errorf("refused in its turn: %+v", result)
	}
}
