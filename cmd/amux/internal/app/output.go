package app

import (
	"errors"
	"io"
	"io/fs"
	"sync"
	"syscall"

	"github.com/amux-dev/amux/pluginapi"
)

// output is stdout. It remembers the first error, so that no command that prints data
// has to check each line.
type output struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		o.mu.Lock()
		if o.err == nil {
			o.err = err
		}
		o.mu.Unlock()
	}
	return n, err
}

// failed reports whether an error is that of stdout.
func (o *output) failed(err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil && errors.Is(err, o.err)
}

// exitCode is the exit code of a command whose output was o. Data that could not be
// written is a failure. A reader that has seen enough, such as head, gets no error
// message; the code is that of SIGPIPE, as with other programs.
func (a *App) exitCode(code int, o *output) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	pipe := SignalCode(syscall.SIGPIPE)
	switch {
	case o.err == nil || code != 0 && code != pipe:
		return code
	case errors.Is(o.err, syscall.EPIPE) || errors.Is(o.err, io.ErrClosedPipe):
		return pipe
	}
	a.Print.Notef("error: write to stdout: %v", o.err)
	return pluginapi.CodeInternal.Info().Exit
}

// IgnoreClosed returns nil for the error of a stdout that nobody reads any more.
func IgnoreClosed(err error) error {
	if errors.Is(err, fs.ErrClosed) || isBrokenPipe(err) {
		return nil
	}
	return err
}
