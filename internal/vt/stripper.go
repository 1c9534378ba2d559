package vt

import "github.com/amux-dev/amux/internal/sys/ansi"

// Stripper makes text of what a program has sent to a terminal: control
// sequences and control characters go, but for tab, line feed, and carriage
// returns within a line. Bytes that are no UTF-8 stay as they are. The zero value
// is ready.
type Stripper struct {
	parser ansi.Parser
	out    []byte
	cr     bool // a carriage return, which a line feed would swallow
}

// Append appends to dst the text of the next piece of the stream, which is never
// longer than the pieces so far. A character that is not whole is kept for the
// next call.
func (s *Stripper) Append(dst, piece []byte) []byte {
	s.out = dst
	for i := 0; i < len(piece); {
		if s.parser.Idle() {
			start := i
			for i < len(piece) && (piece[i] >= 0x20 && piece[i] < 0x7f || piece[i] == '\n') {
				i++
			}
			s.text(piece[start:i])
			if i == len(piece) {
				break
			}
		}
		s.parser.Advance(piece[i], (*stripping)(s))
		i++
	}
	dst, s.out = s.out, nil
	return dst
}

// Flush appends the bytes of a character that the stream ended in, and makes the
// stripper as new.
func (s *Stripper) Flush(dst []byte) []byte {
	s.out = dst
	s.parser.Flush((*stripping)(s))
	dst = s.out
	if s.cr {
		dst = append(dst, '\r')
	}
	*s = Stripper{}
	return dst
}

type stripping Stripper

// text appends what is shown. A terminal gives a line feed a carriage return of
// its own, so that there may be several before it.
func (s *Stripper) text(text []byte) {
	if s.cr && len(text) > 0 {
		if text[0] != '\n' {
			s.out = append(s.out, '\r')
		}
		s.cr = false
	}
	s.out = append(s.out, text...)
}

func (s *stripping) Print(_ rune, raw []byte) { (*Stripper)(s).text(raw) }

func (s *stripping) Control(c rune) {
	switch c {
	case '\r':
		s.cr = true
	case '\n':
		(*Stripper)(s).text([]byte{'\n'})
	case '\t':
		(*Stripper)(s).text([]byte{'\t'})
	}
}

func (s *stripping) Sequence(*ansi.Sequence) {}
