// Package lines cuts a byte stream into lines. It holds no line that ends inside
// the chunk it came in, so that memory is bounded by one piece, and scans every
// byte once, so that a long line costs no more than many short ones.
package lines

import (
	"bytes"
	"unicode/utf8"
)

// Line is one line without its ending, or a piece of one.
type Line struct {
	Data []byte // valid for as long as the chunk it ended in is
	More bool   // the line goes on in the next Line
	// Discard is set on the last piece of a line longer than the limit; Offset
	// and Length tell where in the stream the whole line was.
	Discard        bool
	Offset, Length int64
}

// Splitter cuts one stream. Lines end with LF; one CR before it is dropped, and
// so are empty lines. A line longer than Piece comes in pieces of at most Piece
// bytes that end at rune borders; where they end depends on the line alone, not
// on the chunks it came in.
type Splitter struct {
	Piece int   // most bytes of one Line
	Limit int64 // longest line; beyond it the rest is dropped and Discard set

	carry  []byte // start of a line whose end has not come
	offset int64  // stream position of the next byte
	length int64  // bytes of the current line that have left carry as pieces
	over   bool
}

// Feed takes the next chunk and emits the lines that end in it.
func (s *Splitter) Feed(chunk []byte, emit func(Line)) {
	for len(chunk) > 0 {
		end := bytes.IndexByte(chunk, '\n')
		if end < 0 {
			s.hold(chunk, emit)
			s.offset += int64(len(chunk))
			return
		}
		line := chunk[:end]
		if len(s.carry) == 0 && s.length == 0 && len(line) <= s.Piece {
			if line = trimCR(line); len(line) > 0 {
				emit(Line{Data: line})
			}
		} else {
			s.hold(line, emit)
			s.end(int64(len(line)), emit)
		}
		s.offset += int64(end + 1)
		chunk = chunk[end+1:]
	}
}

// Flush emits what the stream ended with, if it ended without a line ending.
func (s *Splitter) Flush(emit func(Line)) { s.end(0, emit) }

// hold adds part of a line to carry and emits the pieces that are full.
func (s *Splitter) hold(part []byte, emit func(Line)) {
	for len(s.carry)+len(part) > s.Piece {
		// Fill carry to one byte over a piece: only then is the line known to
		// be longer than a piece.
		take := min(len(part), s.Piece+1-len(s.carry))
		s.carry = append(s.carry, part[:take]...)
		part = part[take:]
		if len(s.carry) <= s.Piece {
			break
		}
		cut := runeBorder(s.carry[:s.Piece])
		s.length += int64(cut)
		if s.length > s.Limit {
			s.over = true
		}
		if !s.over {
			emit(Line{Data: s.carry[:cut], More: true})
		}
		s.carry = append([]byte(nil), s.carry[cut:]...) // the piece keeps its array
	}
	s.carry = append(s.carry, part...)
}

// end emits the last piece. fed is how much of the line Feed has not yet counted
// in offset.
func (s *Splitter) end(fed int64, emit func(Line)) {
	whole := s.length + int64(len(s.carry))
	line := trimCR(s.carry)
	switch {
	case whole > s.Limit:
		emit(Line{Discard: true, Offset: s.offset + fed - whole, Length: whole})
	case len(line) > 0 || s.length > 0:
		emit(Line{Data: line})
	}
	s.carry, s.length, s.over = nil, 0, false
}

func trimCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

// runeBorder is the last place in b where no UTF-8 sequence is cut. Bytes that
// are not UTF-8 are cut anywhere.
func runeBorder(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		c := b[len(b)-back]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-back:]) {
				return len(b) - back
			}
			break
		}
	}
	return len(b)
}
