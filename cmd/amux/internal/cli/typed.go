package cli

import (
	"io"
	"strings"
	"sync"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
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

// shown discards what was typed before the question that is on the screen now.
func (t *typing) shown() {
	if t.io.DiscardTyped == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.io.DiscardTyped()
	t.asked++
}

// early reports whether a line was typed before the question that is on the screen.
func (t *typing) early(l line) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return l.asked != t.asked
}

// confirm asks a question, to be answered with y or n. It reads its own line and no
// byte more: there may be a further question.
func (s *session) confirm(question string) bool {
	_, _ = io.WriteString(s.app.IO.Err, render.String(question)+" [y/N] ")
	if s.app.IO.DiscardTyped != nil {
		s.app.IO.DiscardTyped()
	}
	var text strings.Builder
	for b := make([]byte, 1); text.Len() < 100; {
		n, err := s.app.IO.In.Read(b)
		if n == 1 && b[0] != '\n' {
			text.WriteByte(b[0])
		}
		if n == 1 && b[0] == '\n' || err != nil {
			break
		}
	}
	answer := strings.ToLower(strings.TrimSpace(text.String()))
	return answer == "y" || answer == "yes"
}
