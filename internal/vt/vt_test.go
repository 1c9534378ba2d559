package vt

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/internal/sys/ansi"
)

func strip(pieces ...string) string {
	var s Stripper
	var out []byte
	for _, piece := range pieces {
		out = s.Append(out, []byte(piece))
	}
	return string(s.Flush(out))
}

func TestStripper(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"text", "one\r\ntwo\tthree\n", "one\ntwo\tthree\n"},
		{"carriage returns", "10%\r\r20%\r\x1b[K\r\n\r\x1b[1m\n\rx\r", "10%\r20%\n\n\rx\r"},
		{"colours", "\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mtrue\x1b[m", "red true"},
		{"cursor and erasing", "a\x1b[2;1Hb\x1b[K\x1b[?25l\x1b[?2004hc", "abc"},
		{"title ended by BEL", "\x1b]0;the title\ax", "x"},
		{"title ended by ST", "\x1b]0;the title\x1b\\x", "x"},
		{"title in UTF-8 with the byte 9C", "\x1b]0;\u671c\u201c\ax", "x"},
		{"link", "\x1b]8;;https://x.y\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"DCS with lines and BEL", "\x1bPq#0;2\n\a-more\x1b\\x", "x"},
		{"APC, PM, SOS", "\x1b_a\x1b\\1\x1b^b\x1b\\2\x1bXc\x1b\\3", "123"},
		{"simple escapes", "\x1b7a\x1b8\x1b=b\x1b(0c\x1b#8d\x1bM", "abcd"},
		{"control characters", "a\x00b\ac\bd\x0be\x7ff\x0eg", "abcdefg"},
		{"control characters within a sequence", "\x1b[3\n1mx", "\nx"},
		{"C1 as characters", "\u009b31mred\u009d0;title\u009cx\u0085\u0090dcs\u009cy", "redxy"},
		{"C1 as bytes are no sequences", "a\x9b31mb\x9c\x84", "a\x9b31mb\x9c\x84"},
		{"characters with such bytes", "\u00db\u071b\u4e1b\U0001f49b", "\u00db\u071b\u4e1b\U0001f49b"},
		{"CAN and SUB", "\x1b[31\x18a\x1b]0;x\x1ab", "ab"},
		{"ESC begins another sequence", "\x1b[3\x1b[31ma\x1b]0;t\x1b[32mb", "ab"},
		{"a character ends a sequence", "\x1b[31\u00e9x", "\u00e9x"},
		{"a string without end does not hide what follows", "\x1b]0;oh\nnext\n", "\nnext\n"},
		{"long sequences", "\x1b[" + strings.Repeat("1;", 1000) + "ma\x1b]52;c;" + strings.Repeat("x", 5000) + "\ab", "ab"},
		{"torn at the end", "a\xe4\xb8", "a\xe4\xb8"},
		{"a sequence at the end", "a\x1b[3", "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, strip(tc.in)); diff != "" {
				t.Error(diff)
			}
			for i := range tc.in {
				if got := strip(tc.in[:i], tc.in[i:]); got != tc.want {
					t.Fatalf("split at %d: %q", i, got)
				}
			}
			var s Stripper
			var out []byte
			for i := range len(tc.in) {
				out = s.Append(out, []byte(tc.in[i:i+1]))
			}
			if out = s.Flush(out); string(out) != tc.want {
				t.Errorf("byte by byte: %q", out)
			}
		})
	}
}

