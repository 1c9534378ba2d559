package turn

import (
	"strings"
	"unicode/utf8"
)

// speech is what was said so far. It keeps long text in parts, for one buffer would be
// copied again and again, and twice as long for a moment.
type speech struct {
	parts []string
	last  strings.Builder
}

// partSize is the size of a part, unless a piece is longer.
const partSize = 1 << 20

func (s *speech) WriteString(piece string) {
	s.room(len(piece))
	s.last.WriteString(piece)
}

func (s *speech) Write(piece []byte) {
	s.room(len(piece))
	s.last.Write(piece)
}

// room begins another part if the last one has no room for more bytes. A rune whose bytes
// come in two pieces is not cut.
func (s *speech) room(more int) {
	if s.last.Len() == 0 || s.last.Len()+more <= partSize {
		return
	}
	part := s.last.String()
	if r, size := utf8.DecodeLastRuneInString(part); r == utf8.RuneError && size < 2 {
		return
	}
	s.parts = append(s.parts, part)
	s.last = strings.Builder{}
}

// Long reports whether there is more than one part.
func (s *speech) Long() bool { return len(s.parts) > 0 || s.last.Len() > partSize }

// Parts are what String joins.
func (s *speech) Parts() []string {
	return append(s.parts[:len(s.parts):len(s.parts)], s.last.String())
}

func (s *speech) String() string {
	if len(s.parts) == 0 {
		return s.last.String()
	}
	return strings.Join(s.Parts(), "")
}

func (s *speech) Reset() {
	s.parts = nil
	s.last.Reset()
}
