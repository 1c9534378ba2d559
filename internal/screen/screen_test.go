package screen

import (
	"fmt"
	"strings"
	"testing"
)

func text(t *testing.T, s *Screen) string {
	t.Helper()
	got, err := s.Text()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"lines", "one\r\n\r\n  three  \r\n", "one\n\n  three\n"},
		{"overwritten", "10%\r20%\r\x1b[Kdone", "done\n"},
		{"placed", "\x1b[3;5Hhere\x1b[1;1Htop", "top\n\n    here\n"},
		{"wrapped", strings.Repeat("x", 25), strings.Repeat("x", 20) + "\nxxxxx\n"},
		{"scrolled", "1\r\n2\r\n3\r\n4\r\n5\r\n6", "2\n3\n4\n5\n6\n"},
		{"wide characters", "\u4e16\u754c e\u0301 x", "\u4e16\u754c e\u0301 x\n"},
		{"the alternate screen", "before\x1b[?1049h\x1b[Hwithin", "within\n"},
		{"after the alternate screen", "before\x1b[?1049h\x1b[Hwithin\x1b[?1049l after", "before after\n"},
		{"questions", "a\x1b[6n\x1b[c\x1b]11;?\x07\x1bP+q544e\x1b\\b", "ab\n"},
		{"titles", "\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "textlink\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(20, 5)
			for i := range len(tc.in) {
				s.Write([]byte(tc.in[i : i+1]))
			}
			if got := text(t, s); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	s := New(20, 5)
	s.Write([]byte("\x1b[5;1Hlast"))
	s.Resize(10, 8)
	s.Write([]byte("\x1b[8;6Hlast"))
	if got := text(t, s); got != "\n\n\n\nlast\n\n\n     last\n" {
		t.Errorf("%q", got)
	}
}

// A terminal that becomes lower keeps what is around the cursor.
func TestLower(t *testing.T) {
	t.Parallel()
	s := New(20, 5)
	s.Write([]byte("1\r\n2\r\n3\r\n4\r\n5> "))
	s.Resize(20, 3)
	s.Write([]byte("x"))
	if got := text(t, s); got != "3\n4\n5> x\n" {
		t.Errorf("%q", got)
	}
	paint, err := s.Paint(2)
	if err != nil {
		t.Fatal(err)
	}
	small := New(20, 2)
	small.Write(paint)
	small.Write([]byte("y"))
	if got := text(t, small); got != "4\n5> xy\n" {
		t.Errorf("%q", got)
	}
}

// Painted on another terminal it looks the same, and what comes next goes to the
// same place.
func TestPaint(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"plain\r\n$ ", "\x1b[?1049h\x1b[2J\x1b[1;31mred\x1b[0m \x1b[4;10H\u4e16\u754c\x1b[2;3H", strings.Repeat("line\r\n", 30) + "x",
	} {
		first, second := New(20, 5), New(20, 5)
		first.Write([]byte("old rubbish"))
		first.Write([]byte("\x1bc" + in))
		paint, err := first.Paint(5)
		if err != nil {
			t.Fatal(err)
		}
		second.Write(paint)
		for _, s := range []*Screen{first, second} {
			s.Write([]byte("here"))
		}
		if got, want := text(t, second), text(t, first); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if first.now.Alternate() != second.now.Alternate() {
			t.Error("on different screens")
		}
	}
}

// Of a long output only the end is drawn, and it is right.
func TestLongOutput(t *testing.T) {
	t.Parallel()
	s := New(80, 10)
	s.Write([]byte("\x1b[?1049h"))
	for i := range 300_000 {
		s.Write(fmt.Appendf(nil, "\x1b[32mline %d\x1b[m\r\n", i))
	}
	if s.size > 2*tail {
		t.Errorf("%d bytes are kept", s.size)
	}
	if got := text(t, s); !strings.HasPrefix(got, "line 299991\n") || !strings.HasSuffix(got, "\nline 299999\n") {
		t.Errorf("%q", got)
	}
	s.Write([]byte("\x1b[?1049l"))
	if s.now.Alternate() {
		t.Error("still on the alternate screen")
	}
}

// Whatever a program prints, drawing it ends, and not in a panic.
func FuzzDraw(f *testing.F) {
	for _, seed := range []string{
		"plain\r\n", "\x1b[?1049h\x1b[1;31mred\x1b[0m\u4e16", "\x1b[6n\x1b[c\x1b[5n\x1b]4;1;?\a\x1b[?996n", "\x1b[99999;99999H\x1b[9999L\x1b[9999P\x1b[9999@x",
		"\x1b[3;2r\x1b[5;5r\x1b[9999S\x1b[9999T\x1bM\x1bD\x1b[!p\x1bc", "\x1b[38;2;1;2m\x1b[38:5m\x1b[4:9m\x1b[;;;m", "\x1bP1$qm\x1b\\\x1b_G\x1b\\", "\x1b[30000b",
	} {
		f.Add([]byte(seed), uint8(20), uint8(5))
	}
	f.Fuzz(func(t *testing.T, data []byte, cols, rows uint8) {
		s := New(20, 5)
		s.Write(data[:len(data)/2])
		s.Resize(int(cols)+1, int(rows)+1)
		s.Write(data[len(data)/2:])
		_, _ = s.Text() // an error says that the emulator has panicked, which is its own matter
		_, _ = s.Paint(3)
	})
}
