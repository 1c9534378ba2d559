// Package line is the input line of a conversation: a person types below what the agent
// writes, with a history, several lines, pasted text, and a sign of life.
//
// The last rows of the terminal belong to it: output whose line has not ended, a preview, a
// status, and what is typed. Each time they are erased, whole lines of output are written,
// and the rows are drawn again below, in one write. So output scrolls away as that of any
// program, and nothing of a long conversation has to be kept.
//
// It is no program of bubbletea, which reads keys itself and hands them on later. What was
// typed before a question was on the screen must not answer it, so each piece that is read
// carries what was on the screen then; see package ask, which reads. Only the modes of the
// terminal change that are needed for it: Ctrl-C and Ctrl-Z remain signals.
package line

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/host"
)

// Options are how a line looks and what it remembers.
type Options struct {
	Color   bool
	Prompt  string   // where prompts are typed; empty: shown only when something is typed
	History *History // nil: none
	// Echo writes a prompt that was sent above the line. Commands and answers always are.
	Echo bool
}

// Line is an input line. Its methods may be called by several goroutines at once.
type Line struct {
	o    Options
	io   *iostreams.IO
	term io.Writer // what the line is drawn on
	// was are the streams that Write takes the place of.
	was struct{ out, err io.Writer }

	mu         sync.Mutex
	restore    func() error // nil: the terminal is not the line's
	cols, rows int

	prompts input  // what the person types to the agent
	answer  *input // a question is open: what is typed for it
	label   string // of the question
	asked   int    // questions shown so far
	ended   bool   // Ctrl-D
	keys    keyReader
	typed   time.Time // when the last key came
	typing  bool      // the question came while a prompt was being typed

	status  string
	partial []byte // output whose line has not ended
	preview string

	above []byte // whole lines that are not written yet
	up    int    // how many rows the cursor is below the first row of the line
	last  time.Time
	later bool // a draw is due
}

// Open takes the terminal behind in and stderr for an input line. What is written to
// io.Err, and to io.Out if that is a terminal, goes through the line until Close.
func Open(io *iostreams.IO, o Options) (*Line, error) {
	l := &Line{o: o, io: io, term: io.Err}
	l.was.out, l.was.err = io.Out, io.Err
	return l, l.Resume()
}

const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"

	pasteOn  = "\x1b[?2004h" // pasted text comes between marks
	pasteOff = "\x1b[?2004l"
	syncOn   = "\x1b[?2026h" // what follows is shown at once; others ignore it
	syncOff  = "\x1b[?2026l"
)

// Resume takes the terminal again after Suspend.
func (l *Line) Resume() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	restore, err := l.io.Keys()
	if err != nil {
		return err
	}
	l.restore, l.io.Err = restore, l
	if l.io.OutTTY {
		l.io.Out = l
	}
	l.measure()
	_, _ = io.WriteString(l.term, pasteOn) // a terminal that is gone is noticed by reading
	l.draw()
	return nil
}

// Suspend gives the terminal back as it was, for another program.
func (l *Line) Suspend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restore == nil {
		return
	}
	var b bytes.Buffer
	l.erase(&b)
	_, _ = fmt.Fprintf(l.term, "%s%s", b.Bytes(), pasteOff)
	_ = l.restore() // there is nowhere to report an error
	l.restore, l.io.Out, l.io.Err = nil, l.was.out, l.was.err
}

// Close gives the terminal back for good.
func (l *Line) Close() {
	l.mu.Lock()
	if len(l.partial) > 0 {
		l.above = append(append(l.above, l.partial...), '\n')
		l.partial = nil
	}
	l.ended = true
	l.mu.Unlock()
	l.Suspend()
}

// Terminal is what the line is drawn on, for what shows nothing: the bell.
func (l *Line) Terminal() io.Writer { return l.term }

