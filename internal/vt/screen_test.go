package vt

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"lines", "one\r\n\r\n  three  \r\n", "one\n\n  three\n"},
		{"overwritten", "10%\r20%\r\x1b[Kdone", "done\n"},
		{"placed", "\x1b[3;5Hhere\x1b[1;1Htop", "top\n\n    here\n"},
		{"wrapped", strings.Repeat("x", 25), strings.Repeat("x", 20) + "\nxxxxx\n"},
		{"not wrapped", "\x1b[?7l" + strings.Repeat("x", 25) + "y", strings.Repeat("x", 19) + "y\n"},
		{"scrolled", "1\r\n2\r\n3\r\n4\r\n5\r\n6", "2\n3\n4\n5\n6\n"},
		{"scrolled back", "1\r\n2\r\n3\x1b[H\x1bM\x1bMnew", "new\n\n1\n2\n3\n"},
		{"a flood", strings.Repeat("line\r\n", 1000) + "x", "line\nline\nline\nline\nx\n"},
		{"wide characters", "\u4e16\u754c e\u0301 x", "\u4e16\u754c e\u0301 x\n"},
		{"a wide character does not fit", strings.Repeat("x", 19) + "\u4e16", strings.Repeat("x", 19) + "\n\u4e16\n"},
		{"half of a wide character", "\u4e16\u754c\x1b[2Gx\x1b[3Gy", " xy\n"},
		{"a mark on the last column", strings.Repeat("x", 19) + "e\u0301", strings.Repeat("x", 19) + "e\u0301\n"},
		{"the alternate screen", "before\x1b[?1049h\x1b[Hwithin", "within\n"},
		{"after the alternate screen", "before\x1b[?1049h\x1b[Hwithin\x1b[?1049l after", "before after\n"},
		{"questions", "a\x1b[6n\x1b[c\x1b]11;?\x07\x1bP+q544e\x1b\\b", "ab\n"},
		{"titles and links", "\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "textlink\n"},
		{"erase to the end", "1234\r\n5678\r\n9\x1b[2;3H\x1b[J", "1234\n56\n"},
		{"erase to the start", "1234\r\n5678\r\n9\x1b[2;2H\x1b[1J", "\n  78\n9\n"},
		{"erase all", "1234\r\n5\x1b[2Jx", "\n x\n"},
		{"erase in a line", "123456\x1b[3G\x1b[1K\x1b[5G\x1b[X", "   4 6\n"},
		{"erase half of a wide character", "\u4e16\u754cx\x1b[2G\x1b[1X\x1b[3G", "  \u754cx\n"},
		{"insert and delete characters", "12345\x1b[2G\x1b[2@ab\x1b[5G\x1b[2P", "1ab25\n"},
		{"insert mode", "12345\x1b[2G\x1b[4hab\x1b[4lc", "1abc345\n"},
		{"insert and delete lines", "1\r\n2\r\n3\r\n4\x1b[2;1H\x1b[2Lx\x1b[1;1H\x1b[M", "x\n\n2\n3\n"},
		{"scroll within margins", "1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[4;1H\nnew", "1\n3\n4\nnew\n5\n"},
		{"scroll up and down", "1\r\n2\r\n3\x1b[S\x1b[2T", "\n\n2\n3\n"},
		{"lines outside of the margins stay", "1\r\n2\r\n3\x1b[2;3r\x1b[1;1H\x1b[L\x1b[99S", "1\n"},
		{"more than there is", "1\x1b[99L\x1b[99M\x1b[99P\x1b[99@\x1b[99X\x1b[99S\x1b[99T2", "2\n"},
		{"line characters", "\x1b(0lqk\x1b(Blqk\x0e\x1b)0x\x0fx", "┌─┐lqk│x\n"},
		{"repeat", "a\u4e16\x1b[2b", "a\u4e16\u4e16\u4e16\n"},
		{"repeat what is before it", "\x1b[5bx", "x\n"},
		{"the test pattern", "\x1b#8", strings.Repeat(strings.Repeat("E", 20)+"\n", 5)},
		{"reset", "text\x1b[?1049hmore\x1bcx", "x\n"},
		{"torn characters", "a\xe4b\xffc", "a\ufffdb\ufffdc\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			whole, split := NewScreen(20, 5), NewScreen(20, 5)
			whole.Write([]byte(tc.in))
			for i := range len(tc.in) {
				split.Write([]byte(tc.in[i : i+1]))
			}
			if diff := cmp.Diff(tc.want, whole.Text()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.want, split.Text()); diff != "" {
				t.Errorf("byte by byte: %s", diff)
			}
		})
	}
}

func TestScreenResize(t *testing.T) {
	t.Parallel()
	s := NewScreen(20, 5)
	s.Write([]byte("\x1b[5;1Hlast"))
	s.Resize(10, 8)
	s.Write([]byte("\x1b[8;6Hlast"))
	if got := s.Text(); got != "\n\n\n\nlast\n\n\n     last\n" {
		t.Errorf("%q", got)
	}
	s.Resize(3, 8)
	s.Write([]byte("\x1b[5;3H\u4e16"))
	if got := s.Text(); got != "\n\n\n\nlas\n\u4e16\n" {
		t.Errorf("narrow: %q", got)
	}
}

