package record

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/pluginapi"
)

// printed is a piece of an agent's output.
type printed struct {
	kind journal.Kind
	text string
}

// tailOf is what Tail writes, by the simplest way: all lines in the order of their ends,
// then those that have none in the order of their beginnings.
func tailOf(pieces []printed, n int) string {
	var lines []string
	begun, since := map[journal.Kind]string{}, map[journal.Kind]int{}
	for i, p := range pieces {
		for line := range strings.Lines(p.text) {
			if begun[p.kind] == "" {
				since[p.kind] = i
			}
			begun[p.kind] += line
			if strings.HasSuffix(line, "\n") {
				lines = append(lines, begun[p.kind])
				begun[p.kind] = ""
			}
		}
	}
	first, second := journal.KindStdout, journal.KindStderr
	if since[second] < since[first] {
		first, second = second, first
	}
	for _, kind := range []journal.Kind{first, second} {
		if begun[kind] != "" {
			lines = append(lines, begun[kind])
		}
	}
	var b strings.Builder
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		if b.WriteString(line); i < len(lines)-1 && !strings.HasSuffix(line, "\n") {
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestTailOfAnything(t *testing.T) {
	t.Parallel()
	told := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		dir := &store.Run{Dir: t.TempDir(), ID: "x"}
		w, err := journal.OpenWriter(dir.Path("journal"), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		var pieces []printed
		for range r.IntN(40) {
			p := printed{journal.KindStdout, ""}
			if r.IntN(3) == 0 {
				p.kind = journal.KindStderr
			}
			for range r.IntN(6) {
				p.text += []string{"a", "bc", "\n", "d\n", "\n\n"}[r.IntN(5)]
				if r.IntN(12) == 0 { // a record that is not read whole
					p.text += strings.Repeat("long ", 1000+r.IntN(8000))
				}
			}
			if r.IntN(5) == 0 {
				p.kind = journal.KindNote
			}
			if err := w.Append(p.kind, []byte(p.text)); err != nil {
				t.Fatal(err)
			}
			if p.kind != journal.KindNote {
				pieces = append(pieces, p)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, how := range []string{"", "packed"} {
			if how == "packed" {
				packSmall(t, dir.Path("journal"))
			}
			for n := range 12 {
				var got bytes.Buffer
				if err := Tail(dir, n, &got); err != nil {
					t.Fatal(err)
				}
				want := tailOf(pieces, n)
				if got.String() != want {
					t.Fatalf("seed %d, %d lines of %q %s: %q, want %q", seed, n, pieces, how, &got, want)
				}
				told += checkNearEnd(t, dir, n, want)
			}
		}
	}
	if told < 1000 {
		t.Errorf("few records told enough %d times", told)
	}
}

// checkNearEnd looks at fewer records than Tail does. Where they tell enough, that is right. It
// returns how often they did.
func checkNearEnd(t *testing.T, dir *store.Run, n int, want string) (told int) {
	t.Helper()
	src, err := Open(dir.Path("journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	reader, err := journal.NewReader(src)
	if err != nil {
		t.Fatal(err)
	}
	beginning := reader.Offset()
	for _, records := range []int{1, 2, 5, 10} {
		if n == 0 {
			break // Tail does not ask
		}
		start, ok := nearEnd(src, src.before(beginning, n), n, records)
		if !ok {
			continue
		}
		told++
		reader.Goto(start)
		last, _ := lastLines(reader, src, n)
		var got strings.Builder
		for i, line := range last {
			if got.Write(line); i < len(last)-1 && line[len(line)-1] != '\n' {
				got.WriteByte('\n')
			}
		}
		if got.String() != want {
			t.Fatalf("%d lines by %d records: %q, want %q", n, records, &got, want)
		}
	}
	return told
}

// packSmall packs a journal in pieces that are as small as can be.
func packSmall(t *testing.T, path string) {
	t.Helper()
	src, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var packed bytes.Buffer
	if err := journal.Pack(&packed, src, src.Bytes, 1<<10); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTailOfDamage(t *testing.T) {
	t.Parallel()
	dir := &store.Run{Dir: t.TempDir(), ID: "x"}
	w, err := journal.OpenWriter(dir.Path("journal"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"first\n", "second\n", "third\n"} {
		if err := w.Append(journal.KindStdout, []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(dir.Path("journal"))
	if err != nil {
		t.Fatal(err)
	}
	data[bytes.Index(data, []byte("second"))] = 'S'
	if err := os.WriteFile(dir.Path("journal"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	err = Tail(dir, 5, &got)
	if got.String() != "first\n" || !errors.Is(err, pluginapi.CodeRecordDamaged) {
		t.Errorf("%q, %v", &got, err)
	}
	got.Reset()
	if err := Tail(dir, 1, &got); got.String() != "third\n" || err != nil {
		t.Errorf("behind the damage: %q, %v", &got, err)
	}
	// A head that claims another length leads to what is no record.
	head := bytes.Index(data, []byte("Second")) - journal.RecordHeader
	data[head]++
	if err := os.WriteFile(dir.Path("journal"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	got.Reset()
	if err := Tail(dir, 1, &got); got.String() != "first\n" || !errors.Is(err, pluginapi.CodeRecordDamaged) {
		t.Errorf("with a damaged head: %q, %v", &got, err)
	}
}
