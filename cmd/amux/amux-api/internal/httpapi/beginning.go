package httpapi

import (
	"bytes"
	"strings"
)

// beginning keeps the beginning of what is written, and says when it is full.
type beginning struct {
	kept bytes.Buffer
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

// text is what was kept, with a mark for each byte that is no text.
func (b *beginning) text() string { return strings.ToValidUTF8(b.kept.String(), "\uFFFD") }
