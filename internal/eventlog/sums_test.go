package eventlog

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

var stamp = at // where at is a place

// record writes a log of a run that has ended: n deltas of size bytes, with the end
// of a turn behind each ten.
func record(t testing.TB, path string, n, size int) {
	t.Helper()
	l := open(t, path)
	defer l.Close()
	add := func(kind, object string) {
		t.Helper()
		if err := l.Add(kind, at, []byte(object)); err != nil {
			t.Fatal(err)
		}
		if err := l.Commit(nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		add("text_delta", fmt.Sprintf(`{"delta":"%d%s"}`, i, strings.Repeat("x", size)))
		if i%10 == 9 {
			add("turn_end", `{}`)
		}
	}
	add("run_end", `{"state":"completed"}`)
}

func load(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func save(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func check(t testing.TB, path string) Checked {
	t.Helper()
	c, err := Check(path, "01RUN")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mutants changes one byte of a file at a time, or cuts it, and says what was done.
func mutants(whole []byte, step int, each func(what string, at int, mutant []byte)) (n int) {
	for at := 0; at < len(whole); at += step {
		mutant := bytes.Clone(whole)
		mutant[at] ^= byte(1 << (at % 8))
		each(fmt.Sprintf("byte %d of %d flipped", at, len(whole)), at, mutant)
		each(fmt.Sprintf("cut at %d of %d", at, len(whole)), at, bytes.Clone(whole[:at]))
		n += 2
	}
	return n
}

// Each changed byte of the log and each cut is noticed, at its place; of the sums
// as well, but for a cut between two entries: then the log itself is as it was.
func TestDamageIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	record(t, path, 11, 0)
	if c := check(t, path); c.Damage != nil || c.Summed != c.Size || c.Events != 13 {
		t.Fatalf("%+v", c)
	}
	whole, sums := load(t, path), load(t, SumsPath(path))
	n := mutants(whole, 1, func(what string, at int, mutant []byte) {
		save(t, path, mutant)
		c := check(t, path)
		if len(c.Damage) == 0 {
			t.Fatalf("%s: not noticed", what)
		}
		if d := c.Damage[0]; d.Sums || d.Offset > int64(at) || d.Offset+d.Size <= int64(at) || d.What == "" {
			t.Fatalf("%s: %v, %d bytes", what, d, d.Size)
		}
	})
	save(t, path, whole)
	harmless := 0
	n += mutants(sums, 1, func(what string, at int, mutant []byte) {
		save(t, SumsPath(path), mutant)
		c := check(t, path)
		switch {
		case len(c.Damage) > 0:
			if d := c.Damage[0]; !d.Sums || d.Offset > int64(at) {
				t.Fatalf("%s: %v", what, d)
			}
		case len(mutant) < len(sums) && (at == 0 || (at-sumsHeader)%sumsEntry == 0):
			harmless++
			if c.Events != 13 || c.Summed == c.Size {
				t.Fatalf("%s: %+v", what, c)
			}
		default:
			t.Fatalf("%s: not noticed", what)
		}
	})
	t.Logf("%d mutants, %d of them cuts of whole checksums", n, harmless)
}

// Where there are no sums, as in the logs of earlier builds, what is no event is
// noticed, and nothing is said of what is well.
func TestCheckWithoutSums(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	record(t, path, 5, 10)
	os.Remove(SumsPath(path))
	if c := check(t, path); c.Damage != nil || c.Summed != 0 || c.Events != 6 {
		t.Fatalf("%+v", c)
	}
	whole := load(t, path)
	for what, mutant := range map[string][]byte{
		"a line is missing":   bytes.Join(bytes.SplitAfter(whole, []byte("\n"))[1:], nil),
		"a number is another": bytes.Replace(whole, []byte(`"seq":3`), []byte(`"seq":4`), 1),
		"cut":                 whole[:len(whole)-4],
		"no JSON":             bytes.Replace(whole, []byte(`"}`), []byte(`"]`), 1),
		"another run":         bytes.Replace(whole, []byte("01RUN"), []byte("01RUM"), 1),
	} {
		save(t, path, mutant)
		if c := check(t, path); len(c.Damage) != 1 {
			t.Errorf("%s: %+v", what, c)
		}
	}
}

// The last block can be checked alone.
func TestCheckEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	record(t, path, 25, 10)
	if d, err := CheckEnd(path); d != nil || err != nil {
		t.Fatal(d, err)
	}
	whole := load(t, path)
	last, _ := readSumsOf(t, path)
	for at := int(last.end); at < len(whole); at += 9 {
		mutant := bytes.Clone(whole)
		mutant[at] ^= 4
		save(t, path, mutant)
		if d, err := CheckEnd(path); d == nil || err != nil {
			t.Fatalf("byte %d: %v, %v", at, d, err)
		}
		save(t, path, whole[:at])
		if d, err := CheckEnd(path); d == nil || err != nil {
			t.Fatalf("cut at %d: %v, %v", at, d, err)
		}
	}
	save(t, path, whole)
	os.Remove(SumsPath(path))
	if d, err := CheckEnd(path); d != nil || err != nil {
		t.Fatal(d, err)
	}
}

// readSumsOf returns the last block but one, and the last.
func readSumsOf(t testing.TB, path string) (before, last block) {
	t.Helper()
	blocks, damage, err := readSums(SumsPath(path))
	if err != nil || damage != nil || len(blocks) < 2 {
		t.Fatal(len(blocks), damage, err)
	}
	return blocks[len(blocks)-2], blocks[len(blocks)-1]
}

// A writer that finds a log damaged goes on before the damage, and destroys nothing.
// Whoever gives it the same events again gets the same file.
func TestOpenKeepsWhatIsDamaged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "events.jsonl")
	record(t, path, 15, 4)
	whole, sums := load(t, path), load(t, SumsPath(path))
	n := mutants(whole, 31, func(what string, at int, mutant []byte) {
		save(t, path, mutant)
		save(t, SumsPath(path), sums)
		l := open(t, path)
		defer l.Close()
		left := load(t, path)
		if !bytes.HasPrefix(whole, left) || int(l.Count()) != bytes.Count(left, []byte("\n")) {
			t.Fatalf("%s: %d events, %d bytes", what, l.Count(), len(left))
		}
		if cut := l.Cut(); cut != nil {
			kept := filepath.Join(dir, cut.Kept)
			if !bytes.Equal(append(left, load(t, kept)...), mutant) || cut.Offset != int64(len(left)) {
				t.Fatalf("%s: %+v", what, cut)
			}
			os.Remove(kept)
		} else if len(mutant) == len(whole) {
			t.Fatalf("%s: not noticed", what)
		}
		for i, line := range bytes.SplitAfter(whole[len(left):], []byte("\n")) {
			if len(line) == 0 {
				break
			}
			kind, object := "text_delta", `{"delta":`+string(line[bytes.LastIndex(line, []byte(`":"`))+2:len(line)-1])
			switch {
			case bytes.Contains(line, []byte("turn_end")):
				kind, object = "turn_end", `{}`
			case bytes.Contains(line, []byte("run_end")):
				kind, object = "run_end", `{"state":"completed"}`
			}
			if err := l.Add(kind, stamp, []byte(object)); err != nil {
				t.Fatalf("%s: event %d again: %v", what, i, err)
			}
			if err := l.Commit(nil); err != nil {
				t.Fatal(err)
			}
		}
		if again := load(t, path); !bytes.Equal(again, whole) {
			t.Fatalf("%s: the log is another one\n%s\n%s", what, again, whole)
		}
		if c := check(t, path); c.Damage != nil || c.Summed != c.Size {
			t.Fatalf("%s: %+v", what, c)
		}
	})
	t.Logf("%d mutants", n)
}

