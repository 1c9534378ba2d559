package shim

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// Terminals makes the pseudo-consoles that agents run on. The zero value makes
// none.
type Terminals struct {
	// Open makes one. An error that is errors.ErrUnsupported says that none is ever
	// to be had.
	Open func(cols, rows int) (Console, error)
	// Answerer makes what answers the questions that a program asks its terminal.
	Answerer func(cols, rows int) Answerer
}

// Console is a pseudo-console.
type Console interface {
	// Handle is what a process is started on.
	Handle() uintptr
	// Files are what is typed and what is shown. Reads and writes of them must not
	// block a thread; who has them closes them.
	Files() (input, output *os.File)
	Resize(cols, rows int) error
	// Close ends it, and every process on it; what it has shown can be read before
	// the end of the output.
	Close()
}

// endOfInput is what a console has in the place of an end of file.
const endOfInput = "\x1a\r"

// startTerminal starts the agent on a new pseudo-console.
func (s *supervisor) startTerminal(spawn Spawn) (*child, error) {
	if s.cfg.Terminals.Open == nil {
		return nil, &RemoteError{"PTY_NOT_AVAILABLE", "this shim makes no pseudo-terminals"}
	}
	cols, rows := spawn.Terminal.Cols, spawn.Terminal.Rows
	console, err := s.cfg.Terminals.Open(cols, rows)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, &RemoteError{"PTY_NOT_AVAILABLE", err.Error()}
	}
	if err != nil {
		return nil, err
	}
	input, output := console.Files()
	pid, process, err := s.tree.processes.Spawn(spawn.Program, append([]string{spawn.Program}, spawn.Args...),
		&syscall.ProcAttr{Dir: spawn.Cwd, Env: spawn.Env, Sys: shellLine(spawn)}, console.Handle())
	if err != nil {
		_ = input.Close()
		_ = output.Close() // nobody waits for what the console has to say
		console.Close()
		return nil, fmt.Errorf("start %s: %w", spawn.Program, err)
	}
	c := newChild(spawn, pid)
	c.files = []*os.File{output}
	c.terminal = &terminal{
		master: output, answer: s.cfg.Terminals.Answerer(cols, rows), resize: console.Resize,
		// It returns when all has been read, which is another's to do.
		hangUp: func() { go console.Close() },
	}
	c.in.file = input
	go c.await(windows.Handle(process))
	go c.in.copy()
	if len(spawn.Initial) > 0 {
		_ = c.in.write(spawn.Initial) // it is within the limit, which the plan's check knows
	}
	if spawn.Close {
		c.endInput()
	}
	return c, nil
}
