package pty

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/UserExistsError/conpty"

	"github.com/amux-dev/amux/internal/sys/namedpipe"
)

// limited says that ENXIO means that all are in use.
const limited = false

// quietTime is how long a console whose processes are gone must print nothing before
// it is closed. It paints many times in that time.
const quietTime = 200 * time.Millisecond

// Console is a program on a pseudo-console of Windows. Start makes one.
type Console struct {
	console       *conpty.ConPty
	input, output *os.File // the caller's ends
	typed, shown  *os.File // the ends of the goroutines here

	typing sync.Mutex // held while the console's input is written

	mu      sync.Mutex
	closed  bool
	waiting time.Time // since when the console has printed nothing; zero while something is passed on
	once    sync.Once
}

// Start starts program, an absolute path, on a new pseudo-console of that many columns
// and rows. Of attr it uses Dir, Env and, instead of argv, Sys.CmdLine. The program is
// in the jobs of this process from its first instruction and inherits no handle. An
// error that is errors.ErrUnsupported says that this system has no pseudo-consoles: it
// is older than Windows 10 1809. The caller must read the output, and must Close the
// console when the program and all its descendants have ended.
func Start(program string, argv []string, attr *syscall.ProcAttr, cols, rows int) (_ *Console, retErr error) {
	if err := checkSize(cols, rows); err != nil {
		return nil, err
	}
	if !conpty.IsConPtyAvailable() {
		return nil, errNone{errors.ErrUnsupported}
	}
	line, err := commandLine(program, argv, attr)
	if err != nil {
		return nil, err
	}
	c := &Console{}
	defer func() {
		if retErr != nil {
			for _, f := range []*os.File{c.input, c.output, c.typed, c.shown} {
				if f != nil {
					_ = f.Close()
				}
			}
		}
	}()
	if c.input, c.typed, err = pipe(namedpipe.Out); err != nil {
		return nil, err
	}
	if c.output, c.shown, err = pipe(namedpipe.In); err != nil {
		return nil, err
	}
	// A nil environment would be this process's own.
	env := append([]string{}, attr.Env...)
	c.console, err = conpty.Start(line, conpty.ConPtyDimensions(cols, rows), conpty.ConPtyWorkDir(attr.Dir), conpty.ConPtyEnv(env))
	if err != nil {
		return nil, err
	}
	c.waiting = time.Now()
	go c.copyInput()
	go c.copyOutput()
	return c, nil
}

// commandLine is what the library takes: the system finds the program at its beginning.
func commandLine(program string, argv []string, attr *syscall.ProcAttr) (string, error) {
	if !filepath.IsAbs(program) || strings.Contains(program, `"`) {
		return "", fmt.Errorf("invalid program %q: expected an absolute path", program)
	}
	for _, variable := range attr.Env {
		if strings.Contains(variable, "\x00") {
			return "", errors.New("a variable has a NUL byte")
		}
	}
	line := `"` + program + `"` // with quotes the system does not search for it
	if attr.Sys != nil && attr.Sys.CmdLine != "" {
		rest, ok := strings.CutPrefix(attr.Sys.CmdLine, syscall.EscapeArg(program))
		if !ok {
			return "", fmt.Errorf("the command line does not begin with %q", program)
		}
		return line + rest, nil
	}
	for _, arg := range argv[min(1, len(argv)):] {
		line += " " + syscall.EscapeArg(arg)
	}
	return line, nil
}

// pipe makes a pipe between the caller, whose end waits in the runtime's poller, and
// the goroutines here: the library's reads and writes hold a thread each and cannot be
// ended.
func pipe(way namedpipe.Direction) (ours, theirs *os.File, err error) {
	ours, handle, err := namedpipe.Pair(way)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	return ours, os.NewFile(uintptr(handle), "console"), nil
}

// copyInput types what the caller writes, until the caller closes its end or the
// console is closed.
func (c *Console) copyInput() {
	defer c.typed.Close()
	buf := make([]byte, 4<<10)
	for {
		n, err := c.typed.Read(buf)
		if n > 0 && !c.write(buf[:n]) || err != nil {
			return
		}
	}
}

func (c *Console) write(data []byte) bool {
	c.typing.Lock()
	defer c.typing.Unlock()
	for len(data) > 0 {
		if c.isClosed() {
			return false
		}
		n, err := c.console.Write(data)
		if err != nil {
			return false
		}
		data = data[n:]
	}
	return true
}

// copyOutput passes on what the console prints, and drops it when the caller has closed
// its end: a console that nobody reads would block. It ends when the console is closed.
func (c *Console) copyOutput() {
	defer c.shown.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := c.console.Read(buf)
		if n > 0 && c.reads(time.Time{}) {
			_, _ = c.shown.Write(buf[:n])
		}
		if !c.reads(time.Now()) || err != nil {
			return
		}
	}
}

// reads notes since when nothing was printed, and reports whether the console may be
// read: once it is closed its handles may be something else's.
func (c *Console) reads(since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = since
	return !c.closed
}

func (c *Console) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Pid is the program's.
func (c *Console) Pid() int { return c.console.Pid() }

// Wait returns the program's exit code when it has ended. It holds a thread. It must
// not be called after Close.
func (c *Console) Wait() (code uint32, err error) { return c.console.Wait(context.Background()) }

// Files are what is typed and what is shown. Reads and writes of them hold no thread
// each and can have deadlines. The caller closes both.
func (c *Console) Files() (input, output *os.File) { return c.input, c.output }

// Resize tells the console, and with it the program, its new size.
func (c *Console) Resize(cols, rows int) error {
	if err := checkSize(cols, rows); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return os.ErrClosed
	}
	return c.console.Resize(cols, rows)
}

// Close waits until the console prints nothing any more, ends the output, and then
// closes the console, which ends every process on it. A process that goes on printing
// keeps it waiting. The library closes the console together with its pipes, so what the
// console prints while it closes is lost.
func (c *Console) Close() {
	c.once.Do(func() {
		for !c.quiet() {
			time.Sleep(quietTime / 10)
		}
		_ = c.shown.Close()
		// No call may begin on a handle that was closed and may be something else's
		// now. One that the console has held up for this long has begun long ago.
		for range 10 {
			if c.typing.TryLock() {
				defer c.typing.Unlock()
				break
			}
			time.Sleep(quietTime / 10)
		}
		_ = c.console.Close()
	})
}

// quiet reports whether nothing was printed for quietTime. If so the console counts as
// closed from then on.
func (c *Console) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = !c.waiting.IsZero() && time.Since(c.waiting) >= quietTime
	return c.closed
}
