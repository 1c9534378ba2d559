package sessions

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/amux-dev/amux/host"
)

// writings are the ways in which programs write a text in JSON.
func writings(text string) [][]byte {
	html, _ := json.Marshal(text)
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text)
	return [][]byte{html, plain.Bytes(), []byte(strconv.QuoteToASCII(text)), []byte(strings.ReplaceAll(plain.String(), "/", `\/`))}
}

func FuzzSieveLosesNoText(f *testing.F) {
	f.Add("The Rate Limit\nis \"50\"", "rate limit", uint8(8))
	f.Add("300 K and ſome kelvins", "300 k and some", uint8(3))
	f.Add("é über / <b>", "ÜBER / <B>", uint8(40))
	f.Fuzz(func(t *testing.T, said, text string, size uint8) {
		if !regexp.MustCompile(`(?i)` + regexp.QuoteMeta(strings.ToValidUTF8(text, "?"))).MatchString(said) {
			return // the search finds nothing there either
		}
		s := newSieve(strings.ToValidUTF8(text, "?"))
		buf := make([]byte, max(2*len(s.piece), int(size), 1))
		for _, line := range writings(said) {
			if !s.in(bytes.NewReader(line), buf) {
				t.Fatalf("%q is said in %s, and passed over by %q", text, line, s.piece)
			}
		}
	})
}

func TestSievePassesOver(t *testing.T) {
	dir := t.TempDir()
	path := func(name, data string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		text, path string
		may        bool
	}{
		{"rate limit", path("has.jsonl", strings.Repeat("x", 300<<10)+"a RATE Limit of"), true},
		{"rate limit", path("not.jsonl", "a rate of a limit"), false},
		{"rate limit", path("pages.db", "a rate of a limit"), true},
		{"is", path("short.jsonl", "a"), true},
		{"rate limit", filepath.Join(dir, "gone.jsonl"), true},
		{"rate limit", "relative.jsonl", true},
		{"rate limit", dir, true},
	} {
		if got := newSieve(c.text).keep([]host.Session{{Path: c.path}})[0]; got != c.may {
			t.Errorf("%q in %s: %v, want %v", c.text, filepath.Base(c.path), got, c.may)
		}
	}
	if !newSieve("rate limit").in(iotest.ErrReader(errors.New("bad disk")), make([]byte, 100)) {
		t.Error("a file that cannot be read is passed over")
	}
	if newSieve("rate limit").in(iotest.OneByteReader(strings.NewReader("rate of a limit")), make([]byte, 20)) {
		t.Error("found what is not there")
	}
}