// Write shows output above the line. A row that has not ended is part of the line, until
// it does.
func (l *Line) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restore == nil {
		return l.term.Write(p)
	}
	l.partial = append(l.partial, p...)
	if i := bytes.LastIndexByte(l.partial, '\n') + 1; i > 0 {
		l.above = append(l.above, l.partial[:i]...)
		l.partial = append(l.partial[:0], l.partial[i:]...)
	}
	l.drawSoon()
	return len(p), nil
}

// Preview shows text that will be written in another form.
func (l *Line) Preview(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.preview = text
	l.drawSoon()
}

// Status shows what the agent does; empty: nothing.
func (l *Line) Status(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text != l.status {
		l.status = text
		l.drawSoon()
	}
}

// Resized draws the line for another size of the terminal.
func (l *Line) Resized() (cols int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.measure()
	l.draw()
	return l.cols
}

func (l *Line) measure() {
	cols, rows, err := l.io.Size()
	if err != nil || cols < 2 || rows < 2 {
		cols, rows = 80, 24
	}
	l.cols, l.rows = cols, rows
}

// Question begins an answer. What was typed for the agent comes back after it.
func (l *Line) Question(label string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.typing = l.answer == nil && len(l.prompts.text) > 0 || l.answer != nil && l.typing
	l.answer, l.label = &input{}, label
	l.draw()
}

// Shown notes that a question is on the screen: what was read with a smaller number answers
// nothing.
func (l *Line) Shown(asked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = asked
	if l.answer != nil {
		l.answer = &input{}
	}
	l.draw()
}

// Answered ends the question.
func (l *Line) Answered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = nil
	l.draw()
}

// Clear removes what was typed for the agent, and reports whether there was any.
func (l *Line) Clear() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answer != nil || len(l.prompts.text) == 0 && l.prompts.search == nil {
		return false
	}
	l.prompts = input{}
	l.draw()
	return true
}

// Text is what Enter has ended.
type Text struct {
	Text   string
	Prompt bool // no question was on the screen
}

// pause is how long a person who was typing a prompt when a question came must pause: what
// comes sooner belongs to the prompt.
const pause = 500 * time.Millisecond

// Type takes what was typed while the question of that number was the last on the screen. It
// returns the texts that Enter has ended, and whether Ctrl-D ended the input.
func (l *Line) Type(typed []byte, asked int) (texts []Text, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.restore == nil {
		return nil, l.ended
	}
	for key := range l.keys.read(typed) {
		if key == "\n" && len(typed) > 1 {
			// Ctrl-J comes alone. This was typed before the keys were the line's, when the
			// terminal had made it of Enter, or by a program.
			key = "\r"
		}
		if l.answer != nil && asked != l.asked {
			if key == "\r" {
				texts = append(texts, Text{}) // the question refuses it
			}
			continue
		}
		if l.typing = l.typing && l.answer != nil && time.Since(l.typed) < pause; l.typing {
			l.typed = time.Now()
			if key != "\r" {
				l.prompts.take(key, nil)
			}
			continue
		}
		l.typed = time.Now()
		prompt := l.answer == nil
		if text, done := l.press(key); done {
			texts = append(texts, Text{text, prompt})
		}
		if l.ended {
			break
		}
	}
	if !l.keys.pasting { // a long text is drawn once
		l.draw()
	}
	return texts, l.ended
}

// Escaped reports whether Type waits for the rest of a key, which may be Esc alone.
func (l *Line) Escaped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.keys.rest) > 0 && !l.keys.pasting
}

// Escape says that no rest will come.
func (l *Line) Escape() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys.rest = nil
	l.press("\x1b")
	l.draw()
}

// field is what keys are for.
func (l *Line) field() *input {
	if l.answer != nil {
		return l.answer
	}
	return &l.prompts
}

