//go:build linux

package host_test

import (
	"context"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
)

// The end of a run says how many lines of stdout its adapter has not known, also
// when it is made again; what comes on stderr is no drift.
func TestUnknownLinesAreCounted(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "drift", "healthy")
	h := s.Host()
	r := s.Start(h, host.RunSpec{Agent: "drift", Prompt: `out what is this\n{"type":"new","source":"stdout"}\n` + "\nerr a note\\n\nout and this\\n\nend\nexit 0"})
	end, _ := r.Wait(context.Background())
	if end.State != "completed" || end.End.UnknownLines != 3 {
		t.Errorf("%s, %d lines", end.State, end.End.UnknownLines)
	}
	recorded, err := h.Open(t.Context(), r.ID())
	if err != nil {
		t.Fatal(err)
	}
	if end := recorded.Info().End; end == nil || end.UnknownLines != 3 {
		t.Errorf("recorded: %+v", end)
	}
}
