//go:build linux

package host_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// recorded makes a run of a few events and returns its folder.
func recorded(t *testing.T, s *agents.Stage, h *host.Host) (id, dir string) {
	t.Helper()
	r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say one\nsay two\nusage 1 2\nsay three"})
	if end, _ := r.Wait(context.Background()); end.State != "completed" {
		t.Fatal(end.State, end.Err)
	}
	return r.ID(), r.Dir()
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

// Whatever byte of a record is another one, and wherever a file of it ends too early:
// who reads it is told where, in which file.
func TestDamagedRecordIsNoticed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	id, dir := recorded(t, s, h)
	if found, err := h.Check(ctx, id); err != nil || len(found.Damage) > 0 || found.Journal == 0 || found.Unsummed != 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	said := string(replay(t, h, id))
	mutants, replays := 0, 0
	for _, name := range []string{"journal", "events.jsonl"} {
		path := filepath.Join(dir, name)
		whole := readFile(t, path)
		for at := range whole {
			flipped := bytes.Clone(whole)
			flipped[at] ^= 1 << (at % 8)
			for _, mutant := range [][]byte{flipped, whole[:at]} {
				if (at+len(mutant))%agents.Times(3, 1) != 0 {
					continue
				}
				must(t, os.WriteFile(path, mutant, 0o600))
				mutants++
				found, err := h.Check(ctx, id)
				if err != nil || len(found.Damage) != 1 || found.Damage[0].File != name || found.Damage[0].Offset > int64(at) || found.Damage[0].Reason == "" {
					t.Fatalf("%s, byte %d of %d, %d left: %+v, %v", name, at, len(whole), len(mutant), found.Damage, err)
				}
				if !errors.Is(found.Err(id), pluginapi.CodeRecordDamaged) {
					t.Fatal(found.Err(id))
				}
				if at%97 != 0 {
					continue
				}
				replays++
				var again bytes.Buffer
				err = h.Replay(ctx, id, &again)
				switch {
				case name == "events.jsonl" && (err != nil || again.String() != said):
					t.Fatalf("%s, byte %d: the journal is whole, but its replay says %v", name, at, err)
				case name == "journal" && (!errors.Is(err, pluginapi.CodeRecordDamaged) || !strings.HasPrefix(said, again.String())):
					t.Fatalf("%s, byte %d of %d, %d left: %v, after %d of %d bytes", name, at, len(whole), len(mutant), err, again.Len(), len(said))
				}
				r, err := h.Open(ctx, id)
				must(t, err)
				if err := r.CopyEvents(ctx, io.Discard, 1); err != nil {
					t.Fatal(err)
				}
				if end, _ := r.Wait(context.Background()); name == "journal" && end.State != "completed" ||
					end.State == "completed" && !bytes.HasSuffix(mutant, whole[len(whole)-1:]) && name != "journal" {
					t.Fatalf("%s, byte %d: it says %s, %v", name, at, end.State, end.Err)
				}
			}
		}
		must(t, os.WriteFile(path, whole, 0o600))
	}
	if found, err := h.Check(ctx, id); err != nil || len(found.Damage) > 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	t.Logf("%d mutants, %d of them replayed", mutants, replays)
}

// unended makes of a run's record that of one whose host and shim were killed before
// the end was recorded.
func unended(t *testing.T, s *agents.Stage, id, dir string) (journalText, eventsText []byte) {
	t.Helper()
	path := filepath.Join(dir, "journal")
	whole := readFile(t, path)
	r, err := journal.NewReader(bytes.NewReader(whole))
	must(t, err)
	last := int64(0)
	for {
		rec, err := r.Next(int64(len(whole)))
		if err != nil {
			break
		}
		last = rec.Offset
	}
	must(t, os.WriteFile(path, whole[:last], 0o600))
	must(t, os.WriteFile(filepath.Join(s.Config, "runs", "active", id), nil, 0o600))
	events := readFile(t, filepath.Join(dir, "events.jsonl"))
	must(t, os.WriteFile(filepath.Join(dir, "events.jsonl"), events[:len(events)*2/3], 0o600))
	return whole[:last], events
}

// Who makes the end of a run whose journal is damaged says so, and keeps what follows.
func TestRecoveryOfDamagedJournal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	id, dir := recorded(t, s, h)
	left, events := unended(t, s, id, dir)
	path := filepath.Join(dir, "journal")
	at := bytes.Index(left, []byte("say two")) // of the prompt
	broken := bytes.Clone(left)
	broken[at]++
	must(t, os.WriteFile(path, broken, 0o600))
	must(t, h.Recover(ctx))
	kept, err := filepath.Glob(path + ".bad-*")
	if err != nil || len(kept) != 1 || !bytes.HasSuffix(broken, readFile(t, kept[0])) {
		t.Fatalf("%v, %v", kept, err)
	}
	r, err := h.Open(ctx, id)
	must(t, err)
	end, _ := r.Wait(context.Background())
	if end.State != "lost" || end.End.Reason != "damaged" || !errors.Is(end.Err, pluginapi.CodeRecordDamaged) ||
		!strings.Contains(end.End.Message, "journal is damaged at offset ") {
		t.Errorf("%s, %+v", end.State, end.End)
	}
	now := readFile(t, filepath.Join(dir, "events.jsonl"))
	whole := now[:bytes.LastIndexByte(events[:len(events)*2/3], '\n')+1]
	if !bytes.HasPrefix(events, whole) || !bytes.Contains(now[len(whole):], []byte(filepath.Base(kept[0]))) {
		t.Errorf("%s", now)
	}
	if found, err := h.Check(ctx, id); err != nil || len(found.Damage) > 0 {
		t.Errorf("%+v, %v", found, err) // it is as amux wrote it, and says what is missing
	}
	must(t, h.Recover(ctx))
	if files, _ := filepath.Glob(filepath.Join(dir, "*bad*")); len(files) != 1 {
		t.Error(files)
	}
}

