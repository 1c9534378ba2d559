package ask

import (
	"bufio"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/cmd/amux/internal/line"
	"github.com/amux-dev/amux/cmd/amux/internal/ndjson"
	"github.com/amux-dev/amux/host"
)

// Keyboard is what a person types, told apart by the question that was on the screen
// when it was read. At a terminal an answer counts only if it was typed after its
// question was shown; what a pipe holds is never too early.
type Keyboard struct {
	// Lines are the lines that are typed. It is closed when stdin has ended.
	Lines <-chan Line

	io   *iostreams.IO
	line *line.Line // nil: the terminal edits lines itself

	mu    sync.Mutex
	asked int  // questions shown so far
	read  int  // asked, when the last bytes were read
	from  int  // asked, when the line began that is read now
	half  bool // of that line there are bytes and no end: Ctrl-D hands them over
}

// Line is one of those that were typed.
type Line struct {
	Text  string
	asked int
	// Prompt says that it was typed at an input line where no question was.
	Prompt bool
}

// NewKeyboard begins to read what is typed, until the process ends. long is called for a
// line that is longer than a prompt may be, which is skipped.
func NewKeyboard(io *iostreams.IO, long func()) *Keyboard {
	lines := make(chan Line)
	k := &Keyboard{io: io, Lines: lines}
	go func() { // reads a terminal, so it ends with the process
		defer close(lines)
		r := bufio.NewReader(k)
		for {
			text, err := ndjson.ReadLine(r, host.MaxPrompt)
			if errors.Is(err, ndjson.ErrLongLine) {
				long()
				continue
			}
			if len(text) > 0 || err == nil {
				lines <- k.stamp(strings.TrimSpace(string(text)))
			}
			if err != nil {
				return
			}
		}
	}()
	return k
}

// NewLineKeyboard begins to read what is typed at an input line, until the process ends.
func NewLineKeyboard(io *iostreams.IO, l *line.Line) *Keyboard {
	lines := make(chan Line)
	k := &Keyboard{io: io, Lines: lines, line: l}
	go func() { // reads a terminal, so it ends with the process
		defer close(lines)
		for buf := make([]byte, 4096); ; {
			if l.Escaped() && !io.WaitTyped(escapeTime) {
				l.Escape()
			}
			n, err := k.Read(buf)
			k.mu.Lock()
			asked := k.read
			k.mu.Unlock()
			texts, ended := l.Type(buf[:n], asked)
			for _, text := range texts {
				lines <- Line{strings.TrimSpace(text.Text), asked, text.Prompt}
			}
			if ended || err != nil {
				return
			}
		}
	}()
	return k
}

// escapeTime is how long the rest of a key may take. Esc alone has none.
const escapeTime = 50 * time.Millisecond

// Read reads what was typed. At a terminal it takes bytes only when there are some,
// with mu held, so that what Shown discards and what is read here are exact.
func (k *Keyboard) Read(p []byte) (int, error) {
	if k.io.WaitTyped == nil {
		n, err := k.io.In.Read(p)
		k.mu.Lock()
		k.took(p[:n])
		k.mu.Unlock()
		return n, err
	}
	for {
		k.io.WaitTyped(time.Second)
		k.mu.Lock()
		if k.io.WaitTyped(0) {
			n, err := k.io.In.Read(p)
			k.took(p[:n])
			k.mu.Unlock()
			return n, err
		}
		k.mu.Unlock()
	}
}

// took notes that bytes were read. mu is held.
func (k *Keyboard) took(p []byte) {
	if len(p) == 0 {
		return
	}
	k.read = k.asked
	if !k.half {
		k.from = k.asked
	}
	k.half = p[len(p)-1] != '\n'
}

// stamp makes a line of a text that Read has just given the end of. It is as old as its
// first byte; the next one, if there is more, is as old as the end of this.
func (k *Keyboard) stamp(text string) Line {
	k.mu.Lock()
	defer k.mu.Unlock()
	typed := Line{text, k.from, false}
	k.from = k.read
	return typed
}

// Shown discards what was typed before the question that is now on the screen.
func (k *Keyboard) Shown() {
	if k.io.DiscardTyped == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.io.DiscardTyped()
	k.asked++
	if k.line != nil {
		k.line.Shown(k.asked)
	}
}

// Answered says that the question on the screen needs no answer any more.
func (k *Keyboard) Answered() {
	if k != nil && k.line != nil {
		k.line.Answered()
	}
}

// Early reports whether a line was typed before the question on the screen.
func (k *Keyboard) Early(l Line) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return l.asked != k.asked
}

// Lend leaves the terminal to another program while do goes on.
func (k *Keyboard) Lend(do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.line != nil {
		k.line.Suspend()
		defer k.line.Resume()
	}
	do()
}
