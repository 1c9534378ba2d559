package journal_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/journal"
)

// random is a journal of records of any kind and length.
func random(t testing.TB, seed uint64) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	path := filepath.Join(t.TempDir(), "journal")
	w, err := journal.OpenWriter(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for range r.IntN(60) {
		kind := []journal.Kind{journal.KindStdout, journal.KindStdout, journal.KindStderr, journal.KindNote}[r.IntN(4)]
		var text strings.Builder
		for range r.IntN(8) {
			text.WriteString([]string{"a", "\n", "word ", "line\n", strings.Repeat("long ", r.IntN(900))}[r.IntN(5)])
		}
		if err := w.Append(kind, []byte(text.String())); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func pack(t testing.TB, data []byte, piece int64) []byte {
	t.Helper()
	var packed bytes.Buffer
	if err := journal.Pack(&packed, bytes.NewReader(data), int64(len(data)), piece); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// What is packed is read as it was, from any place, and its marks are right.
func TestPacked(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		data := random(t, seed)
		packed := pack(t, data, 1<<10)
		if !journal.IsPacked(bytes.NewReader(packed)) || journal.IsPacked(bytes.NewReader(data)) {
			t.Fatalf("seed %d: which of the two is packed?", seed)
		}
		p, err := journal.OpenPacked(bytes.NewReader(packed), int64(len(packed)))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(data)+1)
		if n, err := p.ReadAt(got, 0); n != len(data) || err != io.EOF || !bytes.Equal(got[:n], data) || p.Size() != int64(n) {
			t.Fatalf("seed %d: %d of %d bytes, %v", seed, n, len(data), err)
		}
		r := rand.New(rand.NewPCG(seed, 8))
		for range 20 {
			from := r.IntN(len(data))
			part := got[:1+r.IntN(len(data)-from)]
			if _, err := p.ReadAt(part, int64(from)); err != nil || !bytes.Equal(part, data[from:][:len(part)]) {
				t.Fatalf("seed %d: %d bytes at %d: %v", seed, len(part), from, err)
			}
		}
		// All marks that may be given are those of a reader which begins at the start.
		reader, err := journal.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		at := map[int64]journal.Mark{}
		now := journal.Mark{Begun: [2]int64{-1, -1}}
		for {
			now.Offset = reader.Offset()
			at[now.Offset] = now
			rec, err := reader.Next(int64(len(data)))
			if err != nil {
				break
			}
			n := map[journal.Kind]int{journal.KindStdout: 1, journal.KindStderr: 2}[rec.Kind]
			if n == 0 || len(rec.Payload) == 0 {
				continue
			}
			last := bytes.LastIndexByte(rec.Payload, '\n')
			now.Ends += int64(bytes.Count(rec.Payload, []byte{'\n'}))
			if last == len(rec.Payload)-1 {
				now.Begun[n-1] = -1
			} else if last >= 0 || now.Begun[n-1] < 0 {
				now.Begun[n-1] = rec.Offset
			}
		}
		ends, err := p.Ends()
		if err != nil || ends != now.Ends {
			t.Fatalf("seed %d: %d ends of lines, want %d; %v", seed, ends, now.Ends, err)
		}
		for n := range ends + 1 {
			if m := p.Before(n, ends); m != nil && (*m != at[m.Offset] || ends-m.Ends < n) {
				t.Fatalf("seed %d: for %d lines %+v, want %+v", seed, n, *m, at[m.Offset])
			}
		}
	}
}

// One that is not whole is left as it is.
func TestPackDamaged(t *testing.T) {
	t.Parallel()
	data := random(t, 3)
	torn := data[:len(data)-1]
	if err := journal.Pack(io.Discard, bytes.NewReader(torn), int64(len(torn)), 1<<10); !errors.Is(err, journal.ErrTorn) {
		t.Errorf("torn: %v", err)
	}
	data[len(data)-1]++
	err := journal.Pack(io.Discard, bytes.NewReader(data), int64(len(data)), 1<<10)
	if _, ok := errors.AsType[*journal.Damage](err); !ok {
		t.Errorf("damaged: %v", err)
	}
}

// Whatever becomes of a packed journal, no other bytes are read than those that were packed.
func FuzzPacked(f *testing.F) {
	data := random(f, 5)
	whole := pack(f, data, 1<<10)
	f.Add(uint32(0), byte(0), uint32(0))
	f.Add(uint32(12), byte(8), uint32(0))
	f.Add(uint32(len(whole)-30), byte(1), uint32(0))
	f.Add(uint32(len(whole)-60), byte(1), uint32(0))
	f.Add(uint32(100), byte(255), uint32(0))
	f.Add(uint32(0), byte(0), uint32(5))
	f.Fuzz(func(t *testing.T, at uint32, flip byte, cut uint32) {
		packed := bytes.Clone(whole)
		packed[int(at)%len(packed)] ^= flip
		packed = packed[:len(packed)-int(cut)%len(packed)]
		p, err := journal.OpenPacked(bytes.NewReader(packed), int64(len(packed)))
		if err != nil {
			return
		}
		got := make([]byte, len(data))
		for from := 0; from < len(data); from += 700 {
			part := got[:min(700, len(data)-from)]
			n, err := p.ReadAt(part, int64(from))
			if _, damaged := errors.AsType[*journal.Damage](err); err != nil && !damaged {
				t.Fatalf("at %d: %v", from, err)
			}
			if !bytes.Equal(part[:n], data[from:][:n]) || n < len(part) && err == nil {
				t.Fatalf("at %d: other bytes, %v", from, err)
			}
		}
	})
}

// A packed journal that somebody has made up takes no more than its pieces, and does no harm.
func FuzzOpenPacked(f *testing.F) {
	f.Add(pack(f, random(f, 5), 1<<10))
	f.Add([]byte("AMUXPACK"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := journal.OpenPacked(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		_, _ = p.Ends()
		_ = p.Before(1, 1)
		_, _ = io.Copy(io.Discard, io.NewSectionReader(p, 0, min(p.Size(), 1<<20)))
	})
}