// Events that are damaged are made again from the journal.
func TestRecoveryOfDamagedEvents(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	id, dir := recorded(t, s, h)
	_, events := unended(t, s, id, dir)
	path := filepath.Join(dir, "events.jsonl")
	broken := readFile(t, path)
	broken[bytes.Index(broken, []byte(`"seq":2,`))+6]++
	must(t, os.WriteFile(path, broken, 0o600))
	must(t, h.Recover(ctx))
	kept, err := filepath.Glob(filepath.Join(dir, "events.bad-*"))
	if err != nil || len(kept) != 1 || !bytes.HasSuffix(broken, readFile(t, kept[0])) {
		t.Fatalf("%v, %v", kept, err)
	}
	now := readFile(t, path)
	if d := agents.Difference(agents.Comparable(t, now), agents.Comparable(t, events)); d != "" {
		t.Error(d)
	}
	if found, err := h.Check(ctx, id); err != nil || len(found.Damage) > 0 || found.Unsummed != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	r, err := h.Open(ctx, id)
	must(t, err)
	if end, _ := r.Wait(context.Background()); end.State != "completed" {
		t.Errorf("%s, %v", end.State, end.Err)
	}
}

// Without the plugin that it was started with a run is not said to be complete: the events
// that nobody can make are missing.
func TestRecoveryWithoutPlugin(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := agents.NewStage(t, "fake", "healthy")
	id, dir := recorded(t, s, s.Host())
	unended(t, s, id, dir)
	path := filepath.Join(dir, "events.jsonl")
	left := readFile(t, path)
	left = left[:bytes.LastIndexByte(left, '\n')+1]
	must(t, errors.Join(os.RemoveAll(s.Plugins), os.RemoveAll(s.Config+"/plugins")))
	h := next(t, s)
	must(t, h.Recover(ctx))
	r, err := h.Open(ctx, id)
	must(t, err)
	if end, _ := r.Wait(context.Background()); end.State != "failed" || end.End.Reason != "plugin" || end.End.Code != pluginapi.CodePluginChanged {
		t.Errorf("%s, %+v", end.State, end.End)
	}
	now := readFile(t, path)
	if !bytes.HasPrefix(now, left) || bytes.Contains(now[len(left):], []byte("text_delta")) || bytes.Count(now, []byte(`"type":"run_end"`)) != 1 {
		t.Errorf("%s\nwas\n%s", now, left)
	}
	if found, err := h.Check(ctx, id); err != nil || len(found.Damage) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// A host may die between the last event of a run and the mark that it has ended. The end
// that the log has is the end, also for the next host without the plugin.
func TestRecoveryOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	id, dir := recorded(t, s, s.Host())
	before := readFile(t, filepath.Join(dir, "events.jsonl"))
	active := filepath.Join(s.Config, "runs", "active", id)
	must(t, os.WriteFile(active, nil, 0o600))
	must(t, errors.Join(os.RemoveAll(s.Plugins), os.RemoveAll(s.Config+"/plugins")))
	must(t, next(t, s).Recover(context.Background()))
	if now := readFile(t, filepath.Join(dir, "events.jsonl")); !bytes.Equal(now, before) {
		t.Errorf("the events were\n%s\nand are\n%s", before, now)
	}
	if _, err := os.Stat(active); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still marked active: %v", err)
	}
}

// A command for one run brings that one to its end, and no other.
func TestRecoverRunIsForOne(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	var ids []string
	for range 3 {
		id, dir := recorded(t, s, h)
		unended(t, s, id, dir)
		ids = append(ids, id)
	}
	if orphan, err := h.RecoverRun(ctx, ids[1]); orphan || err != nil {
		t.Fatal(orphan, err)
	}
	for i, id := range ids {
		r, err := h.Open(ctx, id)
		must(t, err)
		if ended := r.Info().End != nil; ended != (i == 1) {
			t.Errorf("run %d: %+v", i, r.Info())
		}
		if state := r.Info().State; i != 1 && state != "lost" {
			t.Errorf("nobody has run %d, and it is said to be %s", i, state)
		}
	}
	if orphan, err := h.RecoverRun(ctx, "01ARZ3NDEKTSV4RRFFQ69G5FAV"); orphan || err != nil {
		t.Error(orphan, err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := h.Recover(gone); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, h.Recover(ctx))
	if active, _ := os.ReadDir(filepath.Join(s.Config, "runs", "active")); len(active) > 0 {
		t.Error(active)
	}
}

// What is wrong with the folder for temporary files is said of that one.
func TestTempFolderIsMissing(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	o := s.Options()
	o.TempDir = filepath.Join(t.TempDir(), "none")
	h, err := host.New(o)
	must(t, err)
	_, err = h.Start(context.Background(), host.RunSpec{Agent: "fake", Prompt: "say hi"})
	must(t, h.Close(context.Background()))
	e := pluginapi.AsError(err)
	if e == nil || e.Code != pluginapi.CodeConfig || !strings.Contains(e.Error(), "the temp folder "+o.TempDir+" ") || !strings.Contains(e.Hint, "TMPDIR") {
		t.Errorf("%v, hint %q", err, e.Hint)
	}
	if left := s.Leftovers(); len(left) > 0 {
		t.Error(left)
	}
}
