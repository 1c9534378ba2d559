//go:build linux

package host_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/test/agents"
)

// packed reports whether the journal of a run is.
func packed(t *testing.T, dir string) bool {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return journal.IsPacked(file)
}

// What a run has said, its events and its checks are the same when its journal is packed. That of
// a run that goes on stays as it is.
func TestPackedRun(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: strings.Repeat("say "+strings.Repeat("word ", 40)+"\n", 600) + "err that was all\nend\nexit 0"})
	live := s.Start(h, host.RunSpec{Agent: "fake", Prompt: strings.Repeat("say "+strings.Repeat("word ", 40)+"\n", 600) + "sleep 600000"})
	r.Wait(context.Background())
	recorded := string(copied(t, r))
	said := func() string {
		t.Helper()
		var b bytes.Buffer
		if err := r.Tail(20, &b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	before := said()
	until(t, open(t, h, live.ID()), "text_delta")
	if _, err := h.Clean(t.Context(), true); err != nil || packed(t, r.Dir()) {
		t.Errorf("a look has packed it, or: %v", err)
	}
	if _, err := h.Clean(t.Context(), false); err != nil || !packed(t, r.Dir()) || packed(t, live.Dir()) {
		t.Fatalf("%v; packed %t, and the one that goes on %t", err, packed(t, r.Dir()), packed(t, live.Dir()))
	}
	if after := said(); after != before || !strings.Contains(after, "that was all") {
		t.Errorf("its last lines are %q, and were %q", after, before)
	}
	if again := string(replay(t, h, r.ID())); again != recorded {
		t.Errorf("its events: %s", agents.Difference(again, recorded))
	}
	if found, err := h.Check(t.Context(), r.ID()); err != nil || len(found.Damage) != 0 || found.Journal < 100_000 {
		t.Errorf("its check: %+v, %v", found, err)
	}
	must(t, live.Kill(t.Context()))
	live.Wait(context.Background())
}

// Journals of old runs are packed in passing, those of new ones are not; what takes longer than the
// caller has time for waits for one who has more.
func TestPackOld(t *testing.T) {
	t.Parallel()
	_, h, o := terminals(t)
	made := func(age time.Duration, lines int) string {
		t.Helper()
		dir := filepath.Join(o.ConfigDir, "runs", record(t, o.ConfigDir, "", time.Now().Add(-age), 0, true))
		w, err := journal.OpenWriter(filepath.Join(dir, "journal"), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		for range lines {
			must(t, w.Append(journal.KindStdout, bytes.Repeat([]byte("a line\n"), 1500)))
		}
		must(t, w.Close())
		return dir
	}
	due := func() { _ = os.Remove(filepath.Join(o.ConfigDir, "runs", ".sized")) }
	retain := func(within time.Duration) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		must(t, h.Retain(ctx))
	}
	small, large, old, young := made(5*time.Hour, 1), made(4*time.Hour, 1500), made(3*time.Hour, 20), made(time.Minute, 20)
	retain(2 * time.Second) // a tenth of that is too little for 15 MB
	if packed(t, small) || packed(t, large) || !packed(t, old) || packed(t, young) {
		t.Errorf("packed: small %t, large %t, old %t, young %t", packed(t, small), packed(t, large), packed(t, old), packed(t, young))
	}
	due()
	retain(time.Minute)
	if !packed(t, large) || packed(t, young) {
		t.Errorf("packed with more time: large %t, young %t", packed(t, large), packed(t, young))
	}
	// What was looked at is not looked at again.
	later := made(210*time.Minute, 20)
	due()
	retain(time.Minute)
	if packed(t, later) {
		t.Error("it has looked at all of them again")
	}
	if _, err := h.Clean(t.Context(), false); err != nil || !packed(t, later) || !packed(t, young) {
		t.Errorf("amux clean: %v; packed %t and %t", err, packed(t, later), packed(t, young))
	}
}
