package main

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const tailSize = 4 << 10

// tail keeps the end of what the CLI wrote to stderr.
type tail struct{ kept []byte }

func (t *tail) add(line []byte) {
	t.kept = append(append(t.kept, line...), '\n')
	if n := len(t.kept); n > 2*tailSize {
		t.kept = append(t.kept[:0], t.kept[n-tailSize:]...)
	}
	if cap(t.kept) > 16*tailSize {
		t.kept = bytes.Clone(t.kept)
	}
}

func (t *tail) text() string {
	text := t.kept
	if n := len(text); n > tailSize {
		text = text[n-tailSize:]
	}
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return strings.ToValidUTF8(string(text), "\ufffd")
}
