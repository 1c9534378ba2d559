package shim

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/amux-dev/amux/pluginapi/code"
)

// Terminals makes the pseudo-consoles that agents run on. The zero value makes
// none.
type Terminals struct {
	// Start starts a program on a new one, in the job of this process. An error that
	// is errors.ErrUnsupported says that this system has none.
	Start func(program string, argv []string, attr *syscall.ProcAttr, cols, rows int) (Console, error)
	// Answerer makes what answers the questions that a program asks its terminal.
	Answerer func(cols, rows int) Answerer
}

// Console is a program on a pseudo-console.
type Console interface {
	Pid() int
	// Wait returns the program's exit code when it has ended.
	Wait() (code uint32, err error)
	// Files are what is typed and what is shown. Reads and writes of them must not
	// block a thread; the caller closes them.
	Files() (input, output *os.File)
	Resize(cols, rows int) error
	// Close waits for the last output, ends it, and ends the console with every process
	// on it.
	Close()
}

// endOfInput is what a console has in the place of an end of file.
const endOfInput = "\x1a\r"

// startTerminal starts the agent on a new pseudo-console.
func (s *supervisor) startTerminal(spawn Spawn) (*child, error) {
	if s.cfg.Terminals.Start == nil {
		return nil, &RemoteError{Code: code.PTYNotAvailable, Msg: "this shim makes no pseudo-terminals"}
	}
	cols, rows := spawn.Terminal.Cols, spawn.Terminal.Rows
	console, err := s.cfg.Terminals.Start(spawn.Program, append([]string{spawn.Program}, spawn.Args...),
		&syscall.ProcAttr{Dir: spawn.Cwd, Env: spawn.Env, Sys: shellLine(spawn)}, cols, rows)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, &RemoteError{Code: code.PTYNotAvailable, Msg: err.Error()}
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spawn.Program, err)
	}
	restore := s.tree.processes.SpareConsole(console.Pid())
	input, output := console.Files()
	c := newChild(spawn, console.Pid())
	c.files = append(c.files, output)
	c.terminal = &terminal{
		master: output, answer: s.cfg.Terminals.Answerer(cols, rows), resize: console.Resize,
		hangUp: func() { // it returns when all has been read, which is another's to do
			go func() { console.Close(); restore() }()
		},
	}
	c.in.file = input
	go func() {
		c.status.ExitCode, _ = console.Wait()
		close(c.exited)
	}()
	go c.in.copy()
	if len(spawn.Initial) > 0 {
		_ = c.in.write(spawn.Initial) // it is within the limit, which the plan's check knows
	}
	if spawn.Close {
		c.endInput()
	}
	return c, nil
}
