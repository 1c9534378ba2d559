package records

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/amux-dev/amux/host"
)

// What is shown of a patch on a terminal has colours, and no control sequence of a file.
func TestColouredPatch(t *testing.T) {
	patch := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@ f\n-old\n+new \x1b[2J\x1b]0;title\x07\u202eend\r\n same\n\\ No newline at end of file"
	want := "\x1b[1mdiff --git a/x b/x\x1b[0m\n\x1b[1m--- a/x\x1b[0m\n\x1b[1m+++ b/x\x1b[0m\n\x1b[36m@@ -1 +1 @@ f\x1b[0m\n\x1b[31m-old\x1b[0m\n\x1b[32m+new end\x1b[0m\n same\n\\ No newline at end of file"
	for _, size := range []int{1, 7, len(patch)} {
		var out bytes.Buffer
		c := &coloured{w: nopCloser{&out}, color: true, closed: func() {}}
		for rest := patch; rest != ""; {
			n := min(size, len(rest))
			if _, err := c.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("in pieces of %d: %q", size, out.String())
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("closed") }

// Whoever leaves the pager has git stopped.
func TestColouredPatchThatNobodyReads(t *testing.T) {
	stopped := 0
	c := &coloured{w: nopCloser{broken{}}, closed: func() { stopped++ }}
	for range 3 {
		if n, err := c.Write([]byte("+a\n")); n != 3 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if stopped != 1 || c.err == nil {
		t.Errorf("stopped %d times, %v", stopped, c.err)
	}
}

// Names that would deceive are shown in quotes, one a line.
func TestStat(t *testing.T) {
	var out strings.Builder
	err := printStat(&out, []host.ChangedFile{
		{Path: "a", Added: 300, Deleted: 100}, {Path: "ü/new\nname", Added: 1}, {Path: "b", OldPath: "\x1b[1mold"},
		{Path: "x.png", Binary: true}, {Path: "lib", OldMode: "160000", NewMode: "160000", Added: 1, Deleted: 1},
	})
	want := ` a                  | 400 ++++++++++++++++++++++++++++++----------
 "\u00fc/new\nname" | 1 +
 "\x1b[1mold" → b   | 0
 x.png              | binary
 lib                | another commit
 5 files +302 −101
`
	if err != nil || out.String() != want {
		t.Errorf("%v:\n%s", err, out.String())
	}
}
