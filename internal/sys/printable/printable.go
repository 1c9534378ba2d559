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

	"github.com/amux-dev/amux/internal/sys/ansi"
)

// Sanitizer takes control sequences out of text, so that it cannot move the cursor,
// retitle the window, write to the clipboard or hide what it says. What is left is
// characters that are seen, tabs and line feeds. It keeps its state between calls, so a
// sequence may be split anywhere, also inside a character. The zero value is ready.
type Sanitizer struct {
	parser ansi.Parser
	out    []byte
	last   rune // of what was appended
}

// Append appends what is left of text to dst.
func (s *Sanitizer) Append(dst []byte, text string) []byte {
	s.out = dst
	for i := 0; i < len(text); {
		if s.parser.Idle() {
			start := i
			for i < len(text) && isPlain(text[i]) {
				i++
			}
			if i > start {
				s.last = rune(text[i-1])
			}
			s.out = append(s.out, text[start:i]...)
			if i == len(text) {
				break
			}
		}
		if text[i] == '\n' {
			s.parser.Abandon() // a sequence that never ends must not hide what follows
		}
		s.parser.Advance(text[i], (*shown)(s))
		i++
	}
	dst, s.out = s.out, nil
	return dst
}

// isPlain reports whether c stands for itself wherever no sequence has begun.
func isPlain(c byte) bool { return c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' }

// String is Append for a text that stands for itself.
func String(text string) string {
	for i := range len(text) {
		if !isPlain(text[i]) {
			var s Sanitizer
			return string(s.Append(make([]byte, 0, len(text)), text))
		}
	}
	return text
}

// shown is the Sanitizer as its parser's handler.
type shown Sanitizer

// Print keeps what is seen. Bytes that are not valid become U+FFFD.
func (s *shown) Print(r rune, _ []byte) {
	// Joiners belong between letters of some scripts, and in emoji. Behind ASCII they
	// only make one word of a command look like another.
	joiner := (r == 0x200c || r == 0x200d) && s.last < utf8.RuneSelf
	if joiner || isHidden(r) {
		return
	}
	s.last = r
	s.out = utf8.AppendRune(s.out, r)
}

func (s *shown) Control(c rune) {
	if c == '\n' || c == '\t' {
		s.last = c
		s.out = append(s.out, byte(c))
	}
}

func (s *shown) Sequence(*ansi.Sequence) {}

// isControl reports whether r is a control character that is no tab and no line feed.
func isControl(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f
}

// isHidden reports whether r is not seen: it reorders the text around it, so that code is
// shown as other code, or hides in it.
func isHidden(r rune) bool {
	switch {
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // embedding, override, isolate
	case r == 0x200e, r == 0x200f, r == 0x061c: // direction marks
	case r == 0x200b, r >= 0x2060 && r <= 0x2065, r == 0xfeff, r == 0x180e: // without width
	case r >= 0x206a && r <= 0x206f, r >= 0xfff9 && r <= 0xfffb: // deprecated, annotation
	case r >= 0xe0000 && r <= 0xe007f: // tags, which can spell what nobody sees
	case r == 0x2028, r == 0x2029: // line ends that terminals do not show
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
