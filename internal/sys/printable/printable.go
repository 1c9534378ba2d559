// Package printable takes out of text what could deceive the person who reads it on a
// terminal: control sequences, and characters that are not seen but reorder or hide
// others. All text that others have written passes it on its way to a terminal: of
// agents, plugins, repositories and sessions. It knows nothing of amux.
package printable

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Sanitizer takes control sequences out of text, so that it cannot move the cursor,
// retitle the window, write to the clipboard or hide what it says. What is left is
// characters that are seen, tabs and line feeds. It keeps
// its state between calls, so a sequence may be split anywhere, also inside a
// character. The zero value is ready.
type Sanitizer struct {
	state state
	rest  [utf8.UTFMax]byte // the begun character
	nrest int
	last  rune // of what was appended
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
			if i > start {
				s.last = rune(text[i-1])
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
	case isControl(r) || isHidden(r):
	case (r == 0x200c || r == 0x200d) && s.last < utf8.RuneSelf:
		// Joiners belong between letters of some scripts, and in emoji. Behind ASCII
		// they only make one word of a command look like another.
	default:
		s.last = r
		return utf8.AppendRune(dst, r)
	}
	return dst
}

// isControl reports whether r is a control character that is no tab and no line feed.
func isControl(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f
}

// isHidden reports whether r is not seen, and reorders the text around it, by which
// code can be shown as other code, or only hides in it.
func isHidden(r rune) bool {
	switch {
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // embedding, override, isolate
	case r == 0x200e, r == 0x200f, r == 0x061c: // direction marks
	case r == 0x200b, r >= 0x2060 && r <= 0x2065, r == 0xfeff, r == 0x180e: // without width
	case r >= 0x206a && r <= 0x206f, r >= 0xfff9 && r <= 0xfffb: // deprecated, annotation
	case r >= 0xe0000 && r <= 0xe007f: // tags, which can spell what nobody sees
	case r == 0x2028, r == 0x2029: // line ends that are none
	default:
		return false
	}
	return true
}

// Line is String in one line, for a cell of a table: what ends lines becomes a space.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, String(text))
}

// JSON escapes in JSON what Sanitizer would take out. It means the same, and a terminal
// shows it.
func JSON(data []byte) []byte {
	hidden := func(r rune) bool {
		return r >= 0x7f && (isControl(r) || isHidden(r) || r == 0x200c || r == 0x200d)
	}
	text := string(data)
	if strings.IndexFunc(text, hidden) < 0 {
		return data
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}

// Writer passes on what Sanitizer leaves of what is written to it.
type Writer struct {
	w io.Writer
	s Sanitizer
}

// NewWriter returns a Writer for w. It is for one goroutine.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

func (w *Writer) Write(data []byte) (int, error) {
	if _, err := w.w.Write(w.s.Append(nil, string(data))); err != nil {
		return 0, err
	}
	return len(data), nil
}
