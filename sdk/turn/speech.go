package turn

import (
	"bytes"
	"compress/flate"
	"io"
	"iter"
	"strings"
	"unicode/utf8"
)

// speech is what was said so far. It keeps long text in parts, for one buffer would be
// copied again and again, and twice as long for a moment. The parts are packed: an answer may
// be of any length, and the whole is wanted once, at its end.
type speech struct {
	parts  [][]byte // packed
	last   strings.Builder
	packer *flate.Writer
}

const (
	partSize = 1 << 20  // the size of a part, unless a piece is longer
	stepSize = 32 << 10 // what is unpacked at once
)

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
	s.parts = append(s.parts, s.pack(part))
	s.last = strings.Builder{}
	s.last.Grow(partSize) // at once: the parts before it were filled
}

func (s *speech) pack(part string) []byte {
	var packed bytes.Buffer
	if s.packer == nil {
		s.packer, _ = flate.NewWriter(&packed, flate.BestSpeed) // a level that there is
	} else {
		s.packer.Reset(&packed)
	}
	_, _ = io.WriteString(s.packer, part) // to memory
	_ = s.packer.Close()
	return bytes.Clone(packed.Bytes()) // without room for more
}

// Long reports whether there is more than one part.
func (s *speech) Long() bool { return len(s.parts) > 0 || s.last.Len() > partSize }

// Parts are what String joins, in pieces of no more than stepSize but for the last, none of
// which begins or ends within a rune. They are small, so that hardly any memory is taken for
// what one reader has passed on already.
func (s *speech) Parts() iter.Seq[string] {
	return func(yield func(string) bool) {
		var unpacked io.ReadCloser
		step := make([]byte, min(len(s.parts), 1)*stepSize)
		for _, packed := range s.parts {
			if source := bytes.NewReader(packed); unpacked == nil {
				unpacked = flate.NewReader(source)
			} else {
				_ = unpacked.(flate.Resetter).Reset(source, nil) // as NewReader begins
			}
			for kept, more := 0, true; more; {
				n, err := io.ReadFull(unpacked, step[kept:]) // what pack has made
				n, more = kept+n, err == nil
				end := n
				if more {
					end = lastRune(step[:n])
				}
				if !yield(string(step[:end])) {
					return
				}
				kept = copy(step, step[end:n])
			}
		}
		yield(s.last.String())
	}
}

// lastRune is where the last rune of b begins, if it may go on behind b, and else the end of b.
func lastRune(b []byte) int {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(b[i]) {
			if utf8.FullRune(b[i:]) {
				break
			}
			return i
		}
	}
	return len(b)
}

func (s *speech) String() string {
	if len(s.parts) == 0 {
		return s.last.String()
	}
	var whole strings.Builder
	for part := range s.Parts() {
		whole.WriteString(part)
	}
	return whole.String()
}

func (s *speech) Reset() {
	s.parts, s.packer = nil, nil
	s.last.Reset()
}
