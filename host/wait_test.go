//go:build linux

package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// A context ends the waiting and nothing else, whoever hosts the run, and what waited is
// gone.
func TestContextEndsOnlyTheWaiting(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	run := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say one\nask go\nsay two", Permissions: host.Permissions{Approve: host.ApproveAsk}})
	agents.Eventually(t, time.Minute, "the run waits", func() bool { return run.Info().State == code.StateWaiting })
	elsewhere, err := s.Host().Open(t.Context(), run.ID())
	if err != nil {
		t.Fatal(err)
	}
	const label = "waits-with-a-context"
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, r := range map[string]*host.Run{"own": run, "remote": elsewhere} {
		pprof.Do(t.Context(), pprof.Labels(label, name), func(context.Context) {
			if result, err := r.Wait(ended); !errors.Is(err, context.Canceled) || result.State != "" {
				t.Errorf("%s: Wait: %+v, %v", name, result, err)
			}
			for _, err := range r.Events(ended, 1) {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s: Events of an ended context yields %v", name, err)
				}
			}
			// While it waits for what has not happened.
			late, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { _, err := r.Wait(late); done <- err }()
			seen := 0
			var last error
			for event, err := range r.Events(late, 1) {
				seen++
				if last = err; event.Type == code.EventApprovalRequest {
					cancel()
				}
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) || !errors.Is(last, context.Canceled) || seen < 3 {
				t.Errorf("%s: Wait: %v; Events: %d, then %v", name, err, seen, last)
			}
		})
	}
	agents.Eventually(t, time.Minute, "nobody waits any more", func() bool {
		var all bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
			t.Fatal(err)
		}
		return !strings.Contains(all.String(), fmt.Sprintf("%q", label))
	})
	if state := run.Info().State; state != code.StateWaiting {
		t.Fatalf("the run is %s, want waiting", state)
	}
	if err := run.Approve(t.Context(), "go", nil); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*host.Run{"own": run, "remote": elsewhere} {
		if result, err := r.Wait(t.Context()); err != nil || result.State != code.StateCompleted {
			t.Errorf("%s: %s, %v", name, result.State, err)
		}
		// What is known needs no waiting.
		if result, err := r.Wait(ended); name == "own" && (err != nil || result.State != code.StateCompleted) {
			t.Errorf("%s: an ended run: %s, %v", name, result.State, err)
		}
	}
}

// Wait's error is that of the run, and no error of a run that was completed is a nil
// pointer in an interface.
func TestWaitReturnsTheRunsError(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	for script, want := range map[string]error{"say hi": nil, "exit 3": pluginapi.CodeAgentFailed} {
		r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: script})
		result, err := r.Wait(t.Context())
		if !errors.Is(err, want) || (err == nil) != (want == nil) || (result.Err == nil) != (err == nil) {
			t.Errorf("%q: %v, and in the result %v", script, err, result.Err)
		}
	}
}
