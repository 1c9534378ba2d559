package eventlog

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var at = time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)

func open(t testing.TB, path string) *Log {
	t.Helper()
	l, err := Open(path, "01RUN", "claude", true)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func all(t testing.TB, l *Log, from uint64) []string {
	t.Helper()
	var got []string
	if err := l.From(from).Lines(context.Background(), func(line []byte) bool {
		got = append(got, string(line))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAddWritesFlatObjects(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "events.jsonl"))
	for _, object := range []string{`{"delta":"hi"}`, `{}`, ` { } `, `{ "a":[1,{"type":2}]}`} {
		if err := l.Add("text_delta", at, []byte(object)); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
	}
	if err := l.Commit(nil); err != nil {
		t.Fatal(err)
	}
	l.Finish()
	head := func(seq int) string {
		return fmt.Sprintf(`{"type":"text_delta","run_id":"01RUN","seq":%d,"time":"2026-11-20T12:00:00.123456Z","agent":"claude"`, seq)
	}
	want := []string{
		head(1) + `,"delta":"hi"}`, head(2) + `}`, head(3) + `} `, head(4) + `,"a":[1,{"type":2}]}`,
	}
	got := all(t, l, 1)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, line := range got {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "events.jsonl"))
	for name, object := range map[string]string{
		"not JSON":          `hello`,
		"array":             `[]`,
		"two objects":       `{}{}`,
		"unended":           `{"a":1`,
		"raw newline":       "{\n}",
		"newline in string": "{\"a\":\"x\ny\"}",
		"run of another":    `{"run_id":"01OTHER"}`,
		"type of its own":   `{"a":1,"type":"run_end"}`,
		"hidden key":        `{"\u0074ype":"run_end"}`,
		"empty":             ``,
		"trailing comma":    `{"a":1,}`,
		"bad number":        `{"a":01}`,
	} {
		if err := l.Add("text_delta", at, []byte(object)); err == nil {
			t.Errorf("%s was taken: %s", name, object)
		}
	}
	if err := l.Add("Text\n", at, []byte("{}")); err == nil {
		t.Error("a type with a newline was taken")
	}
	if err := l.Add("debug", at, []byte(`{"ok":true}`)); err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(nil); err != nil {
		t.Fatal(err)
	}
	l.Finish()
	if got := all(t, l, 1); len(got) != 1 || !strings.Contains(got[0], `"seq":1,`) {
		t.Fatalf("refused events left traces: %q", got)
	}
}

func TestPiecesOfALongEvent(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "events.jsonl"))
	text := strings.Repeat("0123456789abcdef", 600_000)
	object := []byte(`{"delta":"` + text + `"}`)
	send := func(bad bool) error {
		if err := l.Begin("text_delta", at); err != nil {
			return err
		}
		for rest := object; len(rest) > 0; {
			n := min(len(rest), 512<<10)
			if err := l.Piece(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		if bad {
			return l.Piece([]byte("}"))
		}
		return l.End()
	}
	if err := l.Add("debug", at, []byte(`{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := send(true); err == nil {
		t.Fatal("an object with a brace too many was taken")
	}
	if err := send(false); err != nil {
		t.Fatal(err)
	}
	if err := l.Add("debug", at, []byte(`{"n":3}`)); err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(nil); err != nil {
		t.Fatal(err)
	}
	l.Finish()
	got := all(t, l, 1)
	if len(got) != 3 || !strings.Contains(got[1], text) || !strings.Contains(got[2], `"seq":3`) {
		t.Fatalf("got %d lines", len(got))
	}
}

func TestReopenCutsATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	l := open(t, path)
	for i := range 3000 {
		if err := l.Add("debug", at, fmt.Appendf(nil, `{"n":%d}`, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Commit(nil); err != nil {
		t.Fatal(err)
	}
	l.Close()
	data, _ := os.ReadFile(path)
	if err := os.WriteFile(path, append(data, `{"type":"torn`...), 0o600); err != nil {
		t.Fatal(err)
	}
	l = open(t, path)
	if l.Count() != 3000 {
		t.Fatalf("count %d", l.Count())
	}
	if err := l.Add("debug", at, []byte(`{"n":3001}`)); err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(nil); err != nil {
		t.Fatal(err)
	}
	l.Finish()
	for _, from := range []uint64{0, 1, 2, 1024, 1025, 2500, 3001} {
		got := all(t, l, from)
		first := max(from, 1)
		if len(got) != int(3001-first+1) || !strings.Contains(got[0], fmt.Sprintf(`"seq":%d,`, first)) {
			t.Fatalf("from %d: %d lines, first %s", from, len(got), got[0])
		}
	}
	if got := all(t, l, 4000); len(got) != 0 {
		t.Fatalf("from past the end: %d lines", len(got))
	}
}

// A consumer that comes late or stalls gets the same bytes as a quick one.
func TestCursorsAreIndependent(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "events.jsonl"))
	const n = 5000
	results := make(chan []string, 3)
	stall := make(chan struct{})
	consume := func(wait <-chan struct{}) {
		var got []string
		_ = l.From(1).Lines(context.Background(), func(line []byte) bool {
			if wait != nil && len(got) == 10 {
				<-wait
			}
			got = append(got, string(line))
			return true
		})
		results <- got
	}
	go consume(nil)
	go consume(stall)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := 0; i < n; {
		for range min(1+rng.IntN(20), n-i) {
			i++
			if err := l.Add("debug", at, fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Commit(nil); err != nil {
			t.Fatal(err)
		}
	}
	l.Finish()
	first := <-results
	close(stall)
	second := <-results
	go consume(nil)
	third := <-results
	if len(first) != n || strings.Join(first, "\n") != strings.Join(second, "\n") || strings.Join(first, "\n") != strings.Join(third, "\n") {
		t.Fatalf("consumers saw %d, %d and %d events", len(first), len(second), len(third))
	}
}

// The checker takes what encoding/json takes, but for what it refuses on purpose.
func FuzzObject(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, `{"a":[true,false,null,-1.5e+3,"\u00e9\n"],"b":{"c":{}}}`, `{"a":-}`, `[`, `{"a":1}x`} {
		f.Add([]byte(s), uint(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, piece uint) {
		var o object
		var err error
		for rest := data; len(rest) > 0 && err == nil; {
			n := min(int(piece%7)+1, len(rest))
			err = o.write(rest[:n])
			rest = rest[n:]
		}
		if err == nil {
			err = o.end()
		}
		var fields map[string]json.RawMessage
		valid := json.Unmarshal(data, &fields) == nil && fields != nil
		if err == nil && !valid {
			t.Fatalf("took %q", data)
		}
		if err != nil && valid {
			onPurpose := strings.ContainsAny(string(data), "\n\r\t")
			for key := range fields {
				onPurpose = onPurpose || reserved[key]
			}
			// Escapes in top-level keys are refused as well.
			if !onPurpose && !strings.Contains(string(data), `\`) {
				t.Fatalf("refused %q: %v", data, err)
			}
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	l := open(b, filepath.Join(b.TempDir(), "events.jsonl"))
	object := []byte(`{"delta":"a few words of text as a model says them"}`)
	for b.Loop() {
		for range 200 {
			if err := l.Add("text_delta", at, object); err != nil {
				b.Fatal(err)
			}
		}
		if err := l.Commit(nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*200), "ns/event")
}
