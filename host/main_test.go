//go:build linux

package host_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
)

func TestMain(m *testing.M) { agents.Run(m) }

func hurried(t *testing.T, o host.Options) *host.Host {
	t.Helper()
	h, err := host.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h.Limit(patience, 64<<20)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = h.Close(ctx)
	})
	return h
}

func events(t *testing.T, r *host.Run) []byte {
	t.Helper()
	var got bytes.Buffer
	if err := r.CopyEvents(context.Background(), &got, 1); err != nil {
		t.Fatal(err)
	}
	return got.Bytes()
}

func replay(t *testing.T, h *host.Host, id string) []byte {
	t.Helper()
	var again bytes.Buffer
	if err := h.Replay(context.Background(), id, &again); err != nil {
		t.Fatalf("replay: %v", err)
	}
	return again.Bytes()
}

// bystanders are runs that have nothing to do with what goes wrong beside them.
// Each stands in the middle of its work until it is let go.
type bystanders struct {
	t    *testing.T
	runs []*host.Run
}

const bystanding = "lines 500\nask go\nlines 500\nusage 1 2"

func stand(t *testing.T, s *agents.Stage, h *host.Host, agent string, n int) *bystanders {
	t.Helper()
	b := &bystanders{t: t}
	for range n {
		b.runs = append(b.runs, s.Start(h, host.RunSpec{Agent: agent, Prompt: bystanding, Permissions: host.Permissions{Approve: host.ApproveAsk}}))
	}
	for _, r := range b.runs {
		agents.Eventually(t, time.Minute, "a bystander waits", func() bool { return r.Info().State == "waiting" })
	}
	return b
}

// go lets them finish, and compares all with each other and their replays.
func (b *bystanders) finish(h *host.Host) {
	b.t.Helper()
	var first string
	for i, r := range b.runs {
		if err := r.Approve(context.Background(), "go", nil); err != nil {
			b.t.Error(err)
		}
		got := events(b.t, r)
		if end, _ := r.Wait(context.Background()); end.State != "completed" {
			b.t.Errorf("bystander %d: %s, %v", i, end.State, end.Err)
		}
		if d := agents.Difference(string(replay(b.t, h, r.ID())), string(got)); d != "" {
			b.t.Errorf("bystander %d, replay: %s", i, d)
		}
		comparable := agents.Comparable(b.t, got)
		if i == 0 {
			first = comparable
			if n := bytes.Count(got, []byte(`"delta":"line`)); n != 1000 {
				b.t.Errorf("a bystander said %d lines", n)
			}
		}
		if d := agents.Difference(comparable, first); d != "" {
			b.t.Errorf("bystander %d: %s", i, d)
		}
	}
}
