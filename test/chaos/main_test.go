//go:build linux

// Package chaos kills every process of amux at every moment, and checks what is
// left by what amux promises.
package chaos

import (
	"bytes"
	"context"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
)

func TestMain(m *testing.M) { agents.Run(m) }

// replay is the events of a run, made again.
func replay(t *testing.T, h *host.Host, id string) []byte {
	t.Helper()
	var again bytes.Buffer
	if err := h.Replay(context.Background(), id, &again); err != nil {
		t.Fatalf("replay: %v", err)
	}
	return again.Bytes()
}

// events are all events of a run that has ended or will.
func events(t *testing.T, r *host.Run) []byte {
	t.Helper()
	var got bytes.Buffer
	if err := r.CopyEvents(context.Background(), &got, 1); err != nil {
		t.Fatal(err)
	}
	return got.Bytes()
}

func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if d := agents.Difference(string(got), string(want)); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}
