package shim

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Answerer speaks for a terminal that nobody looks at.
type Answerer interface {
	// Answer takes the next piece of the program's output and returns what is to
	// be said to it, which is valid until the next call.
	Answer(output []byte) []byte
	Resize(cols, rows int)
}

const (
	// terminalRead is as much as the kernel gives at once.
	terminalRead = 4 << 10
	// reopenPause is how long is waited for a program that has closed its terminal
	// and may open it again.
	reopenPause = 200 * time.Millisecond
	// answerLimit is how much may wait for a program that asks and does not
	// listen; further questions get no answer.
	answerLimit = 64 << 10
)

// terminal is what a child on a pseudo-terminal has beside its queue for input.
type terminal struct {
	master *os.File // what the agent prints
	resize func(cols, rows int) error
	// hangUp, if not nil, ends the terminal, so that its output has an end.
	hangUp func()

	mu     sync.Mutex // guards answer, which output and resizes change
	answer Answerer
}

var errNoTerminal = &RemoteError{Code: code.Capability, Msg: "the run has no terminal"}

// endInput tells the agent that no more input will come.
func (c *child) endInput() {
	if c.terminal != nil {
		_ = c.in.write([]byte(endOfInput)) // an agent that has exited needs none
		return
	}
	c.in.close()
}

// hangUp ends the terminal of an agent that is gone with all its descendants, where
// it does not end by itself.
func (c *child) hangUp() {
	if c.terminal != nil && c.terminal.hangUp != nil {
		c.terminal.hangUp()
	}
}

// copyTerminal moves what the agent prints on its terminal into the journal, and
// answers what it asks. It ends when nobody has the terminal open any more, and
// the agent's leader, who could open it again, has exited.
func (c *child) copyTerminal() {
	defer c.outputs.Done()
	t := c.terminal
	defer t.master.Close()
	buf := make([]byte, journal.RecordHeader+terminalRead)
	for {
		exited := isClosed(c.exited)
		n, err := t.master.Read(buf[journal.RecordHeader:])
		if n > 0 {
			c.recorder.appendFramed(journal.KindStdout, buf[:journal.RecordHeader+n])
			c.active()
			c.answerTerminal(buf[journal.RecordHeader : journal.RecordHeader+n])
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.recorder.copyRest(t.master, journal.KindStdout, buf)
			return
		case exited || !errors.Is(err, syscall.EIO) && !errors.Is(err, io.EOF):
			return
		default:
			select {
			case <-c.exited:
			case <-time.After(reopenPause):
			}
		}
	}
}

// answerTerminal answers what is asked in a piece of output. The record comes first, as
// for all that is written.
func (c *child) answerTerminal(output []byte) {
	t := c.terminal
	t.mu.Lock()
	answer := t.answer.Answer(output)
	if len(answer) > 0 {
		answer = append([]byte(nil), answer...)
	}
	t.mu.Unlock()
	if len(answer) == 0 || c.in.waiting() > answerLimit {
		return
	}
	if c.recorder.append(journal.KindTerminal, journal.Encode(journal.Terminal{Kind: "answer", Data: answer})) {
		_ = c.in.write(answer) // an agent that has exited needs none
	}
}

// withTerminal is the running child, if it has a terminal.
func (s *supervisor) withTerminal() (*child, error) {
	s.mu.Lock()
	child := s.child
	s.mu.Unlock()
	switch {
	case child == nil || isClosed(child.exited):
		return nil, errNoChild
	case child.terminal == nil:
		return nil, errNoTerminal
	}
	return child, nil
}

// typed writes what somebody types. How much that was is recorded, and not what: it may
// be a password.
func (c *child) typed(data []byte) error {
	if !c.recorder.append(journal.KindTerminal, journal.Encode(journal.Terminal{Kind: "keys", Size: len(data)})) {
		return errDiskFull
	}
	return c.in.write(data)
}

// resize gives the terminal another size. The record comes first, so that who
// reads the journal knows the size that later output was made for.
func (c *child) resize(size Size) error {
	t := c.terminal
	t.mu.Lock()
	defer t.mu.Unlock()
	if !c.recorder.append(journal.KindTerminal, journal.Encode(journal.Terminal{Kind: "resize", Cols: size.Cols, Rows: size.Rows})) {
		return errDiskFull
	}
	t.answer.Resize(size.Cols, size.Rows)
	if err := t.resize(size.Cols, size.Rows); err != nil {
		return errNoChild // it was closed: nobody is there to see it
	}
	return nil
}
