//go:build unix

package shim

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/pluginapi/code"
)

// Terminals makes the pseudo-terminals that agents run on. The zero value makes
// none.
type Terminals struct {
	// Open makes one. Reads of the master must not block a thread. An error that
	// is errors.ErrUnsupported says that this system has none.
	Open   func(cols, rows int) (master, slave *os.File, err error)
	Resize func(master *os.File, cols, rows int) error
	// Answerer makes what answers the questions that a program asks its terminal.
	Answerer func(cols, rows int) Answerer
}

// endOfInput is what a terminal has in the place of an end of file. The first
// of them may have to end a line that was begun.
const endOfInput = "\x04\x04"

// startTerminal forks and execs the agent on a new pseudo-terminal, which is the
// controlling one of its session.
func (s *supervisor) startTerminal(spawn Spawn) (_ *child, retErr error) {
	if s.cfg.Terminals.Open == nil {
		return nil, &RemoteError{Code: code.PTYNotAvailable, Msg: "this shim makes no pseudo-terminals"}
	}
	cols, rows := spawn.Terminal.Cols, spawn.Terminal.Rows
	master, slave, err := s.cfg.Terminals.Open(cols, rows)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, &RemoteError{Code: code.PTYNotAvailable, Msg: err.Error()}
	}
	if err != nil {
		return nil, &RemoteError{Code: code.Spawn, Msg: err.Error()} // ENOSPC is no full disk here
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
		return nil, err
	}
	c := newChild(spawn, pid)
	c.files = append(c.files, master)
	c.terminal = &terminal{master: master, answer: s.cfg.Terminals.Answerer(cols, rows)}
	c.terminal.resize = func(cols, rows int) error { return s.cfg.Terminals.Resize(master, cols, rows) }
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
