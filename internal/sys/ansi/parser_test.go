package ansi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorder writes down what it gets.
type recorder struct{ got []string }

func (r *recorder) Print(c rune, raw []byte) {
	r.got = append(r.got, fmt.Sprintf("print %U %x", c, raw))
}

func (r *recorder) Control(c rune) { r.got = append(r.got, fmt.Sprintf("control %02x", c)) }

func (r *recorder) Sequence(s *Sequence) {
	r.got = append(r.got, fmt.Sprintf("sequence %q %.20q %q bell=%t cut=%t", s.Kind, s.Body, s.Final, s.Bell, s.Cut))
}

func TestParser(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"characters", "a\u00e9\xff", []string{"print U+0061 61", "print U+00E9 c3a9", "print U+FFFD ff"}},
		{"CSI", "\x1b[?25h", []string{`sequence '[' "?25" 'h' bell=false cut=false`}},
		{"CSI as one character", "\u009b1m", []string{`sequence '[' "1" 'm' bell=false cut=false`}},
		{"escape", "\x1b(B", []string{`sequence '\x00' "(" 'B' bell=false cut=false`}},
		{"OSC ended by BEL", "\x1b]0;t\a", []string{`sequence ']' "0;t" '\x00' bell=true cut=false`}},
		{"OSC ended by ST", "\x1b]0;t\x1b\\", []string{`sequence ']' "0;t" '\x00' bell=false cut=false`}},
		{"DCS has lines", "\x1bPq\n\u009c", []string{`sequence 'P' "q\n" '\x00' bell=false cut=false`}},
		{"a line feed ends an OSC", "\x1b]0;t\nx", []string{"control 0a", "print U+0078 78"}},
		{"a control character inside", "\x1b[1\rm", []string{"control 0d", `sequence '[' "1" 'm' bell=false cut=false`}},
		{"CAN", "\x1b[1\x18m", []string{"control 18", "print U+006D 6d"}},
		{"more than is kept", "\x1b[" + strings.Repeat("1", 2*MaxBody) + "m",
			[]string{`sequence '[' "11111111111111111111" 'm' bell=false cut=true`}},
		{"torn at the end", "\xe4\xb8", []string{"print U+FFFD e4", "print U+FFFD b8"}},
	} {
		var p Parser
		var r recorder
		for i := range len(tc.in) {
			p.Advance(tc.in[i], &r)
		}
		p.Flush(&r)
		if diff := cmp.Diff(tc.want, r.got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
		if !p.Idle() {
			t.Errorf("%s: the parser is not idle", tc.name)
		}
	}
}

func TestAbandonedSequenceIsForgotten(t *testing.T) {
	t.Parallel()
	var p Parser
	var r recorder
	for _, c := range []byte("\x1b]0;title") {
		p.Advance(c, &r)
	}
	p.Abandon()
	p.Advance('x', &r)
	if diff := cmp.Diff([]string{"print U+0078 78"}, r.got); diff != "" {
		t.Error(diff)
	}
}
