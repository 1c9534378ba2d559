package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi/code"
)

// TestExitCodes compares the table in docs/guide.md with the codes that amux exits with.
func TestExitCodes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Exit codes\n")
	if !found {
		t.Fatal("docs/guide.md has no section Exit codes")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[int]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| \S`).FindAllStringSubmatch(section, -1) {
		code, _ := strconv.Atoi(row[1])
		if documented[code] {
			t.Errorf("docs/guide.md has exit code %d twice", code)
		}
		documented[code] = true
	}
	// Those of signals; 16 is that of a budget which amux keeps, and 141 is that of a reader that has gone. 129 is that of a closed
	// terminal, where nobody reads it: the page may leave it out.
	codes := map[int]bool{0: true, 16: true, 130: true, 131: true, 141: true, 143: true}
	for _, info := range code.All {
		codes[info.Exit] = true
	}
	for code := range codes {
		if !documented[code] {
			t.Errorf("docs/guide.md lacks exit code %d", code)
		}
	}
	for code := range documented {
		if !codes[code] && code != 129 {
			t.Errorf("docs/guide.md has exit code %d, which amux never exits with", code)
		}
	}
}