func TestStripperIsAsNewAfterFlush(t *testing.T) {
	t.Parallel()
	var s Stripper
	s.Append(nil, []byte("\x1b]0;never ended"))
	if got := s.Flush(nil); len(got) > 0 {
		t.Errorf("%q", got)
	}
	if got := s.Append(nil, []byte("text")); string(got) != "text" {
		t.Errorf("%q", got)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"status", "\x1b[5n", "\x1b[0n"},
		{"cursor at the start", "\x1b[6n", "\x1b[1;1R"},
		{"cursor after text", "hello\r\nyou\x1b[6n", "\x1b[2;4R"},
		{"cursor, DEC", "\x1b[7;9H\x1b[?6n", "\x1b[?7;9;1R"},
		{"cursor before and after", "\x1b[6nab\x1b[6n", "\x1b[1;1R\x1b[1;3R"},
		{"wide and combining characters", "\u4e16\u754ce\u0301\x1b[6n", "\x1b[1;6R"},
		{"the last column waits to wrap", strings.Repeat("x", 20) + "\x1b[6n" + "y\x1b[6n", "\x1b[1;20R\x1b[2;2R"},
		{"a wide character does not fit", strings.Repeat("x", 19) + "\u4e16\x1b[6n", "\x1b[2;3R"},
		{"without wrapping", "\x1b[?7l" + strings.Repeat("x", 50) + "\x1b[6n", "\x1b[1;20R"},
		{"the last line", strings.Repeat("\n", 50) + "\x1b[6n", "\x1b[10;1R"},
		{"moves", "\x1b[5;5H\x1b[2A\x1b[3C\x1b[B\x1b[D\x1b[6n", "\x1b[4;7R"},
		{"moves beyond the edges", "\x1b[99;99H\x1b[6n\x1b[99A\x1b[99D\x1b[6n", "\x1b[10;20R\x1b[1;1R"},
		{"margins", "\x1b[3;5r\x1b[5;1H\n\n\x1b[6n\x1b[4;1H\x1b[9B\x1b[6n", "\x1b[5;1R\x1b[5;1R"},
		{"origin", "\x1b[3;5r\x1b[?6h\x1b[2;2H\x1b[6n\x1b[?6l\x1b[4;2H\x1b[6n", "\x1b[2;2R\x1b[4;2R"},
		{"save and restore", "\x1b[3;4H\x1b7\x1b[H\x1b8\x1b[6n", "\x1b[3;4R"},
		{"alternate screen", "ab\x1b[?1049h\x1b[5;5H\x1b[?1049l\x1b[6n", "\x1b[1;3R"},
		{"columns and lines", "\x1b[7G\x1b[4d\x1b[6n\x1b[2E\x1b[6n\x1b[F\x1b[6n", "\x1b[4;7R\x1b[6;1R\x1b[5;1R"},
		{"tabs", "a\tb\x1b[6n\x1b[Z\x1b[6n\x1b[2I\x1b[6n", "\x1b[1;10R\x1b[1;9R\x1b[1;20R"},
		{"backspace, return, index", "abc\b\x1b[6n\r\x1bD\x1b[6n\x1bM\x1b[6n", "\x1b[1;3R\x1b[2;1R\x1b[1;1R"},
		{"repeat", "a\x1b[4b\x1b[6na\x1b[30000b\x1b[6n", "\x1b[1;6R\x1b[10;7R"},
		{"repeat after a question", "a\x1b[6n\x1b[9b\x1b[6n", "\x1b[1;2R\x1b[1;2R"},
		{"reset", "\x1b[5;5H\x1bc\x1b[6n", "\x1b[1;1R"},
		{"what are you", "\x1b[c\x1b[0c\x1bZ", "\x1b[?62;22c\x1b[?62;22c\x1b[?62;22c"},
		{"version", "\x1b[>c\x1b[=c\x1b[>q\x1b[>0q", "\x1b[>1;10;0c\x1bP!|00000000\x1b\\\x1bP>|amux\x1b\\\x1bP>|amux\x1b\\"},
		{"modes", "\x1b[?25$p\x1b[?25l\x1b[?25$p\x1b[?31$p\x1b[4$p", "\x1b[?25;1$y\x1b[?25;2$y\x1b[?31;0$y\x1b[4;0$y"},
		{"size", "\x1b[18t\x1b[19t\x1b[11t", "\x1b[8;10;20t\x1b[9;10;20t\x1b[1t"},
		{"colours", "\x1b]11;?\a\x1b]10;?\x1b\\", "\x1b]11;rgb:0000/0000/0000\a\x1b]10;rgb:ffff/ffff/ffff\x1b\\"},
		{"capabilities", "\x1bP+q544e\x1b\\\x1bP$qm\x1b\\", "\x1bP0+r\x1b\\\x1bP0$r\x1b\\"},
		{"no words are put into a mouth", "\x1bP+q\rrm -rf /\r\x1b\\\x1b]11;?;rm\a", "\x1bP0+r\x1b\\"},
		{"what there is no answer to", "\x1b[?u\x1b[14t\x1b[21t\x1b]52;c;?\a\x1b[>1u\x1b[?9999n", ""},
		{"statements", "\x1b[31m\x1b[2J\x1b[?25h\x1b]0;title?\a\x1b[u\x1b[>4;1m\x1b[1 q\x1b[>0n", ""},
		{"C1", "\u009b6n", "\x1b[1;1R"},
		{"too long to be a question", "\x1b[" + strings.Repeat("0", 300) + "6n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			whole := New(20, 10)
			if diff := cmp.Diff(tc.want, string(whole.Answer([]byte(tc.in)))); diff != "" {
				t.Error(diff)
			}
			for i := range len(tc.in) {
				split := New(20, 10)
				got := string(split.Answer([]byte(tc.in[:i])))
				if got += string(split.Answer([]byte(tc.in[i:]))); got != tc.want {
					t.Fatalf("split at %d: %q", i, got)
				}
			}
		})
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	term := New(80, 24)
	term.Answer([]byte("\x1b[20;70H"))
	term.Resize(40, 10)
	if got := string(term.Answer([]byte("\x1b[6n\x1b[18t"))); got != "\x1b[10;40R\x1b[8;10;40t" {
		t.Errorf("%q", got)
	}
}

