package app

import (
	"bytes"
	"slices"
	"testing"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/pluginapi"
)

// Errors are text or JSON as the environment wants, in one line whatever they hold, and
// agents do not inherit the wish.
func TestErrorsForPrograms(t *testing.T) {
	t.Parallel()
	e := Usagef("a \"b\"\x1b[31m\n<c>").WithHint("see: amux logs RUN")
	for _, test := range []struct{ value, want string }{
		{"json", `{"type":"error","code":"VALIDATION_ERROR","message":"a \"b\"\u001b[31m\n<c>","hint":"see: amux logs ABCDEF"}` + "\n" +
			`{"type":"error","code":"INTERNAL","message":"x","hint":"report it","input_line":7}` + "\n"},
		{"text", "amux: error: a \"b\"\n      <c>\namux: hint: see: amux logs ABCDEF\namux: error: stdin line 7: x\n"},
	} {
		var out bytes.Buffer
		p := &Process{IO: &iostreams.IO{Err: &out}, Env: []string{"A=b", "AMUX_ERRORS=" + test.value}}
		a := New(p)
		a.Print.Error(e, "01M888HCKMYGJ6WQWXV9ABCDEF", "")
		a.Print.LineError(7, pluginapi.Errorf(pluginapi.CodeInternal, "x"))
		if out.String() != test.want {
			t.Errorf("AMUX_ERRORS=%s:\n%swant\n%s", test.value, &out, test.want)
		}
		if !slices.Equal(p.Env, []string{"A=b"}) {
			t.Errorf("an agent would get %q", p.Env)
		}
	}
}

// An item breaks at words where somebody reads it, and nowhere where a program does.
func TestItem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		tty  bool
		want string
	}{
		{true, "✓ one two three four\n  日本 five sixsix\n  seven\n"},
		{false, "✓ one two three four 日本 five sixsix seven\n"},
	} {
		var out bytes.Buffer
		p := &Process{IO: &iostreams.IO{Out: &out, OutTTY: test.tty, Width: 22}}
		New(p).Print.Item("✓ ", "one two three four 日本 five sixsix seven")
		if out.String() != test.want {
			t.Errorf("at a terminal %v:\n%swant\n%s", test.tty, &out, test.want)
		}
	}
}