// A terminal that becomes lower keeps what is around the cursor.
func TestLower(t *testing.T) {
	t.Parallel()
	s := NewScreen(20, 5)
	s.Write([]byte("1\r\n2\r\n3\r\n4\r\n5> "))
	s.Resize(20, 3)
	s.Write([]byte("x"))
	if got := s.Text(); got != "3\n4\n5> x\n" {
		t.Errorf("%q", got)
	}
	small := NewScreen(20, 2)
	small.Write(s.AppendPicture(nil, 2))
	small.Write([]byte("y"))
	if got := small.Text(); got != "4\n5> xy\n" {
		t.Errorf("%q", got)
	}
	s.Write([]byte("\x1b[?1049hwithin"))
	s.Resize(20, 2)
	s.Write([]byte("\x1b[?1049lz"))
	if got := s.Text(); got != "4\n5> xz\n" {
		t.Errorf("behind the alternate screen: %q", got)
	}
}

// Painted on another terminal it looks the same, to the last colour, and what
// comes next goes to the same place and looks the same.
func TestPicture(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", "plain\r\n$ ", strings.Repeat("line\r\n", 30) + "x",
		"\x1b[?1049h\x1b[2J\x1b[1;31mred\x1b[0m \x1b[4;10H\u4e16\u754c\x1b[2;3H",
		"\x1b[2;3;4;5;7;8;9mall\x1b[22;23;24mfew\x1b[25;27;28;29mnone",
		"\x1b[38;5;200ma\x1b[48;2;1;2;3mb\x1b[38:2::9:8:7mc\x1b[48:5:17md\x1b[39;49me\x1b[97;104mf\x1b[58;5;3;31mg\x1b[4:3mh\x1b[4:0mi",
		"\x1b[44m\x1b[2J\x1b[3;3Hon blue\x1b[K", "\x1b[2;4r\x1b[?25l\x1b[?1h\x1b=\x1b[3;2Hx",
	} {
		first, second := NewScreen(20, 5), NewScreen(20, 5)
		first.Write([]byte(in))
		second.Write(first.AppendPicture(nil, 5))
		for _, s := range []*Screen{first, second} {
			s.Write([]byte("here"))
		}
		for y, line := range first.grid.lines {
			if !slices.Equal(line, second.grid.lines[y]) {
				t.Errorf("%q: line %d: %+v, want %+v", in, y, second.grid.lines[y], line)
			}
		}
		if got, want := string(second.AppendModes(nil)), string(first.AppendModes(nil)); got != want || first.Alternate() != second.Alternate() {
			t.Errorf("%q: modes %q, want %q", in, got, want)
		}
	}
}

// Whatever a program prints, drawing it ends, and not in a panic; what is drawn
// fits, and the cursor is where the shim believes it.
func FuzzDraw(f *testing.F) {
	for _, seed := range []string{
		"plain\r\n", "\x1b[?1049h\x1b[1;31mred\x1b[0m\u4e16", "\x1b[6n\x1b[c\x1b[5n\x1b]4;1;?\a\x1b[?996n", "\x1b[99999;99999H\x1b[9999L\x1b[9999P\x1b[9999@x",
		"\x1b[3;2r\x1b[5;5r\x1b[9999S\x1b[9999T\x1bM\x1bD\x1b[!p\x1bc", "\x1b[38;2;1;2m\x1b[38:5m\x1b[4:9m\x1b[;;;m", "\x1bP1$qm\x1b\\\x1b_G\x1b\\", "\x1b[30000b",
		"\u4e16\x1b[?7l\u4e16\x1b[4h\u4e16\x1b[2G\x1b[P\x1b[@\x1b[1K\u0301",
	} {
		f.Add([]byte(seed), uint8(20), uint8(5))
	}
	f.Fuzz(func(t *testing.T, data []byte, cols, rows uint8) {
		s, plain := NewScreen(20, 5), New(20, 5)
		half := data[:len(data)/2]
		for _, term := range []*Terminal{&s.Terminal, plain} {
			term.Answer(half)
			term.Resize(int(cols)+1, int(rows)+1)
			term.Answer(data[len(data)/2:])
		}
		if s.x != plain.x || s.y != plain.y {
			t.Errorf("the cursor is at %d, %d; without a screen at %d, %d", s.x, s.y, plain.x, plain.y)
		}
		if len(s.grid.lines) != int(rows)+1 {
			t.Errorf("%d lines", len(s.grid.lines))
		}
		for _, line := range s.grid.lines {
			if len(line) != int(cols)+1 {
				t.Errorf("a line of %d", len(line))
			}
			for x, c := range line {
				if c.char == second && (x == 0 || Columns(line[x-1].char) != 2) {
					t.Errorf("half a character at %d", x)
				}
			}
		}
		again := NewScreen(int(cols)+1, int(rows)+1)
		again.Write(s.AppendPicture(nil, int(rows)+1))
		if got, want := again.Text(), s.Text(); got != want {
			t.Errorf("painted: %q, want %q", got, want)
		}
	})
}

func BenchmarkScreen(b *testing.B) {
	line := []byte(strings.Repeat("\x1b[32mok\x1b[0m  package/of/some/length  0.123s some more plain text of a line\r\n", 50))
	b.SetBytes(int64(len(line)))
	s := NewScreen(120, 40)
	for b.Loop() {
		s.Write(line)
	}
}
