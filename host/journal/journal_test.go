package journal_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amux-dev/amux/host/journal"
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

// Whatever byte a killed writer stopped at, the next writer keeps every whole
// record and drops the rest.
func TestTornTailAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal")
	entries := samples(8)
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
		write(t, torn, []entry{{journal.KindNote, []byte("after")}})
		got, err := read(t, torn)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		last := got[len(got)-1]
		if string(last.payload) != "after" || !equal(got[:len(got)-1], entries[:len(got)-1]) {
			t.Fatalf("cut at %d: %d records, not a prefix and the new one", cut, len(got))
		}
	}
}

func TestFlippedByteIsNoRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	entries := samples(5)
	write(t, path, entries)
	data, _ := os.ReadFile(path)
	data[len(data)-1] ^= 1
	os.WriteFile(path, data, 0o600)
	got, err := read(t, path)
	if !errors.Is(err, journal.ErrTorn) || !equal(got, entries[:4]) {
		t.Fatalf("got %d records, err %v", len(got), err)
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
		for {
			rec, err := r.Next(int64(len(data)))
			if err != nil {
				break
			}
			total += int64(journal.RecordHeader + len(rec.Payload))
		}
		if total != r.Offset() || total > int64(len(data)) {
			t.Fatalf("read %d of %d bytes, offset %d", total, len(data), r.Offset())
		}
	})
}
