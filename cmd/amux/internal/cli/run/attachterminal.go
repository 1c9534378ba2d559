package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/cmd/amux/internal/screen"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/vt"
	"github.com/amux-dev/amux/pluginapi"
)

// attachment is a terminal that is attached to that of a run. The run's own terminal
// answers the program's queries, so they are filtered out here: the program would get
// two answers.
type attachment struct {
	process *app.Process
	print   *app.Printer
	run     app.Recorded
	writer  *writer
	out     io.Writer
	screen  *vt.Screen
	modes   *vt.Terminal // of what was written here
	filter  vt.Filter
	live    bool
}

// leaveSequence resets the modes that a program may have set on a terminal.
const leaveSequence = "\x1b[0m\x1b(B\x1b[r\x1b[?1l\x1b>\x1b[?6l\x1b[?7h\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l" +
	"\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?2004l\x1b[?2026l\x1b[?25h\x1b[0 q\x1b[>4m"

// attachTerminal returns when the detach key is typed, the run ends, or a signal comes.
func attachTerminal(o *AttachOptions, run app.Recorded, w *writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pieces := make(chan host.TerminalPiece)
	failed := make(chan error, 1)
	go func() { // ends with the run, or with ctx
		defer close(pieces)
		for p, err := range run.Terminal(ctx, true) {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					failed <- err
				}
				return
			}
			p.Output = bytes.Clone(p.Output)
			select {
			case pieces <- p:
			case <-ctx.Done():
				return
			}
		}
	}()
	ended := make(chan ending, 1)
	go func() { // ends with the run, which it keeps a host for, or with the process
		result, err := o.Runs.Wait(run)
		ended <- ending{result, err}
	}()
	// Wait for the first piece before this terminal is changed: there may be none.
	first, ok := <-pieces
	if !ok {
		select {
		case err := <-failed:
			return err
		default:
			return reportEnd(o.Print, run, <-ended)
		}
	}
	restore, err := o.Process.IO.Raw()
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeInternal, "prepare the terminal: %w", err)
	}
	a := &attachment{process: o.Process, print: o.Print, run: run, writer: w, out: o.Process.IO.Out}
	// A terminal that vanishes ends what is typed, and may send its signal after that: it must not end this process
	// before the right to type is given back.
	_, release := o.Process.Signals()
	detached, caught := a.stay(ctx, first, pieces, o.DetachKey)
	if !detached && caught == nil {
		release() // the end of the run may be waited for
	}
	a.leave()
	if err := restore(); err != nil {
		o.Print.Warnf("restore the terminal: %v", err)
	}
	cancel()
	switch {
	case caught != nil:
		return app.ExitError(app.SignalCode(caught))
	case detached:
		o.Print.Notef("left run %s, which goes on", render.ShortID(run.ID()))
		return nil
	}
	select {
	case err := <-failed:
		return err
	default:
	}
	return reportEnd(o.Print, run, <-ended)
}

// ending is how a run has ended.
type ending struct {
	result host.Result
	err    error
}

// reportEnd reports how the run ended; the exit code is that of amux run.
func reportEnd(p *app.Printer, run app.Recorded, end ending) error {
	switch {
	case end.err != nil:
		return end.err
	case end.result.Err == nil:
		p.Notef("run %s has ended: %s", render.ShortID(run.ID()), end.result.State)
		p.Changes(run)
		return nil
	}
	p.Changes(run)
	p.Error(end.result.Err, run.ID(), run.Info().Agent)
	return app.Failed(end.result)
}

// stay shows the output and passes on the keys.
func (a *attachment) stay(ctx context.Context, first host.TerminalPiece, pieces <-chan host.TerminalPiece, key detachKey) (detached bool, caught os.Signal) {
	signals, stop := a.process.Signals()
	defer stop()
	resized, stopResized := a.process.Resized()
	defer stopResized()
	typed := make(chan []byte)
	go func() { // ends with stdin, with ctx, or with the process
		defer close(typed)
		for {
			buf := make([]byte, 4096)
			n, err := a.process.IO.In.Read(buf)
			if n > 0 {
				select {
				case typed <- buf[:n]:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	a.take(ctx, first)
	for {
		select {
		case p, ok := <-pieces:
			if !ok {
				return false, nil
			}
			a.take(ctx, p)
		case keys, ok := <-typed:
			if !ok {
				return true, nil // the terminal is gone
			}
			before, _, found := bytes.Cut(keys, []byte{key.code()})
			if len(before) > 0 && a.writer.may() {
				a.fit(ctx)
				a.ignore(a.run.Keys(ctx, before))
			}
			if found {
				return true, nil
			}
		case <-resized:
			a.resize(ctx)
		case sig := <-signals:
			if !app.IsSuspend(sig) {
				return false, sig
			}
		}
	}
}

// take shows a piece, or keeps it until the past output is complete.
func (a *attachment) take(ctx context.Context, p host.TerminalPiece) {
	switch {
	case p.Current:
		a.live = true
		a.paint()
		a.resize(ctx)
		return
	case !a.live:
		a.screen = screen.Follow(a.screen, p)
		return
	case p.Opened: // a new terminal for another attempt
		a.screen = vt.NewScreen(p.Cols, p.Rows)
		a.leave()
		a.paint()
		a.resize(ctx)
	case p.Cols > 0:
		a.modes.Resize(p.Cols, p.Rows)
	}
	a.write(p.Output)
}

func (a *attachment) write(output []byte) {
	if len(output) == 0 {
		return
	}
	if a.modes != nil {
		a.modes.Answer(output)
	}
	_, _ = a.out.Write(a.filter.Append(nil, output)) // if the terminal is gone, reading keys ends too
}

// paint shows what is on the run's terminal.
func (a *attachment) paint() {
	cols, rows, err := a.process.IO.Size()
	if err != nil {
		cols, rows = 80, 24
	}
	a.modes = vt.New(cols, rows)
	var picture []byte
	if a.screen != nil {
		picture = a.screen.AppendPicture(nil, rows)
	}
	// The old screen goes into the terminal's scrollback.
	_, _ = fmt.Fprintf(a.out, "%s\x1b[%d;1H%s", leaveSequence, rows, bytes.Repeat([]byte{'\n'}, rows))
	a.screen = nil
	a.write(picture)
}

// resize gives the run's terminal the size of this one, so that the program draws its
// screen again.
func (a *attachment) resize(ctx context.Context) {
	if cols, rows, err := a.process.IO.Size(); err == nil && a.writer.had {
		a.ignore(a.run.Resize(ctx, cols, rows))
	}
}

// fit is resize if the run's terminal has another size, that of somebody who typed meanwhile: it
// is told once, and not before each key.
func (a *attachment) fit(ctx context.Context) {
	if a.modes == nil {
		return
	}
	hasCols, hasRows := a.modes.Size()
	if cols, rows, err := a.process.IO.Size(); err == nil && (cols != hasCols || rows != hasRows) {
		a.modes.Resize(cols, rows)
		a.resize(ctx)
	}
}

// leave restores the terminal's modes; its text stays.
func (a *attachment) leave() {
	text := leaveSequence
	if a.modes != nil && a.modes.Alternate() {
		text += "\x1b[?1049l"
	} else if a.modes != nil {
		_, y := a.modes.Cursor()
		text += fmt.Sprintf("\x1b[%d;1H\r\n", y+1)
	}
	_, _ = io.WriteString(a.out, text)
}

// ignore drops the error of a run that has just ended: its end is reported next.
func (a *attachment) ignore(err error) {
	if err != nil && !errors.Is(err, pluginapi.CodeRunNotActive) {
		a.print.Debugf("%v", err)
	}
}
