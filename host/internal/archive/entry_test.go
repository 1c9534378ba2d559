package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/pluginapi"
)

func number(n int64) *int64 { return &n }

// indexed is the n-th run of an index.
func indexed(n int) Entry {
	tokens := pluginapi.Tokens{Input: number(int64(n)), Output: number(7), CacheRead: number(1234567)}
	ended := time.Date(2026, 1, 1, 0, 0, 0, n, time.UTC).Add(time.Duration(n) * time.Minute)
	return Entry{
		Version: 1, RunID: fmt.Sprintf("01M7X9DSQ827BHWDSG%08d", n), Name: "fix", Agent: "claude", SessionID: "01a2056e-de02-4aa2-8dbd-7682fc2c6018",
		State: "completed", Reason: "completed", Cwd: "/home/ada/app", Project: "/home/ada/app", Tags: []string{"nightly", "ci"},
		Created: ended.Add(-time.Minute), Ended: ended, Turns: 1, Tokens: tokens, Cost: &pluginapi.Money{USD: 0.0125},
		Models: []engine.ModelTokens{{Model: "opus-5", Tokens: tokens}},
	}
}

func lineOf(t testing.TB, e Entry) []byte {
	t.Helper()
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return append(line, '\n')
}

// Lines that amux writes are read without encoding/json, and say the same.
func TestEntryReader(t *testing.T) {
	t.Parallel()
	old := `{"v":1,"run_id":"01M7X9DSQ827BHWDSGN2DG0999","agent":"codex","state":"failed","code":"NETWORK_ERROR","cwd":"/w","created":"2026-11-20T20:02:53.841045Z","ended":"2026-11-20T20:03:53Z","turns":0,"tokens":{"input":null,"output":null,"thinking":null,"cache_read":null,"cache_write":null},"cost":null}`
	odd := indexed(3)
	odd.Name, odd.Tags, odd.Cwd = `a "name"`, []string{"a\\b", "é", "<&>"}, `C:\work`
	several := indexed(4)
	several.Models = append(several.Models, engine.ModelTokens{Tokens: pluginapi.Tokens{Input: number(1)}})
	for name, line := range map[string][]byte{
		"new": lineOf(t, indexed(1)), "empty": lineOf(t, Entry{}), "old": []byte(old + "\n"), "no line end": []byte(old), "escapes": lineOf(t, odd), "models": lineOf(t, several),
		"later": []byte(`{"v":2,"run_id":"01M7X9DSQ827BHWDSGN2DG0999","agent":"a","more":{"x":[1,"]"]},"turns":3}`), "spaces": []byte(`{ "v": 1, "agent": "a" }`),
	} {
		var want Entry
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		var r entryReader
		got, ok := r.read(line)
		if len(got.Tags) == 0 {
			got.Tags = nil
		}
		if diff := cmp.Diff(want, *got); !ok || diff != "" {
			t.Errorf("%s: %v, %s", name, ok, diff)
		}
		fast := entryReader{words: map[string]string{}}
		if quick := fast.fast(line); quick != (name != "escapes" && name != "later" && name != "spaces") {
			t.Errorf("%s: read without encoding/json: %v", name, quick)
		}
	}
	for _, line := range []string{"", "\n", "{", `{"v":1`, `{"v":1}x`, `{"tokens":{"input":1.5}}`, `[]`, `{"run_id":7}`, "\x00\x00"} {
		var r entryReader
		if _, ok := r.read([]byte(line)); ok {
			t.Errorf("%q is taken for an entry", line)
		}
	}
}

// Whatever texts and numbers a run has, its line says the same to both readers; and no
// line is too odd to be refused.
func FuzzEntryReader(f *testing.F) {
	f.Add([]byte(`{"v":1,"tags":["a"],"cost":{"usd":1e3},"models":[]}`), "a", "/w", int64(3), 0.5)
	f.Fuzz(func(t *testing.T, line []byte, name, cwd string, tokens int64, usd float64) {
		var r entryReader
		r.read(line)
		e := indexed(1)
		e.Name, e.Cwd, e.Tags, e.Tokens.Input, e.Cost.USD = name, cwd, []string{cwd, name}, &tokens, usd
		data, err := json.Marshal(e)
		if err != nil {
			return // a number that JSON cannot say
		}
		var want Entry
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if got, ok := r.read(data); !ok || !cmp.Equal(want, *got) {
			t.Errorf("%s: %s", data, cmp.Diff(want, *got))
		}
	})
}

// Each run counts once, runs before since do not, and a line that cannot be read is counted.
func TestReadIndex(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), store.IndexName)
	index := bytes.Join([][]byte{
		lineOf(t, indexed(1)), lineOf(t, indexed(2)), lineOf(t, indexed(2)), []byte("torn {\n"), bytes.Repeat([]byte("x"), maxLine+1), []byte("\n\n"), lineOf(t, indexed(3)), []byte(`{"v":1,"run`),
	}, nil)
	if err := os.WriteFile(path, index, 0o600); err != nil {
		t.Fatal(err)
	}
	var turns []int64
	seen := map[id]bool{}
	bad, err := readIndex(context.Background(), path, indexed(2).Ended, seen, func(e *Entry) { turns = append(turns, *e.Tokens.Input) })
	if err != nil || bad != 4 || fmt.Sprint(turns) != "[2 3]" || len(seen) != 3 {
		t.Errorf("%d bad, runs %v, %d seen, %v", bad, turns, len(seen), err)
	}
}

func BenchmarkReadIndex(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), store.IndexName)
			var index bytes.Buffer
			for i := range n {
				index.Write(lineOf(b, indexed(i)))
			}
			if err := os.WriteFile(path, index.Bytes(), 0o600); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				runs := 0
				if bad, err := readIndex(context.Background(), path, time.Time{}, map[id]bool{}, func(*Entry) { runs++ }); err != nil || bad > 0 || runs != n {
					b.Fatal(runs, bad, err)
				}
			}
		})
	}
}
