package excerpt

import "testing"

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		n    int
		want string
		cut  bool
	}{{"abc", 3, "abc", false}, {"abc", 2, "ab", true}, {"aé", 2, "a", true}, {"é", 1, "", true}, {"", 0, "", false}} {
		if got, cut := Text(c.text, c.n); got != c.want || cut != c.cut {
			t.Errorf("Text(%q, %d) = %q, %v", c.text, c.n, got, cut)
		}
	}
}
