package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/journal"
)

type entry struct {
	kind    journal.Kind
	payload []byte
}

func write(t testing.TB, path string, entries []entry) {
	t.Helper()
	w, err := journal.OpenWriter(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, e := range entries {
		if err := w.Append(e.kind, e.payload); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t testing.TB, path string) ([]entry, error) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return parse(data)
}

func parse(data []byte) ([]entry, error) {
	r, err := journal.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var got []entry
	for {
		rec, err := r.Next(int64(len(data)))
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got = append(got, entry{rec.Kind, bytes.Clone(rec.Payload)})
	}
}

func samples(n int) []entry {
	rng := rand.New(rand.NewPCG(1, 2))
	var entries []entry
	for i := range n {
		size := rng.IntN(300)
		if i%50 == 49 {
			size = 200_000 // larger than one read
		}
		payload := make([]byte, size)
		for j := range payload {
			payload[j] = byte(rng.Uint32())
		}
		entries = append(entries, entry{journal.Kind(1 + i%16), payload})
	}
	return entries
}

// few are small records, of which every byte can be tried.
func few() []entry {
	return []entry{
		{journal.KindState, []byte(`{"from":"","to":"queued"}`)},
		{journal.KindStdout, []byte("hello\n")},
		{journal.KindTerminal, nil},
		{journal.KindExit, []byte(`{"spawn":1,"code":0}`)},
	}
}

func equal(a, b []entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].kind != b[i].kind || !bytes.Equal(a[i].payload, b[i].payload) {
			return false
		}
	}
	return true
}

func TestRoundTripAndReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	entries := samples(120)
	write(t, path, entries[:60])
	write(t, path, entries[60:])
	got, err := read(t, path)
	if err != nil || !equal(got, entries) {
		t.Fatalf("read back %d of %d records, err %v", len(got), len(entries), err)
	}
}

// without takes the records of a kind out.
func without(entries []entry, kind journal.Kind) []entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.kind == kind })
}

// kept is what lies beside the journal at path, which the test then removes.
func kept(t *testing.T, path string) []byte {
	t.Helper()
	files, err := filepath.Glob(path + ".bad-*")
	if err != nil || len(files) > 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if len(files) == 0 {
		return nil
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(files[0])
	return data
}

// Whatever byte a killed writer stopped at, the next writer keeps every whole
// record, and the rest in a file of its own.
func TestTornTailAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal")
	entries := few()
	write(t, path, entries)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		torn := filepath.Join(dir, "torn")
		if err := os.WriteFile(torn, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		write(t, torn, []entry{{journal.KindState, []byte("after")}})
		got, err := read(t, torn)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		rest := kept(t, torn)
		if noted := without(got, journal.KindNote); len(noted) == len(got) != (len(rest) == 0) {
			t.Fatalf("cut at %d: %d bytes were kept, %d records are notes", cut, len(rest), len(got)-len(noted))
		}
		got = without(got, journal.KindNote)
		last := got[len(got)-1]
		if got = got[:len(got)-1]; string(last.payload) != "after" || !equal(got, entries[:len(got)]) {
			t.Fatalf("cut at %d: %d records, not a prefix and the new one", cut, len(got))
		}
		if good := sizeOf(got); cut < 16 && !bytes.Equal(rest, whole[:cut]) || cut >= 16 && !bytes.Equal(rest, whole[good:cut]) {
			t.Fatalf("cut at %d: %d bytes were kept", cut, len(rest))
		}
	}
}

// sizeOf is the size of a journal with these records.
func sizeOf(entries []entry) (size int) {
	size = 16
	for _, e := range entries {
		size += journal.RecordHeader + len(e.payload)
	}
	return size
}

// mutants changes one byte of a file at a time, or cuts it, and says what was done.
func mutants(whole []byte, each func(what string, at int, mutant []byte)) (n int) {
	for at := range whole {
		for _, bit := range []byte{1, 0x80, 0xff} {
			mutant := bytes.Clone(whole)
			mutant[at] ^= bit
			each(fmt.Sprintf("byte %d ^ %#x", at, bit), at, mutant)
			n++
		}
		each(fmt.Sprintf("cut at %d", at), at, bytes.Clone(whole[:at]))
		n++
	}
	return n
}

// Every byte counts: no mutant is read to its end as if it were whole, and the
// records before the damage are as they were.
func TestDamageIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	entries := samples(9)
	write(t, path, entries)
	whole, _ := os.ReadFile(path)
	n := mutants(whole, func(what string, at int, mutant []byte) {
		got, err := parse(mutant)
		if !equal(got, entries[:len(got)]) || len(mutant) == len(whole) && err == nil {
			t.Fatalf("%s: %d records, %v", what, len(got), err)
		}
		if err == nil && sizeOf(got) != at {
			t.Fatalf("%s: %d records and no error, but it ends within a record", what, len(got))
		}
		if damage, ok := errors.AsType[*journal.Damage](err); ok && (damage.Offset > int64(at) || damage.What == "") {
			t.Fatalf("%s: %v", what, damage)
		}
	})
	t.Logf("%d mutants, each noticed or cut between two records", n)
}

