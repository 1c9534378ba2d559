//go:build linux

package host_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/test/agents"
)

// spent is what all runs of a host have used, by their tokens.
func spent(t *testing.T, h *host.Host) (all []string) {
	t.Helper()
	bad, err := h.Spending(context.Background(), time.Time{}, func(s *host.Spending) {
		line := fmt.Sprintf("%s ended=%v", s.Run.Name, s.Run.Ended != nil)
		if s.Tokens.Input != nil {
			line += fmt.Sprintf(" in=%d out=%d $%.6f", *s.Tokens.Input, *s.Tokens.Output, s.Cost.USD)
		}
		for _, m := range s.Models {
			line += fmt.Sprintf(" %s=%d", m.Model, *m.Tokens.Input)
		}
		all = append(all, line)
	})
	must(t, err)
	if bad > 0 {
		t.Errorf("%d bad lines", bad)
	}
	slices.Sort(all)
	return all
}

// What a run has used counts while it goes on, when it has ended, when its record is
// gone, and when the index was lost.
func TestSpending(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	const usage = `event token_usage {"input_tokens":%d,"output_tokens":1,"model":"%s"}` + "\n"
	ended := s.Start(h, host.RunSpec{Agent: "fake", Name: "ended", Prompt: "usage 40 2\n" + fmt.Sprintf(usage, 5, "large") + fmt.Sprintf(usage, 6, "small") + fmt.Sprintf(usage, 7, "large")})
	if end, _ := ended.Wait(context.Background()); end.State != "completed" {
		t.Fatal(end.State, end.Err)
	}
	live := s.Start(h, host.RunSpec{Agent: "fake", Name: "live", Prompt: "usage 30 3\nwait"})
	const first, second = "ended ended=true in=58 out=5 $0.000042 =40 large=12 small=6", "live ended=%v in=30 out=3 $0.000033 =30"
	agents.Eventually(t, 20*time.Second, "the live run counts", func() bool {
		return slices.Equal(spent(t, h), []string{first, fmt.Sprintf(second, false)})
	})
	must(t, live.Stop(context.Background()))
	live.Wait(context.Background())
	want := []string{first, fmt.Sprintf(second, true)}
	if got := spent(t, h); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	path := filepath.Join(s.Options().ConfigDir, store.IndexName)
	index, err := os.ReadFile(path)
	must(t, err)
	must(t, os.Remove(path))
	if got := spent(t, h); !slices.Equal(got, want) {
		t.Errorf("without an index: got %q, want %q", got, want)
	}
	rebuilt, err := os.ReadFile(path)
	must(t, err)
	lines := bytes.Split(bytes.TrimSpace(index), []byte("\n"))
	if slices.Reverse(lines); string(rebuilt) != string(bytes.Join(lines, []byte("\n")))+"\n" {
		t.Errorf("the index was\n%s\nand was rebuilt as\n%s", index, rebuilt)
	}
	for _, r := range []*host.Run{ended, live} {
		if outcome, err := h.Delete(context.Background(), r.ID()); err != nil {
			t.Error(outcome, err)
		}
	}
	if got := spent(t, h); !slices.Equal(got, want) {
		t.Errorf("without records: got %q, want %q", got, want)
	}
}
