package vt

import "github.com/amux-dev/amux/internal/sys/ansi"

// Filter passes on what a program sends to a terminal, without what the shim answers
// in the terminal's place: questions, and the keyboard protocol that the shim's
// terminal does not have. The zero value is ready.
type Filter struct {
	parser   ansi.Parser
	out      []byte
	held     []byte // the sequence that is being read
	controls []byte // those within it
	drop     bool
}

// Append appends to dst what is passed on of the next piece. A sequence that has
// not ended is held back, if it may be a question.
func (f *Filter) Append(dst, piece []byte) []byte {
	f.out = dst
	for i := 0; i < len(piece); {
		if f.parser.Idle() {
			start := i
			for i < len(piece) && piece[i] >= 0x20 && piece[i] < 0x7f {
				i++
			}
			f.out = append(f.out, piece[start:i]...)
			if i == len(piece) {
				break
			}
		}
		f.held = append(f.held, piece[i])
		f.parser.Advance(piece[i], (*filtering)(f))
		i++
		if f.parser.Idle() || f.parser.Overlong() {
			f.release()
		}
	}
	dst, f.out = f.out, nil
	return dst
}

func (f *Filter) release() {
	if f.drop {
		f.held = f.controls
	}
	f.out = append(f.out, f.held...)
	f.held, f.controls, f.drop = f.held[:0], f.controls[:0], false
}

type filtering Filter

func (f *filtering) Print(rune, []byte) {}

func (f *filtering) Control(c rune) {
	if c < 0x20 {
		f.controls = append(f.controls, byte(c))
	}
}

func (f *filtering) Sequence(s *ansi.Sequence) { f.drop = asks(s) }
