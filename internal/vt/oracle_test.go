package vt_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/internal/vt"
)

// differs says where our screen is not that of xterm.js, and why.
var differs = map[string]string{
	"one column":        "a wide character has no room in one column: we leave it out, xterm.js writes it over the edge",
	"mark over a blank": "whether a cell is blank is known to a Screen only, and a Terminal has to count the same columns",
}

// TestAgainstXterm compares our screens with those of xterm.js, which
// testdata/xterm/oracle.mjs recorded.
func TestAgainstXterm(t *testing.T) {
	t.Parallel()
	type screen struct {
		Lines []string `json:"lines"`
		X     int      `json:"x"`
		Y     int      `json:"y"`
	}
	var cases []struct {
		Name, In   string
		Cols, Rows int
	}
	var screens map[string]screen
	for name, into := range map[string]any{"cases.json": &cases, "screens.json": &screens} {
		data, err := os.ReadFile(filepath.Join("testdata", "xterm", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if len(cases) < 89 || len(cases) != len(screens) {
		t.Fatalf("%d cases, %d screens: run oracle.mjs", len(cases), len(screens))
	}
	for _, tc := range cases {
		want, ok := screens[tc.Name]
		if !ok {
			t.Errorf("%q has no screen: run oracle.mjs", tc.Name)
			continue
		}
		if tc.Cols == 0 {
			tc.Cols, tc.Rows = 20, 5
		}
		s := vt.NewScreen(tc.Cols, tc.Rows)
		s.Write([]byte(tc.In))
		got := screen{Lines: []string{}}
		if text := s.Text(); text != "" {
			got.Lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		}
		got.X, got.Y = s.Cursor()
		want.X = min(want.X, tc.Cols-1) // xterm.js counts a pending wrap as a column
		diff := cmp.Diff(want, got)
		if _, known := differs[tc.Name]; known != (diff != "") {
			if known {
				t.Errorf("%s: no longer differs", tc.Name)
			} else {
				t.Errorf("%s: %q (-xterm +ours)\n%s", tc.Name, tc.In, diff)
			}
		}
	}
	for name := range differs {
		if !slices.ContainsFunc(cases, func(c struct {
			Name, In   string
			Cols, Rows int
		}) bool {
			return c.Name == name
		}) {
			t.Errorf("there is no case %q", name)
		}
	}
}
