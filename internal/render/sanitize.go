package render

import "unicode/utf8"

// Sanitizer takes control sequences out of text that an agent wrote, so that it
// cannot move the cursor, retitle the window, write to the clipboard or hide what
// it says. What is left is printable characters, tabs and line feeds. It keeps
// its state between calls, so a sequence may be split anywhere, also inside a
// character. The zero value is ready.
type Sanitizer struct {
	state state
	rest  [utf8.UTFMax]byte // the begun character
	nrest int
}

type state byte

const (
	ground  state = iota
	escape        // after ESC
	control       // in a control sequence: ESC [
	str           // in a string: ESC ] P X ^ _, up to BEL, ST or the line's end
	strEsc        // after ESC inside a string
)

// Append appends what is left of text to dst.
func (s *Sanitizer) Append(dst []byte, text string) []byte {
	for i := 0; i < len(text); {
		if s.nrest == 0 && s.state == ground {
			// The common case: plain characters in a row.
			start := i
			for i < len(text) && (text[i] >= 0x20 && text[i] < 0x7f || text[i] == '\n' || text[i] == '\t') {
				i++
			}
			dst = append(dst, text[start:i]...)
			if i == len(text) {
				break
			}
		}
		c := text[i]
		if s.nrest == 0 && c < utf8.RuneSelf {
			dst = s.rune(dst, rune(c))
			i++
			continue
		}
		s.rest[s.nrest] = c
		s.nrest++
		i++
		// What follows an invalid byte begins anew; it may have come with an
		// earlier piece of the text.
		for s.nrest > 0 && utf8.FullRune(s.rest[:s.nrest]) {
			r, size := utf8.DecodeRune(s.rest[:s.nrest])
			s.nrest = copy(s.rest[:], s.rest[size:s.nrest])
			dst = s.rune(dst, r)
		}
	}
	return dst
}

// String is Append for a text that stands for itself.
func String(text string) string {
	var s Sanitizer
	return string(s.Append(nil, text))
}

func (s *Sanitizer) rune(dst []byte, r rune) []byte {
	switch s.state {
	case escape:
		switch {
		case r == '[':
			s.state = control
		case r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_':
			s.state = str
		case r >= 0x20 && r <= 0x2f: // intermediate: more follows
		case r >= 0x30 && r <= 0x7e:
			s.state = ground
		default:
			s.state = ground
			return s.rune(dst, r)
		}
		return dst
	case control:
		switch {
		case r >= 0x40 && r <= 0x7e:
			s.state = ground
		case r >= 0x20 && r <= 0x3f:
		default:
			s.state = ground
			return s.rune(dst, r)
		}
		return dst
	case str:
		switch r {
		case '\a', 0x9c:
			s.state = ground
		case 0x1b:
			s.state = strEsc
		case '\n': // no terminal string has lines; rather show too much
			s.state = ground
			return append(dst, '\n')
		}
		return dst
	case strEsc:
		if r == '\\' {
			s.state = ground
			return dst
		}
		s.state = escape
		return s.rune(dst, r)
	}
	switch {
	case r == 0x1b:
		s.state = escape
	case r == 0x9b:
		s.state = control
	case r == 0x90 || r == 0x98 || r == 0x9d || r == 0x9e || r == 0x9f:
		s.state = str
	case r == '\n' || r == '\t':
		return append(dst, byte(r))
	case r < 0x20 || r >= 0x7f && r <= 0x9f:
	case isBidiControl(r):
	default:
		return utf8.AppendRune(dst, r)
	}
	return dst
}

// isBidiControl reports whether r reorders the text around it, by which code can
// be shown as other code.
func isBidiControl(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
