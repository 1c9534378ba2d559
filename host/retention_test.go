//go:build linux

package host_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/store"
)

// record makes a run that ended at that time, and returns its id.
func record(t *testing.T, config, plugin string, at time.Time, size int64, ended bool) string {
	t.Helper()
	id := ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy()).String()
	dir := filepath.Join(config, "runs", id)
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stamp := at.UTC().Format(time.RFC3339)
	write(dir+"/run.json", fmt.Sprintf(`{"version":1,"run_id":%q,"agent":"demo","spec":{"agent":"demo","prompt":"hi"},"cwd":"/","created":%q,"plugin_hash":%q}`, id, stamp, plugin))
	write(dir+"/journal", "")
	if err := os.Truncate(dir+"/journal", size); err != nil {
		t.Fatal(err)
	}
	if ended {
		write(dir+"/events.jsonl", fmt.Sprintf(`{"type":"run_end","run_id":%q,"seq":1,"time":%q,"agent":"demo","state":"completed"}`+"\n", id, stamp))
	} else {
		write(config+"/runs/active/"+id, "")
	}
	return id
}

func TestRetention(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, test := range []struct {
		name   string
		make   func(t *testing.T, config string) (kept, gone []string)
		reason string
	}{
		{"number", func(t *testing.T, config string) (kept, gone []string) {
			for i := range 1005 {
				id := record(t, config, "", now.Add(-time.Duration(i)*time.Minute), 10, true)
				if i < 1000 {
					kept = append(kept, id)
				} else {
					gone = append(gone, id)
				}
			}
			return kept, gone
		}, "more than 1,000 runs"},
		{"time", func(t *testing.T, config string) (kept, gone []string) {
			day := 24 * time.Hour
			return []string{record(t, config, "", now.Add(-29*day), 10, true), record(t, config, "", now.Add(-90*day), 10, false)},
				[]string{record(t, config, "", now.Add(-31*day), 10, true)}
		}, "older than 30 days"},
		{"size", func(t *testing.T, config string) (kept, gone []string) {
			return []string{record(t, config, "", now, 3<<30, true), record(t, config, "", now.Add(-time.Minute), 6<<30, false)},
				[]string{record(t, config, "", now.Add(-2*time.Minute), 3<<30, true), record(t, config, "", now.Add(-3*time.Minute), 10, true)}
		}, "more than 5 GB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, h, o := terminals(t)
			kept, gone := test.make(t, o.ConfigDir)
			would, err := h.Clean(t.Context(), true)
			if err != nil || len(would) != len(gone) {
				t.Fatalf("%d would go, want %d: %v", len(would), len(gone), err)
			}
			for _, r := range would {
				if r.Kind != "run" || r.Why != test.reason || !slices.Contains(gone, filepath.Base(r.Path)) {
					t.Errorf("%+v", r)
				}
			}
			if err := h.Retain(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, id := range kept {
				if _, err := os.Stat(filepath.Join(o.ConfigDir, "runs", id)); err != nil {
					t.Error(err)
				}
			}
			for _, id := range gone {
				if _, err := os.Stat(filepath.Join(o.ConfigDir, "runs", id)); err == nil {
					t.Errorf("%s is kept", id)
				}
			}
			began := time.Now()
			if err := h.Retain(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Logf("nothing to do: %v", time.Since(began))
		})
	}
}

// Not every end of a run is followed by a look into a thousand records; when there are fifty too
// many, the oldest go, however many ask for it at once.
func TestRetainSeldom(t *testing.T) {
	t.Parallel()
	_, h, o := terminals(t)
	count := func() int {
		found, err := filepath.Glob(filepath.Join(o.ConfigDir, "runs", "*", "run.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	end := func(n int) {
		for range n {
			record(t, o.ConfigDir, "", time.Now(), 10, true)
		}
	}
	end(1)
	must(t, h.Retain(t.Context())) // ages and sizes, which are looked at seldom, too
	for _, step := range []struct{ more, left int }{{1000, 1001}, {49, 1050}, {1, 1000}, {50, 1050}, {100, 1000}} {
		end(step.more)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := h.Retain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := count(); n != step.left {
			t.Errorf("after %d more there are %d, want %d", step.more, n, step.left)
		}
	}
}

// What is kept is the user's to say, and where nothing is limited, all is kept.
func TestKeep(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		keep host.Keep
		left int
		why  string
	}{
		"two runs":      {host.Keep{Runs: 2}, 2, "more than 2 runs"},
		"three days":    {host.Keep{Time: 3 * day}, 3, "older than 3 days"},
		"one GB":        {host.Keep{Time: -1, Bytes: 1 << 30}, 1, "more than 1 GB"},
		"no limits":     {host.Keep{Runs: -1, Time: -1, Bytes: -1}, 5, ""},
		"30 days alone": {host.Keep{}, 4, "older than 30 days"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, o := terminals(t)
			o.Keep = c.keep
			h, err := host.New(o)
			must(t, err)
			t.Cleanup(func() { _ = h.Close(context.Background()) })
			for i, age := range []time.Duration{0, day, 2 * day, 4 * day, 40 * day} {
				record(t, o.ConfigDir, "", time.Now().Add(-age), int64(900-i)<<20, true)
			}
			// Both ways: by the records, and by the index that has been made of them.
			for _, indexed := range []bool{false, true} {
				if indexed {
					if _, err := h.Spending(t.Context(), time.Time{}, func(*host.Spending) {}); err != nil {
						t.Fatal(err)
					}
				}
				would, err := h.Clean(t.Context(), true)
				if err != nil || len(would) != 5-c.left {
					t.Errorf("indexed %v: %d would go, want %d: %v", indexed, len(would), 5-c.left, err)
				}
				for _, r := range would {
					if r.Why != c.why {
						t.Errorf("indexed %v: %+v", indexed, r)
					}
				}
			}
			must(t, h.Retain(t.Context()))
			runs, err := h.Runs(t.Context())
			if err != nil || len(runs) != c.left {
				t.Errorf("%d are left, want %d: %v", len(runs), c.left, err)
			}
		})
	}
}

// The index orders the runs, and a record goes by its own word alone.
func TestRetainDistrustsTheIndex(t *testing.T) {
	t.Parallel()
	_, h, o := terminals(t)
	young := record(t, o.ConfigDir, "", time.Now(), 10, true)
	old := record(t, o.ConfigDir, "", time.Now().Add(-40*24*time.Hour), 10, true)
	var lines []byte
	for id, ended := range map[string]time.Time{young: time.Now().Add(-300 * 24 * time.Hour), old: time.Now().Add(-41 * 24 * time.Hour)} {
		lines = fmt.Appendf(lines, `{"v":1,"run_id":%q,"agent":"demo","state":"completed","cwd":"/","created":%q,"ended":%[2]q,"turns":1,"tokens":{},"cost":null}`+"\n", id, ended.UTC().Format(time.RFC3339Nano))
	}
	must(t, os.WriteFile(filepath.Join(o.ConfigDir, "run-index.jsonl"), lines, 0o600))
	must(t, h.Retain(t.Context()))
	runs, err := h.Runs(t.Context())
	if err != nil || len(runs) != 1 || runs[0].ID != young {
		t.Errorf("left: %+v, %v", runs, err)
	}
}

// That the records are too large is seen from the records.
func TestRetainDistrustsSizesOfTheIndex(t *testing.T) {
	t.Parallel()
	_, h, o := terminals(t)
	var lines []byte
	for i, bytes := range []int64{1 << 62, -5, 4 << 30, 4 << 30} {
		id := record(t, o.ConfigDir, "", time.Now().Add(-time.Duration(i)*time.Hour), 10, true)
		ended := ulid.MustParse(id).Timestamp().UTC().Truncate(time.Second).Format(time.RFC3339)
		lines = fmt.Appendf(lines, `{"v":1,"run_id":%q,"agent":"demo","state":"completed","cwd":"/","created":%q,"ended":%[2]q,"turns":1,"tokens":{},"cost":null,"bytes":%d}`+"\n", id, ended, bytes)
	}
	must(t, os.WriteFile(filepath.Join(o.ConfigDir, "run-index.jsonl"), lines, 0o600))
	must(t, h.Retain(t.Context()))
	runs, err := h.Runs(t.Context())
	if err != nil || len(runs) != 4 {
		t.Errorf("%d are left of 4: %v", len(runs), err)
	}
}

// A page of the newest runs reads no other records.
func TestRunsBefore(t *testing.T) {
	t.Parallel()
	_, h, o := terminals(t)
	if host.AnyRun(h) {
		t.Error("there is a run before the first")
	}
	var ids []string
	for i := range 5 {
		ids = append(ids, record(t, o.ConfigDir, "", time.Now().Add(time.Duration(i)*time.Second), 10, true))
	}
	slices.Reverse(ids)
	must(t, os.RemoveAll(filepath.Join(o.ConfigDir, "runs", ids[4])))
	if !host.AnyRun(h) {
		t.Error("there is no run")
	}
	page := func(before string) (got []string) {
		for r, err := range host.RunsBefore(t.Context(), h, before) {
			must(t, err)
			if got = append(got, r.ID); len(got) == 2 {
				break
			}
		}
		return got
	}
	if got := page(""); !slices.Equal(got, ids[:2]) {
		t.Errorf("the first page is %v, want %v", got, ids[:2])
	}
	if got := page(ids[1]); !slices.Equal(got, ids[2:4]) {
		t.Errorf("the second page is %v, want %v", got, ids[2:4])
	}
	if got := page(ids[3]); len(got) != 0 {
		t.Errorf("behind the last: %v", got)
	}
	active := filepath.Join(o.ConfigDir, "runs", "active")
	must(t, os.MkdirAll(active, 0o700))
	must(t, os.WriteFile(filepath.Join(active, ids[1]), nil, 0o600))
	var ended []string
	for r, err := range host.EndedBefore(t.Context(), h, "") {
		must(t, err)
		ended = append(ended, r.ID)
	}
	if want := []string{ids[0], ids[2], ids[3]}; !slices.Equal(ended, want) {
		t.Errorf("ended are %v, want %v", ended, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range host.RunsBefore(ctx, h, "") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	}
}

// An id is the caller's to choose, and may be of any time: the record tells the age.
func TestChosenIDIsNoAge(t *testing.T) {
	t.Parallel()
	here, h, o := terminals(t)
	old := record(t, o.ConfigDir, "", time.Now().Add(-31*24*time.Hour), 10, true)
	r, err := here.Start(t.Context(), host.RunSpec{Agent: "demo", Prompt: "hello", RunID: "01ARYZ6S41TSV4RRFFQ69G5FAV"})
	if err != nil {
		t.Fatal(err)
	}
	r.Wait(context.Background())
	runs, err := h.Runs(t.Context())
	if err != nil || len(runs) != 2 || runs[0].ID != r.ID() {
		t.Errorf("the newest run is not the first: %+v, %v", runs, err)
	}
	if err := h.Retain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.Dir()); err != nil {
		t.Errorf("the record of a run that has just ended: %v", err)
	}
	if _, err := os.Stat(filepath.Join(o.ConfigDir, "runs", old)); err == nil {
		t.Error("a run that ended 31 days ago is kept")
	}
}

// A host that was killed before it had marked its new run leaves a folder of no run. The
// end of a later run takes it away, once nobody can be at work on it any more.
func TestFolderOfNoRun(t *testing.T) {
	t.Parallel()
	here, _, o := terminals(t)
	runs := store.New(o.ConfigDir)
	create := func(age time.Duration) *store.Run {
		r, err := runs.Create(ulid.Make().String())
		if err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(r.Dir, when, when); err != nil {
			t.Fatal(err)
		}
		return r
	}
	old, held, young := create(2*time.Hour), create(2*time.Hour), create(0)
	old.Unlock()
	young.Unlock()
	if err := here.Retain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for r, kept := range map[*store.Run]bool{old: false, held: true, young: true} {
		if _, err := os.Stat(r.Dir); (err == nil) != kept {
			t.Errorf("%s is to be kept: %v; %v", r.Dir, kept, err)
		}
	}
	held.Unlock()
}

func TestCleanTakesWhatIsLeftOverAndNothingElse(t *testing.T) {
	t.Parallel()
	here, there, o := terminals(t)
	live := start(t, here, host.RunSpec{Prompt: "[say:up][sleep:60]"})
	until(t, open(t, there, live.ID()), "text_delta")
	old := time.Now().Add(-48 * time.Hour)
	age := func(path string) {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	mkdir := func(path string) string {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		age(path)
		return path
	}
	copies := filepath.Join(o.ConfigDir, "plugins", "run")
	named, unnamed := strings.Repeat("a", 64), strings.Repeat("b", 64)
	ended := record(t, o.ConfigDir, named, time.Now(), 10, true)
	stranger, young := ulid.MustNew(ulid.Timestamp(old), ulid.DefaultEntropy()).String(), ulid.Make().String()
	gone := []string{
		mkdir(filepath.Join(o.TempDir, "agent-mux-"+ended)), // its run has ended
		mkdir(filepath.Join(o.TempDir, "agent-mux-"+stranger)),
		mkdir(filepath.Join(o.TempDir, "agent-mux-replay-123")),
		mkdir(filepath.Join(copies, unnamed)),
		filepath.Join(o.RuntimeDir, strings.ToLower(stranger)+".sock"),
		mkdir(filepath.Join(o.ConfigDir, "runs", stranger)), // its host was killed before it had begun
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: gone[4], Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	age(gone[4])
	kept := []string{
		filepath.Join(o.TempDir, "agent-mux-"+live.ID()),
		filepath.Join(o.RuntimeDir, strings.ToLower(live.ID())+".sock"),
		mkdir(filepath.Join(o.TempDir, "agent-mux-notes")),
		mkdir(filepath.Join(copies, named)),
		filepath.Join(o.ConfigDir, "runs", ended), live.Dir(),
	}
	younger := filepath.Join(o.TempDir, "agent-mux-"+young) // perhaps of another configuration folder
	if err := os.Mkdir(younger, 0o700); err != nil {
		t.Fatal(err)
	}
	kept = append(kept, younger)
	begun := filepath.Join(o.ConfigDir, "runs", young) // perhaps this moment
	if err := os.Mkdir(begun, 0o700); err != nil {
		t.Fatal(err)
	}
	kept = append(kept, begun)
	current, _ := filepath.Glob(filepath.Join(copies, "*"))
	for _, path := range current {
		age(path)
		if filepath.Base(path) != unnamed {
			kept = append(kept, path)
		}
	}
	check := func(when string, there bool) {
		for _, path := range gone {
			if _, err := os.Lstat(path); (err == nil) != there {
				t.Errorf("%s: %s: %v", when, path, err)
			}
		}
		for _, path := range kept {
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
	}
	for _, dry := range []bool{true, false} {
		removed, err := there.Clean(t.Context(), dry)
		if err != nil || len(removed) != len(gone) {
			t.Errorf("%+v, %v", removed, err)
		}
		check(fmt.Sprint("dry ", dry), dry)
	}
	if removed, err := there.Clean(t.Context(), false); err != nil || len(removed) != 0 {
		t.Errorf("again: %+v, %v", removed, err)
	}
	if err := live.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	live.Wait(context.Background())
}

func BenchmarkRetainNothing(b *testing.B) {
	_, h, o := terminals(b)
	t := &testing.T{}
	for i := range 1000 {
		record(t, o.ConfigDir, "", time.Now().Add(-time.Duration(i)*time.Minute), 10, true)
	}
	b.Run("retain", func(b *testing.B) {
		for b.Loop() {
			_ = h.Retain(b.Context())
		}
	})
	b.Run("runs", func(b *testing.B) {
		for b.Loop() {
			_, _ = h.Runs(b.Context())
		}
	})
}
