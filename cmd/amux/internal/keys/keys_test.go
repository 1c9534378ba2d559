package keys

import (
	"strings"
	"testing"
)

func TestKeyBytes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		keys        string
		application bool
		want        string
	}{
		{"Enter Esc Tab Space Backspace", false, "\r\x1b\t \x7f"},
		{"escape RETURN bspace", false, "\x1b\r\x7f"},
		{"C-c C-C C-[ C-\\ C-space C-? C-@", false, "\x03\x03\x1b\x1c\x00\x7f\x00"},
		{"M-x M-Enter M-C-a", false, "\x1bx\x1b\r\x1b\x01"},
		{"Up Down Right Left Home End", false, "\x1b[A\x1b[B\x1b[C\x1b[D\x1b[H\x1b[F"},
		{"Up Home", true, "\x1bOA\x1bOH"},
		{"C-Up S-Left M-C-Right", true, "\x1b[1;5A\x1b[1;2D\x1b[1;7C"},
		{"S-Tab M-S-Tab", false, "\x1b[Z\x1b\x1b[Z"},
		{"Insert Delete PageUp PageDown C-Del", false, "\x1b[2~\x1b[3~\x1b[5~\x1b[6~\x1b[3;5~"},
		{"F1 F4 F5 F12 S-F2 C-F6", false, "\x1bOP\x1bOS\x1b[15~\x1b[24~\x1b[1;2Q\x1b[17;5~"},
		{"x ä - = C-x", false, "xä-=\x18"},
		{"=text =C-c ==", false, "textC-c="},
	} {
		got, err := Bytes(strings.Fields(test.keys), test.application)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %q, %v; want %q", test.keys, got, err, test.want)
		}
	}
	for _, name := range []string{"Entr", "ls", "C-", "C-ä", "X-a", "C-C-a", "S-a", "C-Enter", "C-S-Tab", "F13", "", "\xff", "C-1"} {
		if got, err := Bytes([]string{name}, false); err == nil {
			t.Errorf("%q gives %q", name, got)
		}
	}
}
