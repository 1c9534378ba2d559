package turn

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/amux-dev/amux/sdk/pattern"
)

// stderrPart is how much is kept of the beginning of stderr, and of its end.
const stderrPart = 4 << 10

// Stderr keeps the beginning and the end of what an agent wrote to stderr: some print
// their whole help after what they complain of. The zero value is ready.
type Stderr struct{ head, tail []byte }

// Add takes a line.
func (s *Stderr) Add(line []byte) {
	if n := len(line); n > stderrPart {
		line = line[n-stderrPart:]
	}
	if s.tail == nil && len(s.head)+len(line) < stderrPart {
		s.head = append(append(s.head, line...), '\n')
		return
	}
	s.tail = append(append(s.tail, line...), '\n')
	if n := len(s.tail); n > 2*stderrPart {
		s.tail = bytes.Clone(s.tail[n-stderrPart:])
	}
}

// Text is what was kept, without control sequences.
func (s *Stderr) Text() string {
	tail := s.tail
	if n := len(tail); n > stderrPart {
		tail = tail[n-stderrPart:]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return plain(strings.ToValidUTF8(string(s.head)+string(tail), "\ufffd"))
}

var escapePattern = pattern.New(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b\n]*(?:\x1b\\)?|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f]`)

// plain takes control sequences out of text for people.
func plain(text string) string { return escapePattern.ReplaceAllString(text, "") }
