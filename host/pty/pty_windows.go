package pty

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/internal/sys/namedpipe"
)

// limited says that ENXIO means that all are in use.
const limited = false

// Console is a pseudo-console of Windows.
type Console struct {
	input, output *os.File
	once          sync.Once

	mu     sync.Mutex
	handle windows.Handle // 0 when it is closed
}

// OpenConsole makes a pseudo-console of that many columns and rows. An error that is
// errors.ErrUnsupported says that this system has none to give: it is older than
// Windows 10 1809.
func OpenConsole(cols, rows int) (_ *Console, retErr error) {
	if err := checkSize(cols, rows); err != nil {
		return nil, err
	}
	if err := windows.NewLazySystemDLL("kernel32.dll").NewProc("CreatePseudoConsole").Find(); err != nil {
		return nil, errNone{errors.ErrUnsupported}
	}
	c := &Console{}
	var theirs [2]windows.Handle
	defer func() {
		for _, h := range theirs { // the console has its own
			if h != 0 {
				_ = windows.CloseHandle(h)
			}
		}
		if retErr != nil {
			for _, f := range []*os.File{c.input, c.output} {
				if f != nil {
					_ = f.Close()
				}
			}
		}
	}()
	var err error
	if c.input, theirs[0], err = namedpipe.Pair(namedpipe.Out); err != nil {
		return nil, err
	}
	if c.output, theirs[1], err = namedpipe.Pair(namedpipe.In); err != nil {
		return nil, err
	}
	if err := windows.CreatePseudoConsole(size(cols, rows), theirs[0], theirs[1], 0, &c.handle); err != nil {
		return nil, fmt.Errorf("make a pseudo-console: %w", err)
	}
	return c, nil
}

func size(cols, rows int) windows.Coord { return windows.Coord{X: int16(cols), Y: int16(rows)} }

// Handle is what a process is started on.
func (c *Console) Handle() uintptr {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uintptr(c.handle)
}

// Files are what is typed and what is shown; who has them closes them.
func (c *Console) Files() (input, output *os.File) { return c.input, c.output }

// Resize tells the console, and with it the program, its new size.
func (c *Console) Resize(cols, rows int) error {
	if err := checkSize(cols, rows); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handle == 0 {
		return os.ErrClosed
	}
	return windows.ResizePseudoConsole(c.handle, size(cols, rows))
}

// Close ends the console, and every process on it. It may wait until what was shown
// has been read.
func (c *Console) Close() {
	c.once.Do(func() {
		c.mu.Lock()
		h := c.handle
		c.handle = 0
		c.mu.Unlock()
		windows.ClosePseudoConsole(h)
	})
}
