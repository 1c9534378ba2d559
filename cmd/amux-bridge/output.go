package main

import (
	"bufio"
	"bytes"
	"io"
	"sync"
)

// output is stdout: whole lines, from whoever has one.
type output struct {
	mu     sync.Mutex
	w      *bufio.Writer
	failed func(error)
}

func newOutput(w io.Writer, failed func(error)) *output {
	return &output{w: bufio.NewWriterSize(w, 64<<10), failed: failed}
}

// begin begins a line, which is nobody else's until end.
func (o *output) begin(text string) {
	o.mu.Lock()
	o.w.WriteString(text)
}

// text goes on with the line; a line ending in it becomes a space, which it also is
// in JSON.
func (o *output) text(text []byte) {
	if !bytes.ContainsAny(text, "\r\n") {
		o.w.Write(text)
		return
	}
	for _, c := range text {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		o.w.WriteByte(c)
	}
}

// end ends the line. It is seen by others after flush.
func (o *output) end() {
	if err := o.w.WriteByte('\n'); err != nil {
		o.failed(err)
	}
	o.mu.Unlock()
}

func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.w.Flush(); err != nil {
		o.failed(err)
	}
}

// line prints a whole line at once.
func (o *output) line(text []byte) {
	o.begin("")
	o.text(text)
	o.end()
	o.flush()
}
