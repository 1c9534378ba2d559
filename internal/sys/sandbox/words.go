package sandbox

import (
	"github.com/amux-dev/amux/internal/sys/pattern"
	"strings"
	"sync"
	"unicode"
)

// Words keeps of a program's stderr what tells why it ended: the first line of a crash,
// the error above a stack, else its last line. The zero value is ready; it may be used concurrently.
type Words struct {
	mu    sync.Mutex
	line  []byte // that has not ended
	crash string
	error string // the last line that calls itself one
	last  string
}

// longest is how much of a line is kept.
const longest = 400

func (w *Words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range b {
		switch {
		case c == '\n':
			w.end()
		case len(w.line) < longest:
			w.line = append(w.line, c)
		}
	}
	return len(b), nil
}

func (w *Words) end() {
	line := readable(string(w.line))
	w.line = w.line[:0]
	switch {
	case line == "" || chatter.MatchString(line):
	case w.crash == "" && crash.MatchString(line):
		w.crash = line
	default:
		if complaint.MatchString(line) {
			w.error = line
		}
		w.last = line
	}
}

// Telling is the line that tells most, without control characters; "" if there is none.
func (w *Words) Telling() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.line) > 0 {
		w.end()
	}
	if w.crash != "" {
		return clip(w.crash)
	}
	if w.error != "" && stack.MatchString(w.last) {
		return clip(w.error)
	}
	return clip(w.last)
}

// Telling is that line of a whole text.
func Telling(stderr []byte) string {
	var w Words
	_, _ = w.Write(stderr)
	return w.Telling()
}

var (
	// crash begins the report of Go's runtime.
	crash = pattern.New(`^(panic:|fatal error:|runtime: (failed to create new OS thread|epollcreate failed|eventfd failed))`)
	// complaint is a line of Node.js or Java that says why, and stack the end of what
	// follows it.
	complaint = pattern.New(`^(Uncaught |Exception in thread "[^"]*" )?[\w.$]*(Error|Exception)\b[^:]{0,40}: \S`)
	stack     = pattern.New(`^(Node\.js v\d|at |\.\.\. \d+ more$)`)
	// chatter is what go-plugin logs by itself in a plugin that has no logger.
	chatter = pattern.New(`^\{"@level":"(trace|debug|info)"`)
)

// readable leaves out what a terminal would obey, or show in another order.
func readable(line string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == unicode.ReplacementChar, unicode.Is(unicode.C, r), r == '\u2028', r == '\u2029':
			return -1
		}
		return r
	}, line))
}

func clip(line string) string {
	if runes := []rune(line); len(runes) > 200 {
		return string(runes[:200]) + "…"
	}
	return line
}
