// Package screen makes of a program's output what a terminal shows of it. It is
// for who looks, and made when somebody does: a run has none.
package screen

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/vt"

	"github.com/amux-dev/amux/host"
	protocol "github.com/amux-dev/amux/host/vt"
)

// tail is how much of the output is drawn. What was drawn before that and never
// again is missing; an emulator that draws all would take minutes for a long run.
const tail = 2 << 20

// Screen keeps the last of a program's output and draws it when asked. It is for
// one goroutine.
type Screen struct {
	cols, rows int
	// before is the terminal as the output that is not kept has left it.
	before *protocol.Terminal
	kept   []piece
	size   int
	now    *protocol.Terminal
}

// piece is some output, or a new size.
type piece struct {
	output     []byte
	cols, rows int
}

// New is the screen of a terminal that has just been switched on.
func New(cols, rows int) *Screen {
	return &Screen{cols: cols, rows: rows, before: protocol.New(cols, rows), now: protocol.New(cols, rows)}
}

// Write takes the next output, which it copies.
func (s *Screen) Write(output []byte) {
	s.now.Answer(output)
	if n := len(s.kept); n > 0 && s.kept[n-1].cols == 0 && len(s.kept[n-1].output) < 64<<10 {
		s.kept[n-1].output = append(s.kept[n-1].output, output...)
		s.size += len(output)
		return
	}
	s.add(piece{output: bytes.Clone(output)})
}

// Resize gives the terminal another size.
func (s *Screen) Resize(cols, rows int) {
	s.cols, s.rows = cols, rows
	s.now.Resize(cols, rows)
	s.add(piece{cols: cols, rows: rows})
}

func (s *Screen) add(p piece) {
	s.kept = append(s.kept, p)
	s.size += len(p.output)
	for s.size > 2*tail {
		for s.size > tail {
			first := s.kept[0]
			s.kept[0] = piece{}
			s.kept = s.kept[1:]
			s.size -= len(first.output)
			if first.cols > 0 {
				s.before.Resize(first.cols, first.rows)
			} else {
				s.before.Answer(first.output)
			}
		}
	}
}

// Follow does what became of a run's terminal to s, and returns it, or the screen
// of a new terminal. s is nil before there is one.
func Follow(s *Screen, p host.TerminalPiece) *Screen {
	switch {
	case p.Opened:
		return New(p.Cols, p.Rows)
	case s == nil:
	case p.Cols > 0:
		s.Resize(p.Cols, p.Rows)
	default:
		s.Write(p.Output)
	}
	return s
}

// Size is that of the terminal.
func (s *Screen) Size() (cols, rows int) { return s.cols, s.rows }

// draw runs the emulator.
func (s *Screen) draw() (_ *vt.Emulator, err error) {
	defer func() {
		if r := recover(); r != nil { // of somebody else's code, on input that may be anything
			err = fmt.Errorf("the output cannot be drawn: %v", r)
		}
	}()
	cols, rows := s.before.Size()
	e := vt.NewEmulator(cols, rows)
	e.SetScrollbackSize(1) // 0 would be as much as it likes
	// It answers questions, and hangs if nobody takes the answers. There should be
	// none, for questions are filtered out.
	go func() { _, _ = io.Copy(io.Discard, e) }()
	defer e.Close()
	if s.before.Alternate() {
		_, _ = e.WriteString("\x1b[?1049h")
	}
	x, y := s.before.Cursor()
	_, _ = fmt.Fprintf(e, "\x1b[%d;%dH", y+1, x+1)
	// What belongs to one character must come at once.
	var filter protocol.Filter
	var output []byte
	for _, p := range s.kept {
		if p.cols == 0 {
			output = filter.Append(output, p.output)
			continue
		}
		_, _ = e.Write(output)
		if over := e.CursorPosition().Y - p.rows + 1; over > 0 && !e.IsAltScreen() {
			// What is cut off is above the cursor, not below.
			at := e.CursorPosition()
			_, _ = fmt.Fprintf(e, "\x1b7\x1b[r\x1b[%d;1H%s\x1b8\x1b[%d;%dH", e.Height(), strings.Repeat("\n", over), at.Y-over+1, at.X+1)
		}
		e.Resize(p.cols, p.rows)
		output = output[:0]
	}
	_, _ = e.Write(output)
	return e, nil
}

// Text is what the terminal shows, a line for each of its own, without the spaces
// and the empty lines that nothing follows.
func (s *Screen) Text() (string, error) {
	e, err := s.draw()
	if err != nil {
		return "", err
	}
	lines := strings.Split(e.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 0 {
		return "", nil
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// Paint is what makes another terminal of that many rows, one that has just been
// reset, show the same and go on from there. Columns that it does not have it
// cuts itself.
func (s *Screen) Paint(rows int) ([]byte, error) {
	e, err := s.draw()
	if err != nil {
		return nil, err
	}
	var out []byte
	if s.now.Alternate() {
		out = append(out, "\x1b[?1049h"...)
	}
	out = append(out, "\x1b[?7l\x1b[H\x1b[2J"...) // without wrapping
	cursor := e.CursorPosition()
	top := max(0, cursor.Y-rows+1) // the line of the cursor is shown
	for i, line := range strings.Split(e.Render(), "\n") {
		if i >= top && i < top+rows {
			out = fmt.Appendf(out, "\x1b[%d;1H%s\x1b[m", i-top+1, strings.TrimSuffix(line, "\r"))
		}
	}
	out = fmt.Appendf(out, "\x1b[%d;%dH", cursor.Y-top+1, cursor.X+1)
	return s.now.AppendModes(out), nil
}