// What an attached terminal must be put into to go on where the program is.
func TestModes(t *testing.T) {
	t.Parallel()
	term := New(80, 24)
	if got := string(term.AppendModes(nil)); got != "\x1b[?7h\x1b[?25h" {
		t.Errorf("at the start: %q", got)
	}
	term.Answer([]byte("\x1b[?1049h\x1b[?1h\x1b=\x1b[?25l\x1b[?1006;1000h\x1b[?2004h\x1b[?2004l\x1b[4 q"))
	if !term.Alternate() {
		t.Error("not on the alternate screen")
	}
	if got := string(term.AppendModes(nil)); got != "\x1b[?1h\x1b[?7h\x1b[?25l\x1b[?1000h\x1b[?1006h\x1b[?2004l\x1b=\x1b[4 q" {
		t.Errorf("%q", got)
	}
}

func filter(pieces ...string) string {
	var f Filter
	var out []byte
	for _, piece := range pieces {
		out = f.Append(out, []byte(piece))
	}
	return string(out)
}

func TestFilter(t *testing.T) {
	t.Parallel()
	image := "\x1bPq" + strings.Repeat("~", 3000) + "\n\x1b\\"
	for _, tc := range []struct{ name, in, want string }{
		{"text and statements", "a\x1b[31mb\x1b]0;t\ac\u00e9\r\n\x1b[u", "a\x1b[31mb\x1b]0;t\ac\u00e9\r\n\x1b[u"},
		{"questions", "a\x1b[6nb\x1b[cc\x1b]11;?\ad\x1bP+q54\x1b\\e\x1b[?1$pf\x1b[>qg\x1bZ", "abcdefg"},
		{"the keyboard of kitty", "\x1b[?u\x1b[>1ux\x1b[<u", "x"},
		{"control characters within a question", "\x1b[6\r\nnx", "\r\nx"},
		{"a question after a sequence that was given up", "\x1b[3\x1b[6nx", "x"},
		{"images", image + "x", image + "x"},
		{"a question after an image that was given up", image[:2000] + "\x1b[6nx", image[:2000] + "x"},
		{"bytes that are no UTF-8", "\xff\x9b6n\xe4\xb8x", "\xff\x9b6n\xe4\xb8x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, filter(tc.in)); diff != "" {
				t.Error(diff)
			}
			for i := range len(tc.in) {
				if got := filter(tc.in[:i], tc.in[i:]); got != tc.want {
					t.Fatalf("split at %d: %q", i, got)
				}
			}
		})
	}
}

