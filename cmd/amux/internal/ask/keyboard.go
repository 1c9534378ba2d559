package run

import (
	"sync"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
)

// typing is what a person types, told apart by the question that was on the screen
// when it was read. At a terminal an answer counts only if it was typed after its
// question was shown; what a pipe holds is never too early.
type typing struct {
	io *iostreams.IO

	mu    sync.Mutex
	asked int // questions shown so far
	read  int // asked, when the last bytes were read
}

// line is one of those that were typed.
type line struct {
	text  string
	asked int
}

// Read reads what was typed. At a terminal it takes bytes only when there are some,
// with mu held, so that what shown discards and what is read here are exact.
func (t *typing) Read(p []byte) (int, error) {
	if t.io.WaitTyped == nil {
		n, err := t.io.In.Read(p)
		t.mu.Lock()
		t.read = t.asked
		t.mu.Unlock()
		return n, err
	}
	for {
		t.io.WaitTyped(time.Second)
		t.mu.Lock()
		if t.io.WaitTyped(0) {
			n, err := t.io.In.Read(p)
			t.read = t.asked
			t.mu.Unlock()
			return n, err
		}
		t.mu.Unlock()
	}
}

// stamp makes a line of a text that Read has just given the end of.
func (t *typing) stamp(text string) line {
	t.mu.Lock()
	defer t.mu.Unlock()
	return line{text, t.read}
}

// shown discards what was typed before the question that is now on the screen.
func (t *typing) shown() {
	if t.io.DiscardTyped == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.io.DiscardTyped()
	t.asked++
}

// early reports whether a line was typed before the question on the screen.
func (t *typing) early(l line) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return l.asked != t.asked
}