// press handles a key, or pasted text.
func (l *Line) press(key string) (text string, done bool) {
	in := l.field()
	var history *History
	if l.answer == nil {
		history = l.o.History
	}
	switch in.take(key, history) {
	case enter:
		if in.long {
			l.above = fmt.Appendf(l.above, "amux: error: the text is longer than %d MiB, so it is not sent\n", host.MaxPrompt>>20)
			*in = input{}
			return "", false
		}
		text = in.String()
		l.echo(text)
		*in = input{}
		l.label = ""
		return text, true
	case endOfInput:
		l.ended = true
	case clearScreen:
		l.up = 0
		l.above = append([]byte("\x1b[H\x1b[2J"), l.above...)
	}
	return "", false
}

// echo writes what was typed above the line.
func (l *Line) echo(text string) {
	prompt, shown := l.prompt(), l.answer != nil || l.o.Echo || strings.HasPrefix(text, "/")
	if shown && (text != "" || l.answer != nil) {
		l.above = append(l.above, prompt+strings.ReplaceAll(visible(text), "\n", "\n  ")+"\n"...)
	}
}

func (l *Line) prompt() string {
	if l.answer != nil {
		return l.label
	}
	if l.o.Color {
		return bold + l.o.Prompt + reset
	}
	return l.o.Prompt
}

// soon is the shortest time between two draws of output.
const soon = 20 * time.Millisecond

// drawSoon draws now, or a little later if it was drawn just now. mu is held.
func (l *Line) drawSoon() {
	switch since := time.Since(l.last); {
	case since >= soon:
		l.draw()
	case !l.later:
		l.later = true
		time.AfterFunc(soon-since, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.later {
				l.draw()
			}
		})
	}
}

// erase removes the line from the screen and writes what belongs above it. A terminal that
// was made narrower may have wrapped rows: what is above them is not touched.
func (l *Line) erase(b *bytes.Buffer) {
	b.WriteByte('\r')
	if l.up > 0 {
		fmt.Fprintf(b, "\x1b[%dA", l.up)
	}
	b.WriteString("\x1b[J")
	b.Write(l.above)
	l.above, l.up = l.above[:0], 0
}

// draw draws the line. mu is held.
func (l *Line) draw() {
	l.later = false
	if l.restore == nil {
		return
	}
	l.last = time.Now()
	var b bytes.Buffer
	b.WriteString(syncOn)
	l.erase(&b)
	rows, row, col := l.layout()
	b.WriteString(strings.Join(rows, "\r\n"))
	b.WriteByte('\r')
	if below := len(rows) - 1 - row; below > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", below)
	}
	if col > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", col)
	}
	l.up = row
	b.WriteString(syncOff)
	_, _ = l.term.Write(b.Bytes())
}

// layout returns the rows of the line and where the cursor goes.
func (l *Line) layout() (rows []string, row, col int) {
	room := l.rows - 1
	status := l.status != "" && l.answer == nil && room > 1
	if status {
		room--
	}
	var typed []string
	if in := l.field(); !l.ended && (l.answer != nil || l.o.Prompt != "" || len(in.text) > 0 || in.search != nil) {
		most := room
		if l.answer == nil {
			most = max(1, room/2)
		}
		typed, row, col = in.layout(l.prompt(), l.cols, most)
	}
	for _, text := range []string{string(tail(l.partial)), string(tail([]byte(strings.TrimRight(l.preview, "\n"))))} {
		if text != "" {
			rows = append(rows, strings.Split(ansi.HardwrapWc(text, l.cols, true), "\n")...)
		}
	}
	rows = rows[max(0, len(rows)-max(0, room-len(typed))):]
	if status {
		text := ansi.TruncateWc(l.status, l.cols-1, "…")
		if l.o.Color {
			text = dim + text + reset
		}
		rows = append(rows, text)
	}
	if len(typed) == 0 {
		rows = append(rows, "")
		return rows, len(rows) - 1, 0
	}
	return append(rows, typed...), len(rows) + row, col
}

// tail is the part of a long text that may be on the screen.
func tail(text []byte) []byte {
	const most = 16 << 10
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
