//go:build unix

package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/host/journal"
)

// Terminals makes the pseudo-terminals that agents run on. The zero value makes
// none.
type Terminals struct {
	// Open makes one. Reads of the master must not block a thread. An error that
	// is errors.ErrUnsupported says that none is ever to be had.
	Open   func(cols, rows int) (master, slave *os.File, err error)
	Resize func(master *os.File, cols, rows int) error
	// Answerer makes what answers the questions that a program asks its terminal.
	Answerer func(cols, rows int) Answerer
}

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
	// endOfInput is what a terminal has in the place of an end of file. The first
	// of them may have to end a line that was begun.
	endOfInput = "\x04\x04"
)

// terminal is what a child on a pseudo-terminal has beside its queue for input.
type terminal struct {
	master *os.File

	mu     sync.Mutex // guards answer, which output and resizes change
	answer Answerer
}

var errNoTerminal = &RemoteError{"CAPABILITY_ERROR", "the run has no terminal"}

// startTerminal forks and execs the agent on a new pseudo-terminal, which is the
// controlling one of its session.
func (k *keeper) startTerminal(spawn Spawn) (_ *child, retErr error) {
	if k.cfg.Terminals.Open == nil {
		return nil, &RemoteError{"PTY_NOT_AVAILABLE", "this keeper makes no pseudo-terminals"}
	}
	cols, rows := spawn.Terminal.Cols, spawn.Terminal.Rows
	master, slave, err := k.cfg.Terminals.Open(cols, rows)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, &RemoteError{"PTY_NOT_AVAILABLE", err.Error()}
	}
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	defer func() {
		if retErr != nil {
			_ = master.Close()
		}
	}()
	// Input has a descriptor of its own: it may end before the output does.
	input, err := duplicate(master)
	if err != nil {
		return nil, err
	}
	fd := slave.Fd()
	pid, err := syscall.ForkExec(spawn.Program, append([]string{spawn.Program}, spawn.Args...), &syscall.ProcAttr{
		Dir: spawn.Cwd, Env: spawn.Env, Files: []uintptr{fd, fd, fd}, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: true},
	})
	if err != nil {
		_ = input.Close()
		return nil, fmt.Errorf("start %s: %w", spawn.Program, err)
	}
	c := newChild(spawn, pid)
	c.files = []*os.File{master}
	c.terminal = &terminal{master: master, answer: k.cfg.Terminals.Answerer(cols, rows)}
	c.in.file = input
	go c.in.copy()
	if len(spawn.Initial) > 0 {
		_ = c.in.write(spawn.Initial) // it is within the limit, which the plan's check knows
	}
	if spawn.Close {
		c.endInput()
	}
	return c, nil
}

// duplicate makes another descriptor of the same file.
func duplicate(f *os.File) (*os.File, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	dup, dupErr := -1, error(nil)
	err = conn.Control(func(fd uintptr) { dup, dupErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, dupErr); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(dup), f.Name()), nil
}

// endInput tells the agent that no more input will come.
func (c *child) endInput() {
	if c.terminal != nil {
		_ = c.in.write([]byte(endOfInput)) // an agent that has exited needs none
		return
	}
	c.in.close()
}

// copyTerminal moves what the agent prints on its terminal into the journal, and
// answers what it asks. It ends when nobody has the terminal open any more, and
// the agent's leader, who could open it again, has exited.
func (k *keeper) copyTerminal(child *child) {
	defer child.outputs.Done()
	t := child.terminal
	defer t.master.Close()
	buf := make([]byte, journal.RecordHeader+terminalRead)
	for {
		exited := isClosed(child.exited)
		n, err := t.master.Read(buf[journal.RecordHeader:])
		if n > 0 {
			k.appendFramed(journal.KindStdout, buf[:journal.RecordHeader+n])
			k.active()
			k.answerTerminal(child, buf[journal.RecordHeader:journal.RecordHeader+n])
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			k.copyRest(t.master, journal.KindStdout, buf)
			return
		case exited || !errors.Is(err, syscall.EIO) && !errors.Is(err, io.EOF):
			return
		default:
			select {
			case <-child.exited:
			case <-time.After(reopenPause):
			}
		}
	}
}

// answerTerminal answers what is asked in a piece of output. The record comes first, as
// for all that is written.
func (k *keeper) answerTerminal(child *child, output []byte) {
	t := child.terminal
	t.mu.Lock()
	answer := t.answer.Answer(output)
	if len(answer) > 0 {
		answer = append([]byte(nil), answer...)
	}
	t.mu.Unlock()
	if len(answer) == 0 || child.in.waiting() > answerLimit {
		return
	}
	if k.append(journal.KindTerminal, journal.Encode(journal.Terminal{Kind: "answer", Data: answer})) {
		_ = child.in.write(answer) // an agent that has exited needs none
	}
}

// withTerminal is the running child, if it has a terminal.
func (k *keeper) withTerminal() (*child, error) {
	k.mu.Lock()
	child := k.child
	k.mu.Unlock()
	switch {
	case child == nil || isClosed(child.exited):
		return nil, errNoChild
	case child.terminal == nil:
		return nil, errNoTerminal
	}
	return child, nil
}

// keys types. How much was typed is recorded, and not what: it may be a password.
func (k *keeper) keys(data []byte) error {
	child, err := k.withTerminal()
	if err != nil {
		return err
	}
	if !k.append(journal.KindTerminal, journal.Encode(journal.Terminal{Kind: "keys", Size: len(data)})) {
		return errDiskFull
	}
	return child.in.write(data)
}

// resize gives the terminal another size. The record comes first, so that who
// reads the journal knows the size that later output was made for.
func (k *keeper) resize(size Size) error {
	if size.Cols < 1 || size.Rows < 1 || size.Cols > maxSize || size.Rows > maxSize {
		return &RemoteError{"VALIDATION_ERROR", fmt.Sprintf("a terminal cannot have %d columns and %d rows", size.Cols, size.Rows)}
	}
	child, err := k.withTerminal()
	if err != nil {
		return err
	}
	t := child.terminal
	t.mu.Lock()
	defer t.mu.Unlock()
	if !k.append(journal.KindTerminal, journal.Encode(journal.Terminal{Kind: "resize", Cols: size.Cols, Rows: size.Rows})) {
		return errDiskFull
	}
	t.answer.Resize(size.Cols, size.Rows)
	if err := k.cfg.Terminals.Resize(t.master, size.Cols, size.Rows); err != nil {
		return errNoChild // it was closed: nobody is there to see it
	}
	return nil
}
