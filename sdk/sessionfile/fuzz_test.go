package sessionfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A branch is part of the file, in its order, whatever the file holds.
func FuzzTree(f *testing.F) {
	f.Add([]byte(`{"text":"head"}` + "\n" + `{"id":"a","text":"a"}` + "\r\n\n" + `{"id":"b","parent":"a","text":"b"}`))
	f.Add([]byte(`{"id":"a","parent":"b","text":"a"}` + "\n{\n\xff\n[]\n" + `{"id":"b","parent":"gone","text":"b"}` + "\n" + `{"id":"a","parent":"b"}`))
	path := filepath.Join(f.TempDir(), "session.jsonl")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		all := strings.Fields(read(t, path, true))
		branch := strings.Fields(read(t, path, false))
		rest := all
		for _, word := range branch {
			for len(rest) > 0 && rest[0] != word {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				t.Fatalf("the branch is %q, the file %q", branch, all)
			}
			rest = rest[1:]
		}
	})
}
