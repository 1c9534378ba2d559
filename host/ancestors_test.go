package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/process"
)

func TestAncestors(t *testing.T) {
	t.Parallel()
	const outer, inner = "01M888J4V76P44W4R5M5EHTNQM", "01M888J4V76P44W4R5M5EHTNQN"
	var many []string
	for i := range maxAncestors + 3 {
		many = append(many, fmt.Sprintf("01M888J4V76P44W4R5M5EHT%03d", i))
	}
	for name, c := range map[string]struct {
		value string
		want  []string
	}{
		"outside":   {"", nil},
		"inside":    {outer, []string{outer}},
		"nested":    {outer + ":" + inner, []string{outer, inner}},
		"malformed": {"../x:" + inner + ":::", []string{inner}},
		"deep":      {strings.Join(many, ":"), many[3:]},
	} {
		got := ancestors([]string{"A=b", process.RunEnv + "=" + c.value})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		info := RunInfo{Spec: RunSpec{Workspace: Workspace{StartedBy: got}}}
		if want := slices.Contains(c.want, inner); info.Below(inner) != want || info.Below("") || info.Below(inner[:25]) {
			t.Errorf("%s: Below is wrong for %q", name, got)
		}
	}
}
