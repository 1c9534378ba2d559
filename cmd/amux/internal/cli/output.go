package cli

import (
	"errors"
	"io"
	"sync"
	"syscall"

	"github.com/amux-dev/amux/pluginapi"
)

// output is stdout. It remembers what went wrong, so that no command that prints data
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

// exit is the exit code of a command, given what became of its output: data that was
// not written is no success. A reader that has seen enough, as head has, is no error to
// speak of; the code is that of SIGPIPE, as with other programs.
func (s *session) exit(code int, o *output) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	pipe := signalCode(syscall.SIGPIPE)
	switch {
	case o.err == nil || code != 0 && code != pipe:
		return code
	case errors.Is(o.err, syscall.EPIPE) || errors.Is(o.err, io.ErrClosedPipe):
		return pipe
	}
	s.errf("error: write to stdout: %v", o.err)
	return pluginapi.CodeInternal.Info().Exit
}
