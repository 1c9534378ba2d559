package registry

import (
	"regexp"
	"strings"
	"testing"
)

var (
	nameForm   = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	deviceForm = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)
)

func FuzzIsName(f *testing.F) {
	for _, name := range []string{
		"", "a", "claude", "a-b", "a--b", "-a", "a-", "1a", "a1", "A", "aB", "a_b", "a.b", "a/b", "é", "a\x00", "a\n",
		"con", "prn", "aux", "nul", "com0", "com9", "lpt1", "com", "com10", "comx", "lpt", "con-", "con-1", "com-1",
		strings.Repeat("a", 40), strings.Repeat("a", 41), strings.Repeat("a-", 20) + "a",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		is := nameForm.MatchString(name) && len(name) <= 40 && !deviceForm.MatchString(name)
		if IsName(name) != is {
			t.Errorf("IsName(%q) is %v", name, !is)
		}
	})
}
