package ndjson

import (
	"bytes"
	"io"
)

// LastLine is a writer of events that remembers whether the last one was run_end.
type LastLine struct {
	W    io.Writer
	line []byte // how the last line begins
	over bool   // that line is whole
	Err  error
}

var runEnd = []byte(`{"type":"run_end",`)

// Write writes events, in whatever pieces.
func (e *LastLine) Write(data []byte) (int, error) {
	n, err := e.W.Write(data)
	if err != nil {
		e.Err = err
	}
	for rest := data[:n]; len(rest) > 0; {
		if e.over {
			e.line, e.over = e.line[:0], false
		}
		line, after, whole := bytes.Cut(rest, []byte{'\n'})
		e.line = append(e.line, line[:min(len(line), len(runEnd)-min(len(e.line), len(runEnd)))]...)
		e.over, rest = whole, after
	}
	return n, err
}

// Ended reports whether the last event is run_end, and whole.
func (e *LastLine) Ended() bool { return e.over && bytes.Equal(e.line, runEnd) }