// Whatever is taken back, of short events and long ones, before and after it was
// written, the sums are those of what is there.
func TestSumsOfWhatIsThere(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	path := filepath.Join(t.TempDir(), "events.jsonl")
	l := open(t, path)
	long := strings.Repeat("y", 9*pluginapi.PieceSize)
	for i := range 300 {
		text := strings.Repeat("x", rng.IntN(5000))
		if i%20 == 0 {
			text = long
		}
		kind := "text_delta"
		if rng.IntN(9) == 0 {
			kind = "turn_end"
		}
		object := `{"delta":"` + text + `"}`
		if rng.IntN(4) == 0 {
			object = object[:len(object)-1] // not JSON
		}
		if err := l.Begin(kind, at); err != nil {
			t.Fatal(err)
		}
		var err error
		for len(object) > 0 && err == nil {
			n := min(len(object), pluginapi.PieceSize)
			err = l.Piece([]byte(object[:n]))
			object = object[n:]
		}
		if err == nil {
			_ = l.End()
		}
		switch rng.IntN(5) {
		case 0:
			l.Rollback()
		case 1:
			// The disk is full when the block's end is written.
			file := l.file
			if l.file, err = os.Open(path); err != nil {
				t.Fatal(err)
			}
			failed := l.pending > 0 && l.Commit(nil) != nil
			l.file.Close()
			if l.file = file; failed && rng.IntN(2) == 0 {
				l.Rollback()
			}
		case 2:
			if err := l.Commit(nil); err != nil {
				t.Fatal(err)
			}
		case 3:
			l.Close()
			l = open(t, path)
		}
	}
	_ = l.Add("run_end", at, []byte(`{}`))
	if err := l.Commit(nil); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if c := check(t, path); c.Damage != nil || c.Summed != c.Size || c.Events != l.Count() {
		t.Fatalf("%+v of %d events: %v", c, l.Count(), c.Damage)
	}
}

