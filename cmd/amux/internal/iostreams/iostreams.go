// Package iostreams is what amux reads from and writes to: standard input,
// output and error, and what is known about the terminals behind them. It reads
// no environment itself.
package iostreams

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// IO is one process's streams.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	// InTTY, OutTTY and ErrTTY say which of them are terminals.
	InTTY, OutTTY, ErrTTY bool
	// Terminal is the one behind Out; nil if there is none.
	Terminal *os.File
	// InPiped says that In is a pipe, a socket or a regular file, which may hold input
	// for amux.
	InPiped bool
	// WaitIn waits until In can be read or has ended, and reports whether it can; nil:
	// always.
	WaitIn func(d time.Duration) bool
	// WaitTyped waits until a line was typed on the terminal behind In, and reports
	// whether one was; nil: In is not a terminal, or the system cannot tell.
	WaitTyped func(d time.Duration) bool
	// DiscardTyped drops what was typed on the terminal behind In and not read yet;
	// nil: In is not a terminal.
	DiscardTyped func()
	// Color says that stderr supports colours.
	Color bool
	// Raw makes the terminal behind In pass on keys as they are typed, until the
	// function it returns is called. Only terminals have it.
	Raw func() (restore func() error, err error)
	// Keys is Raw, but what the terminal does with output and with the keys of signals stays;
	// nil where that cannot be had, the cursor cannot be moved, or Out is a pipe.
	Keys func() (restore func() error, err error)
	// Size is that of the terminal behind Out, or else Err.
	Size func() (cols, rows int, err error)
	// ReadPassword reads a line that is not shown; nil where nobody types.
	ReadPassword func(prompt string) (string, error)
	// Width is that of the terminal in columns; 80 if there is none.
	Width int
}

// DefaultWidth is the width of output without a terminal.
const DefaultWidth = 80

// System returns the streams of this process. getenv is asked for NO_COLOR and
// TERM.
func System(getenv func(string) string) *IO {
	s := &IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Width:  DefaultWidth,
		Raw: func() (func() error, error) {
			state, err := term.MakeRaw(int(os.Stdin.Fd()))
			return func() error { return term.Restore(int(os.Stdin.Fd()), state) }, err
		},
		Size: func() (int, int, error) {
			if cols, rows, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
				return cols, rows, nil
			}
			return term.GetSize(int(os.Stderr.Fd()))
		},
	}
	if s.OutTTY {
		s.Terminal = os.Stdout
	}
	if info, err := os.Stdin.Stat(); err == nil {
		s.InPiped = info.Mode().IsRegular() || isPipe(info)
	}
	outPiped := false // perhaps to a program that writes to the same terminal, such as tee
	if info, err := os.Stdout.Stat(); err == nil {
		outPiped = isPipe(info)
	}
	s.WaitIn = func(d time.Duration) bool { return waitReadable(os.Stdin, d) }
	s.Color = s.ErrTTY && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && enableColor(os.Stderr)
	if s.InTTY {
		s.DiscardTyped = func() { discardTyped(os.Stdin) }
		if waitsForKeys {
			s.WaitTyped = s.WaitIn
		}
		if kind := getenv("TERM"); waitsForKeys && s.ErrTTY && !outPiped && kind != "" && kind != "dumb" {
			s.Keys = func() (func() error, error) { return passKeys(os.Stdin) }
		}
		s.ReadPassword = func(prompt string) (string, error) {
			_, _ = io.WriteString(os.Stderr, prompt)
			line, err := term.ReadPassword(int(os.Stdin.Fd()))
			_, _ = io.WriteString(os.Stderr, "\n")
			return string(line), err
		}
	}
	if s.ErrTTY {
		if width, _, err := term.GetSize(int(os.Stderr.Fd())); err == nil && width >= 20 {
			s.Width = width
		}
	}
	return s
}

func isPipe(info fs.FileInfo) bool { return info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 }

// mostTyped bounds the answer to a question, in bytes.
const mostTyped = 200

// Ask writes a question to stderr and returns the line that is typed then, without the
// blanks around it. It reads no byte more: another question may follow. What was typed
// before the question is dropped.
func (s *IO) Ask(question string) string {
	_, _ = io.WriteString(s.Err, question)
	if s.DiscardTyped != nil {
		s.DiscardTyped()
	}
	var text strings.Builder
	for b := make([]byte, 1); text.Len() < mostTyped; {
		n, err := s.In.Read(b)
		if n == 1 && b[0] != '\n' {
			text.WriteByte(b[0])
		}
		if n == 1 && b[0] == '\n' || err != nil {
			break
		}
	}
	return strings.TrimSpace(text.String())
}

// Test returns streams for tests, none of them a terminal, and the buffers that
// are written to.
func Test(in string) (s *IO, out, err *bytes.Buffer) {
	out, err = new(bytes.Buffer), new(bytes.Buffer)
	return &IO{In: bytes.NewBufferString(in), Out: out, Err: err, Width: DefaultWidth}, out, err
}
