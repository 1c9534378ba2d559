package main

import (
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	pinned := []cell{{"a", "text", "passed"}, {"a", "tool", "passed"}, {"a", "fork", "n.a."}, {"b", "text", "failed"}, {"c", "text", "not run"}}
	var out strings.Builder
	if compare(&out, pinned, pinned) || !strings.Contains(out.String(), "4 scenarios end as before, 0 differ") {
		t.Errorf("the same differs:\n%s", &out)
	}
	newest := []cell{{"a", "text", "passed"}, {"a", "tool", "failed"}, {"a", "fork", "n.a."}, {"b", "text", "passed"}, {"c", "text", "not run"}}
	out.Reset()
	if !compare(&out, pinned, newest) {
		t.Error("nothing differs")
	}
	for _, want := range []string{"a: tool: failed, was passed\n", "b: text: passed, was failed\n", "2 scenarios end as before, 2 differ"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
