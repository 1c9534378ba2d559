package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/seed-map.md has one row for each line of seeds 001, 003 and 004, each with a
// test, or with a sentence that begins with Windows or superseded; and every test
// that the page names is there.
func TestSeedMap(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "seed-map.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := namedTests(t)
	named := regexp.MustCompile("\\bTest[A-Z]\\w+|`e2e/\\w+`")
	for _, name := range named.FindAllString(string(page), -1) {
		if name = strings.Trim(name, "`"); !tests[name] {
			t.Errorf("there is no test %s", name)
		}
	}
	_, lines, _ := strings.Cut(string(page), "\n## 6. ")
	lines, _, _ = strings.Cut(lines, "\n## ")
	rows := map[string]int{}
	row := regexp.MustCompile(`(?m)^\| ([134]\.\d+) \| [^|]+ \| (.+) \|$`)
	for _, match := range row.FindAllStringSubmatch(lines, -1) {
		line, where := match[1], match[2]
		rows[line]++
		sentence := strings.HasPrefix(where, "Windows: ") || strings.HasPrefix(where, "superseded: ")
		if !sentence && !named.MatchString(where) {
			t.Errorf("line %s has no test", line)
		}
	}
	want := 0
	for seed, lines := range map[int]int{1: 32, 3: 33, 4: 30} {
		for line := range lines {
			want++
			if n := rows[fmt.Sprintf("%d.%d", seed, line+1)]; n != 1 {
				t.Errorf("line %d.%d has %d rows", seed, line+1, n)
			}
		}
	}
	if len(rows) != want {
		t.Errorf("%d lines have rows, there are %d", len(rows), want)
	}
}

// namedTests are the Go tests of this repository by name, and the scripts as e2e/name.
func namedTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == ".git" || e.Name() == ".cache" || e.Name() == "bin"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".txtar"):
			tests["e2e/"+strings.TrimSuffix(e.Name(), ".txtar")] = true
		case strings.HasSuffix(path, "_test.go"):
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, match := range declared.FindAllSubmatch(source, -1) {
				tests[string(match[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
