package ndjson

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLongLinesArePassedOver(t *testing.T) {
	t.Parallel()
	r := bufio.NewReaderSize(strings.NewReader("one\n"+strings.Repeat("x", 100)+"\ntwo\n"+strings.Repeat("y", 100)), 16)
	var got []string
	for {
		line, err := ReadLine(r, 50)
		switch {
		case errors.Is(err, ErrLongLine):
			got = append(got, "long")
			continue
		case len(line) > 0:
			got = append(got, string(line))
		}
		if err == io.EOF {
			break
		}
	}
	if text := strings.Join(got, "|"); text != "one\n|long|two\n" {
		t.Errorf("got %q", text)
	}
}

func FuzzReadLine(f *testing.F) {
	f.Add("a\nbb\n\nccc", uint8(2))
	f.Add("no end", uint8(0))
	f.Fuzz(func(t *testing.T, text string, limit uint8) {
		r := bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(text)), 16)
		want := strings.SplitAfter(text, "\n")
		for i := 0; ; i++ {
			line, err := ReadLine(r, int(limit))
			short := len(want[i]) <= int(limit)
			switch {
			case short && string(line) != want[i], !short && len(line) > 0:
				t.Fatalf("line %d of %q: %q, %v", i, text, line, err)
			case !short && strings.HasSuffix(want[i], "\n") && !errors.Is(err, ErrLongLine):
				t.Fatalf("line %d of %q: %v", i, text, err)
			}
			if err == io.EOF {
				if i != len(want)-1 {
					t.Fatalf("%d lines of %d", i+1, len(want))
				}
				return
			}
		}
	})
}