// Wherever a stream is split, all three say the same; none panics, and what they
// keep and give is bounded by what they got.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{
		"plain\r\n", "\x1b[1;31mred\x1b[0m\x1b]0;t\x07\x1b[6n", "\u009b6n\u4e16\x9b\xe4\xb8", "\x1bP+q\x1b\\\x1b[?25$p\x1b[>q",
		"\x1b[3;5r\x1b[?6h\x1b[9999999999999;1H\x1b[18t\x1b[30000b", "\x1b\x1b[\x18\x1b]\n\x1b_Ga=q\x1b\x1b\\", "\x1b[?1049h\x1b[?1049l\x1b[!p\x1bc",
		"\x1b[" + strings.Repeat(";", 300) + "m", "\x1b]" + strings.Repeat("x", 300) + "\x1b[6n",
	} {
		f.Add([]byte(seed), uint(len(seed)/2), uint(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, at, every uint) {
		var pieces [][]byte
		rest := data
		if n := at % uint(len(data)+1); n > 0 {
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		for size := int(every%7) + 1; len(rest) > 0; {
			n := min(size, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		var whole, split Stripper
		want := whole.Flush(whole.Append(nil, data))
		var got []byte
		for _, piece := range pieces {
			got = split.Append(got, piece)
		}
		got = split.Flush(got)
		if !bytes.Equal(got, want) {
			t.Errorf("stripped: %q, want %q", got, want)
		}
		if len(got) > len(data) {
			t.Errorf("%d bytes of %d", len(got), len(data))
		}
		if utf8.Valid(data) && bytes.ContainsAny(got, "\x1b\u009b\u009d\u0090\a") {
			t.Errorf("control characters are left: %q", got)
		}
		var wholeFilter, splitFilter Filter
		want, got = wholeFilter.Append(nil, data), nil
		for _, piece := range pieces {
			got = splitFilter.Append(got, piece)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("filtered: %q, want %q", got, want)
		}
		if len(got)+len(splitFilter.held) > len(data) || len(splitFilter.held) > 4*ansi.MaxBody {
			t.Errorf("%d bytes and %d held of %d", len(got), len(splitFilter.held), len(data))
		}
		one, other := New(20, 10), New(20, 10)
		want, got = bytes.Clone(one.Answer(data)), nil
		for _, piece := range pieces {
			got = append(got, other.Answer(piece)...)
			if x, y := other.Cursor(); x < 0 || y < 0 || x >= 20 || y >= 10 {
				t.Fatalf("the cursor is at %d, %d", x, y)
			}
		}
		if !bytes.Equal(got, want) || one.x != other.x || one.y != other.y {
			t.Errorf("answers: %q, want %q", got, want)
		}
		if len(got) > 32*len(data) {
			t.Errorf("%d bytes of answers to %d", len(got), len(data))
		}
	})
}

func BenchmarkStripper(b *testing.B) {
	line := []byte(strings.Repeat("\x1b[32mok\x1b[0m  package/of/some/length  0.123s some more plain text of a line\r\n", 50))
	b.SetBytes(int64(len(line)))
	var s Stripper
	var out []byte
	for b.Loop() {
		out = s.Append(out[:0], line)
	}
}

func BenchmarkAnswer(b *testing.B) {
	line := []byte(strings.Repeat("\x1b[32mok\x1b[0m  package/of/some/length  0.123s some more plain text of a line\r\n", 50))
	b.SetBytes(int64(len(line)))
	term := New(120, 40)
	for b.Loop() {
		term.Answer(line)
	}
}
