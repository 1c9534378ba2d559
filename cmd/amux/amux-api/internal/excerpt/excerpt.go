// Package excerpt has the beginnings of long texts, for answers that are bounded.
package excerpt

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/amux-dev/amux/host"
)

// Text shortens a text to at most n bytes, between characters, and reports whether it did.
func Text(text string, n int) (string, bool) {
	if len(text) <= n {
		return text, false
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n], true
}

// Patch is the beginning of a patch, of at most n bytes, with a mark for each byte that is no
// text. Nothing is made of the rest.
func Patch(ctx context.Context, d *host.Diff, n int) (text string, cut bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &beginning{left: n + 1, full: cancel}
	if err := d.Patch(ctx, w, false); err != nil && w.left > 0 {
		return "", false, err
	}
	text, cut = Text(strings.ToValidUTF8(w.kept.String(), "\uFFFD"), n)
	return text, cut, nil
}

// beginning keeps the beginning of what is written, and says when it is full.
type beginning struct {
	kept strings.Builder
	left int
	full func()
}

func (b *beginning) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.kept.Write(p[:n])
	if b.left -= n; b.left == 0 {
		b.full()
	}
	return len(p), nil
}