// The events at which a log is to be on the disk are said once they are committed.
func TestDurable(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "events.jsonl"))
	defer l.Close()
	var told []uint64
	l.Durable = func() { told = append(told, l.Count()) }
	for _, kind := range []string{"text_delta", "turn_end", "text_delta", "approval_request", "text_delta", "run_end"} {
		if err := l.Add(kind, at, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if err := l.Commit(nil); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(told) != "[2 4 6]" {
		t.Error(told)
	}
	if err := l.Sync(); err != nil {
		t.Error(err)
	}
}

func FuzzSums(f *testing.F) {
	path := filepath.Join(f.TempDir(), "events.jsonl")
	record(f, path, 12, 10)
	events, sums := load(f, path), load(f, SumsPath(path))
	f.Add(events, sums)
	f.Add(events, []byte{})
	f.Add([]byte{}, sums)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, events, sums []byte) {
		path := filepath.Join(dir, "events.jsonl")
		save(t, path, events)
		save(t, SumsPath(path), sums)
		c := check(t, path)
		if _, err := CheckEnd(path); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		l := open(t, path)
		defer l.Close()
		left := load(t, path)
		if cut := l.Cut(); cut != nil {
			kept := filepath.Join(dir, cut.Kept)
			if !bytes.Equal(append(bytes.Clone(left), load(t, kept)...), events) {
				t.Fatalf("%+v", cut)
			}
			os.Remove(kept)
		} else if !bytes.HasPrefix(events, left) || bytes.IndexByte(events[len(left):], '\n') >= 0 {
			t.Fatal("whole events were destroyed")
		}
		if len(c.Damage) == 0 && len(left) != len(events) {
			t.Fatal("it was well, and was cut")
		}
		_ = l.Add("run_end", at, []byte(`{}`))
		if err := l.Commit(nil); err != nil {
			t.Fatal(err)
		}
		if c := check(t, path); c.Damage != nil || c.Summed != c.Size {
			t.Fatalf("%+v", c)
		}
	})
}

// A log that is only read takes its index from the sums, and shows the same events from any place
// on, whatever became of the sums, and of the log behind their last entry.
func TestReadingFromAnyEvent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	record(t, path, 3000, 200)
	log, sums := load(t, path), load(t, SumsPath(path))
	lines := bytes.SplitAfter(log, []byte("\n"))
	lines = lines[:len(lines)-1]
	if len(sums) < sumsHeader+3*sumsEntry {
		t.Fatalf("the sums have %d bytes, which is too few for this test", len(sums))
	}
	cut := sumsHeader + sumsEntry*((len(sums)-sumsHeader)/sumsEntry/2)
	for name, broken := range map[string][]byte{
		"as they are": sums, "none": nil, "half of them": sums[:cut], "torn": sums[:len(sums)-5], "no entry": sums[:sumsHeader],
		"damaged": append(slices.Clone(sums[:cut+3]), append([]byte{sums[cut+3] ^ 1}, sums[cut+4:]...)...),
	} {
		save(t, SumsPath(path), broken)
		l, err := Open(path, "run", "demo", false)
		if err != nil {
			t.Fatal(err)
		}
		if l.Count() != uint64(len(lines)) {
			t.Errorf("%s: %d events, want %d", name, l.Count(), len(lines))
		}
		for seq := 1; seq <= len(lines)+1; seq += 1 + seq/7 {
			var got []byte
			for c := l.From(uint64(seq)); ; {
				data, err := c.Next(t.Context())
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, data...)
			}
			if want := bytes.Join(lines[seq-1:], nil); !bytes.Equal(got, want) {
				t.Fatalf("%s: from %d on it is %d bytes, want %d", name, seq, len(got), len(want))
			}
		}
		l.Close()
	}
	// A log that is shorter than its sums say, or has no event's end there, is read whole.
	save(t, SumsPath(path), sums)
	for _, short := range [][]byte{log[:len(log)/2], append(bytes.ReplaceAll(log, []byte("\n"), []byte(" ")), '\n')} {
		save(t, path, short)
		l, err := Open(path, "run", "demo", false)
		if err != nil {
			t.Fatal(err)
		}
		if want := uint64(bytes.Count(short, []byte("\n"))); l.Count() != want && want > 1 {
			t.Errorf("%d events, want %d", l.Count(), want)
		}
		for c := l.From(2); ; {
			if _, err := c.Next(t.Context()); err != nil {
				break
			}
		}
		l.Close()
	}
}
