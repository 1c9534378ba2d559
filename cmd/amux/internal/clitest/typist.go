package clitest

import (
	"io"
	"strings"
	"sync"
)

// Typist sits at the terminal: it types its next line at every prompt that it
// reads on stderr, and leaves when it has no more.
type Typist struct {
	mu    sync.Mutex
	seen  strings.Builder
	lines []string
	w     *io.PipeWriter
}

func NewTypist(typed string) (*Typist, io.Reader) {
	r, w := io.Pipe()
	return &Typist{lines: strings.SplitAfter(typed, "\n"), w: w}, r
}

func (p *Typist) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen.Write(data)
	if text := string(data); strings.HasSuffix(text, "[?]: ") || strings.HasSuffix(text, "> ") {
		line := p.lines[0]
		if line == "" {
			p.w.Close()
			return len(data), nil
		}
		p.lines = p.lines[1:]
		go p.w.Write([]byte(line))
	}
	return len(data), nil
}

func (p *Typist) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}
