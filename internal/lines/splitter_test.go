package lines_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/lines"
)

func split(piece int, limit int64, chunks ...string) []string {
	s := lines.Splitter{Piece: piece, Limit: limit}
	var got []string
	emit := func(l lines.Line) {
		text := string(l.Data)
		if l.More {
			text += "+"
		}
		if l.Discard {
			text = fmt.Sprintf("!%d:%d", l.Offset, l.Length)
		}
		got = append(got, text)
	}
	for _, c := range chunks {
		s.Feed([]byte(c), emit)
	}
	s.Flush(emit)
	return got
}

func TestSplitter(t *testing.T) {
	for _, tt := range []struct {
		name   string
		chunks []string
		want   string
	}{
		{"two lines", []string{"a\nb\n"}, "a|b"},
		{"unended last line", []string{"a\nb"}, "a|b"},
		{"crlf", []string{"a\r\nb\r\n"}, "a|b"},
		{"crlf over chunks", []string{"a\r", "\nb"}, "a|b"},
		{"inner cr stays", []string{"a\rb\n"}, "a\rb"},
		{"empty lines", []string{"\n\n\r\na\n\n"}, "a"},
		{"pieces", []string{"0123456789abc\n"}, "01234567+|89abc"},
		{"exactly a piece", []string{"01234567\nx"}, "01234567|x"},
		{"rune border", []string{"0123456é9\n"}, "0123456+|é9"},
		{"not utf-8", []string{"0123456\x80\x80\x80\x80\x809\n"}, "0123456\x80+|\x80\x80\x80\x809"},
		{"over the limit", []string{"ab\n" + strings.Repeat("x", 30), "yy\nz\n"}, "ab|xxxxxxxx+|xxxxxxxx+|!3:32|z"},
		{"nul", []string{"a\x00b\n"}, "a\x00b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(split(8, 20, tt.chunks...), "|"); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Where the chunks end changes nothing.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("a\r\nbb\n\n0123456789é\xff\n"), uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var chunks []string
		for rest := data; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			chunks = append(chunks, string(rest[:n]))
			rest = rest[n:]
		}
		whole := split(8, 40, string(data))
		if got := split(8, 40, chunks...); fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Fatalf("chunked %q\nwhole   %q", got, whole)
		}
	})
}

func BenchmarkSplitter(b *testing.B) {
	chunk := bytes.Repeat([]byte(strings.Repeat("x", 260)+"\n"), 250)
	s := lines.Splitter{Piece: 512 << 10, Limit: 128 << 20}
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		s.Feed(chunk, func(lines.Line) {})
	}
}
