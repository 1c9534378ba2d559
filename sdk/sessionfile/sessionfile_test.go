package sessionfile

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/sdk/jsonl"
)

var tree = Tree{ID: "id", Parent: "parent", Leaf: func(l jsonl.Value) bool { return l.Text("type") != "note" }}

func write(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string, all bool) string {
	t.Helper()
	var got []string
	err := tree.Read(t.Context(), path, all, Visit{
		Line: func(l jsonl.Value) bool { got = append(got, l.Text("text")); return true },
		Long: func(offset, length int64) bool { got = append(got, fmt.Sprint(offset, "+", length)); return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(got, " ")
}

func TestBranch(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for name, test := range map[string]struct {
		lines     []string
		want, all string
	}{
		"straight": {[]string{`{"text":"head"}`, `{"id":"a","text":"a"}`, `{"id":"b","parent":"a","text":"b"}`}, "head a b", "head a b"},
		"branches": {[]string{`{"id":"a","text":"a"}`, `{"id":"b","parent":"a","text":"b"}`, `{"id":"c","parent":"a","text":"c"}`}, "a c", "a b c"},
		"ends with a note": {[]string{`{"id":"a","text":"a"}`, `{"id":"b","parent":"a","text":"b"}`, `{"id":"n","parent":"a","type":"note","text":"n"}`},
			"a b", "a b n"},
		"garbage":          {[]string{`{`, `{"id":"a","text":"a"}`, "\xff", `[]`, `{"id":"b","parent":"a","text":"b"}`}, "a b", "a b"},
		"loop":             {[]string{`{"id":"a","parent":"a","text":"a"}`, `{"id":"b","parent":"a","text":"b"}`}, "a b", "a b"},
		"lost parent":      {[]string{`{"id":"a","text":"a"}`, `{"id":"c","parent":"gone","text":"c"}`}, "a c", "a c"},
		"a line too long":  {[]string{`{"id":"a","text":"a"}`, `"` + long + `"`, `{"id":"b","parent":"a","text":"b"}`}, fmt.Sprint("a 22+", MaxLine+3, " b"), fmt.Sprint("a 22+", MaxLine+3, " b")},
		"nothing":          {nil, "", ""},
		"carriage returns": {[]string{"{\"id\":\"a\",\"text\":\"a\"}\r", ""}, "a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, test.lines...)
			if got := read(t, path, false); got != test.want {
				t.Errorf("branch: got %q, want %q", got, test.want)
			}
			if got := read(t, path, true); got != test.all {
				t.Errorf("all: got %q, want %q", got, test.all)
			}
		})
	}
}

func TestStops(t *testing.T) {
	path := write(t, `{"id":"a"}`, `{"id":"b","parent":"a"}`, `{"id":"c","parent":"b"}`)
	n := 0
	if err := tree.Read(t.Context(), path, false, Visit{Line: func(jsonl.Value) bool { n++; return n < 2 }}); err != nil || n != 2 {
		t.Errorf("visited %d, %v", n, err)
	}
}

// 200,000 lines of 1 KB are read in little memory.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 200 MB")
	}
	path := filepath.Join(t.TempDir(), "big.jsonl")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	pad, parent := strings.Repeat("x", 1000), ""
	for i := range 200_000 {
		id := fmt.Sprint("line", i)
		fmt.Fprintf(file, `{"id":%q,"parent":%q,"text":%q}`+"\n", id, parent, pad)
		parent = id
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	n, peak := 0, uint64(0)
	err = tree.Read(t.Context(), path, false, Visit{Line: func(jsonl.Value) bool {
		if n++; n%10_000 == 0 {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
		}
		return true
	}})
	if err != nil || n != 200_000 || peak > 64<<20 {
		t.Errorf("%d lines, %v, %d MB", n, err, peak>>20)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	for i, name := range []string{"old/chats/1.jsonl", "new/chats/2.jsonl", "new/other/3.jsonl", "new/chats/4.txt"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1000+i), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, f := range Find(root, "*/chats/*.jsonl") {
		got = append(got, f.Name())
	}
	if strings.Join(got, " ") != "2 1" {
		t.Errorf("got %v", got)
	}
	if files := Find(filepath.Join(root, "none"), "*"); files != nil {
		t.Errorf("got %v", files)
	}
}