// A new writer goes on behind the last good record, and destroys nothing of the rest.
func TestRecoveryKeepsWhatFollows(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal")
	entries := few()
	write(t, path, entries)
	whole, _ := os.ReadFile(path)
	damages := 0
	n := mutants(whole, func(what string, at int, mutant []byte) {
		if len(mutant) < len(whole) {
			return // see TestTornTailAtEveryByte
		}
		os.WriteFile(path, mutant, 0o600)
		if w, err := journal.OpenWriter(path, time.Now); errors.Is(err, journal.ErrFormat) && at >= 8 && at < 12 {
			return // a later version, for all we know: nothing is touched
		} else if err != nil {
			t.Fatalf("%s: %v", what, err)
		} else {
			w.Close()
		}
		got, err := read(t, path)
		if err != nil || len(got) == 0 {
			t.Fatalf("%s: %d records, %v", what, len(got), err)
		}
		last, rest := got[len(got)-1], kept(t, path)
		got = got[:len(got)-1]
		good := sizeOf(got)
		if at < 16 {
			good = 0
		}
		if !equal(got, entries[:len(got)]) || !bytes.Equal(rest, mutant[good:]) {
			t.Fatalf("%s: %d records and %d bytes kept", what, len(got), len(rest))
		}
		var damage journal.Damage
		switch last.kind {
		case journal.KindDamage:
			damages++
			if err := json.Unmarshal(last.payload, &damage); err != nil || damage.Offset != int64(good) ||
				damage.Size != int64(len(rest)) || damage.Kept == "" || damage.What == "" {
				t.Fatalf("%s: %s", what, last.payload)
			}
		case journal.KindNote:
			// The length of the last record has become longer: as if it were torn.
			if len(got) != len(entries)-1 {
				t.Fatalf("%s: taken for a torn tail, with %d records before it", what, len(got))
			}
		default:
			t.Fatalf("%s: nothing says what was lost", what)
		}
	})
	t.Logf("%d mutants, %d of them in the middle", n, damages)
}

// A journal of a later amux is left alone.
func TestLaterVersionIsNotTouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	write(t, path, samples(3))
	data, _ := os.ReadFile(path)
	data[8] = journal.Version + 1
	os.WriteFile(path, data, 0o600)
	if _, err := journal.OpenWriter(path, time.Now); !errors.Is(err, journal.ErrFormat) {
		t.Fatal(err)
	}
	if now, _ := os.ReadFile(path); !bytes.Equal(now, data) || kept(t, path) != nil {
		t.Fatal("it was changed")
	}
}

func TestTimeNeverGoesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	clock := time.Unix(2000, 0)
	w, err := journal.OpenWriter(path, func() time.Time { clock = clock.Add(-time.Second); return clock })
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.Append(journal.KindNote, nil); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	data, _ := os.ReadFile(path)
	r, _ := journal.NewReader(bytes.NewReader(data))
	var last time.Time
	for {
		rec, err := r.Next(int64(len(data)))
		if err == io.EOF {
			return
		}
		if rec.Time.Before(last) {
			t.Fatalf("%v after %v", rec.Time, last)
		}
		last = rec.Time
	}
}

func FuzzReader(f *testing.F) {
	path := filepath.Join(f.TempDir(), "journal")
	write(f, path, samples(4))
	data, _ := os.ReadFile(path)
	f.Add(data)
	f.Add([]byte("AMUXJRNL"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := journal.NewReader(bytes.NewReader(data))
		if err != nil {
			return
		}
		total := r.Offset()
		var spans []journal.Span
		_ = journal.Walk(bytes.NewReader(data), total, int64(len(data)), func(s journal.Span, part []byte) bool {
			if s.Payload()+s.Size > int64(len(data)) || !bytes.HasPrefix(data[s.Payload():][:s.Size], part) {
				t.Fatalf("%+v, %d bytes of its payload, of %d bytes", s, len(part), len(data))
			}
			spans = append(spans, s)
			return true
		})
		for n := 0; ; n++ {
			rec, err := r.Next(int64(len(data)))
			if err != nil {
				break
			}
			total += int64(journal.RecordHeader + len(rec.Payload))
			if want := (journal.Span{Kind: rec.Kind, Offset: rec.Offset, Size: int64(len(rec.Payload))}); n >= len(spans) || spans[n] != want {
				t.Fatalf("record %d is %+v, and not in %+v", n, want, spans)
			}
		}
		if total != r.Offset() || total > int64(len(data)) {
			t.Fatalf("read %d of %d bytes, offset %d", total, len(data), r.Offset())
		}
	})
}
