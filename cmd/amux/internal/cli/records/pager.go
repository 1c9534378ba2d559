package records

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/internal/process"
)

// pager starts the user's pager in front of stdout. wait waits until it has ended.
func (o *DiffOptions) pager() (w io.WriteCloser, wait func() error, err error) {
	none := func() error { return nil }
	words := strings.Fields(o.Process.Getenv("PAGER"))
	env := o.Process.Env
	if len(words) == 0 {
		words = []string{"less"}
	}
	if o.NoPager || words[0] == "cat" {
		return nopCloser{o.Process.IO.Out}, none, nil
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return nopCloser{o.Process.IO.Out}, none, nil
	}
	if process.EnvValue(env, "LESS") == "" {
		env = append(env[:len(env):len(env)], "LESS=FRX") // go on when all fits; colours; keep the screen
	}
	cmd := exec.CommandContext(context.Background(), path, words[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, o.Process.IO.Out, o.Process.IO.Err
	if w, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	err = process.Starting(func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		return nopCloser{o.Process.IO.Out}, none, nil
	}
	_, stop := o.Process.Signals() // Ctrl-C is for the pager
	return w, func() error {
		defer stop()
		err := cmd.Wait()
		if _, ended := errors.AsType[*exec.ExitError](err); ended {
			return nil // as the user likes
		}
		return err
	}, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// coloured shows a patch on a terminal: without control sequences, with colours.
type coloured struct {
	w      io.WriteCloser
	color  bool
	closed func() // nobody reads any more
	line   []byte // that has not ended
	err    error
}

// mostLine bounds a line that is held until it ends.
const mostLine = 1 << 20

func (c *coloured) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n') + 1
		if i == 0 {
			i = len(rest)
		}
		c.line = append(c.line, rest[:i]...)
		rest = rest[i:]
		if c.line[len(c.line)-1] == '\n' || len(c.line) > mostLine {
			c.flush()
		}
	}
	return len(p), nil
}

func (c *coloured) flush() {
	if len(c.line) == 0 || c.err != nil {
		c.line = c.line[:0]
		return
	}
	text := render.PatchLine(string(c.line), c.color)
	c.line = c.line[:0]
	if _, c.err = io.WriteString(c.w, text); c.err != nil {
		c.closed()
	}
}

// Close shows what is left and closes what is written to.
func (c *coloured) Close() error {
	c.flush()
	err := c.w.Close()
	if c.err != nil {
		return nil
	}
	return err
}
