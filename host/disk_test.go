//go:build linux

package host_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// syncs are the events of a run that were there each time it was brought to the disk.
type syncs struct {
	mu   sync.Mutex
	seen [][]byte
	t    *testing.T
}

func (s *syncs) count(r *host.Run) error {
	data := firstEvents(s.t, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, data)
	return nil
}

// with reports how often the record was brought to the disk when what is there said
// text, and how often at all.
func (s *syncs) with(text string) (n, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, data := range s.seen {
		if bytes.Contains(data, []byte(text)) {
			n++
		}
	}
	return n, len(s.seen)
}

// A record is brought to the disk when somebody is asked, at the end, or before each
// event, or never, as its mode says.
func TestSyncModes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[host.SyncMode]struct{ asked, all int }{
		"": {1, 2}, host.SyncEnd: {1, 2}, host.SyncAlways: {1, 6}, host.SyncOff: {0, 0},
	} {
		t.Run("mode "+string(mode), func(t *testing.T) {
			t.Parallel()
			s := agents.NewStage(t, "fake", "healthy")
			h := s.Host()
			counted := &syncs{t: t}
			h.CountSyncs(counted.count)
			r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say hi\nask go\nsay more", Permissions: host.Permissions{Approve: host.ApproveAsk}, Sync: mode})
			agents.Eventually(t, time.Minute, "it waits", func() bool { return r.Info().State == "waiting" })
			if mode != host.SyncOff {
				agents.Eventually(t, time.Minute, "what it asks is on the disk", func() bool {
					n, _ := counted.with(`"type":"approval_request"`)
					return n >= want.asked
				})
			}
			must(t, r.Approve(context.Background(), "go", nil))
			if end, _ := r.Wait(context.Background()); end.State != "completed" {
				t.Fatal(end.State, end.Err)
			}
			ended, all := counted.with(`"type":"run_end"`)
			if all < want.all || mode == host.SyncOff && all > 0 || mode != host.SyncOff && ended == 0 {
				t.Errorf("it was brought there %d times, %d of them at its end", all, ended)
			}
		})
	}
}

// A disk that fails is no reason to lose a run's end, unless each event is to be there.
func TestSyncFails(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	h.CountSyncs(func(*host.Run) error { return errors.New("the disk is broken") })
	if end, _ := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say hi"}).Wait(context.Background()); end.State != "completed" {
		t.Error(end.State, end.Err)
	}
}

// An unknown mode is refused.
func TestSyncIsChecked(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	_, err := s.Host().Start(context.Background(), host.RunSpec{Agent: "fake", Prompt: "say hi", Sync: "sometimes"})
	if !errors.Is(err, pluginapi.CodeValidation) {
		t.Error(err)
	}
}

// What is brought to the disk by the usual way are the journal and the events.
func TestSyncForReal(t *testing.T) {
	t.Parallel()
	for _, mode := range []host.SyncMode{host.SyncEnd, host.SyncAlways} {
		s := agents.NewStage(t, "fake", "healthy")
		h := s.Host()
		r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "lines 200", Sync: mode})
		if end, _ := r.Wait(context.Background()); end.State != "completed" {
			t.Fatal(end.State, end.Err)
		}
		files, err := filepath.Glob(filepath.Join(r.Dir(), "events.*"))
		if err != nil || !slices.Equal(files, []string{filepath.Join(r.Dir(), "events.jsonl"), filepath.Join(r.Dir(), "events.sum")}) {
			t.Error(files, err)
		}
		if found, err := h.Check(context.Background(), r.ID()); err != nil || len(found.Damage) > 0 {
			t.Errorf("%+v, %v", found, err)
		}
	}
}
