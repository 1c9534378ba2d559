package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The variables of a command are set, unless the run sets them itself.
func TestLaunchEnv(t *testing.T) {
	t.Parallel()
	l := &launch{spec: RunSpec{Launch: &Launch{Adapter: "acp", Argv: []string{"a"}, Env: map[string]string{"QUIET": "1", "MODE": "a"}}}}
	l.spec.Env = map[string]string{"MODE": "b"}
	if got := l.env(); !cmp.Equal(got, map[string]string{"QUIET": "1", "MODE": "b"}) {
		t.Errorf("%v", got)
	}
	if l.spec.Launch.Env["MODE"] != "a" || len(l.spec.Env) != 1 {
		t.Error("the spec has changed")
	}
	l.spec.Launch = nil
	if got := l.env(); !cmp.Equal(got, map[string]string{"MODE": "b"}) {
		t.Errorf("%v", got)
	}
}
