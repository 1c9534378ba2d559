package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// live is a run in the foreground.
type live struct {
	s        *session
	o        *runOptions
	spec     host.RunSpec
	run      Run
	renderer *render.Renderer
	asker    *asker

	sigs       <-chan os.Signal
	interrupts int
	caught     os.Signal // the one that amux ends by
	noReader   bool      // stdout is closed
	busy       bool      // a conversation's turn has not ended

	// Of a run whose events go to stdout as they are:
	unread  *pluginapi.Error // why not all of them could be read
	unended bool             // the last one is not run_end
}

// start starts the run and stays with it to its end.
func (s *session) start(h Host, spec host.RunSpec, o *runOptions) error {
	sigs, stop := s.app.Signals()
	defer stop()
	l := &live{s: s, o: o, spec: spec, sigs: sigs}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := l.launch(ctx, cancel, h); err != nil {
		if l.caught != nil {
			return exitError(signalCode(l.caught))
		}
		return err
	}
	for _, text := range s.warnings {
		s.warnf("%s", text)
	}
	if o.json {
		l.ndjson(ctx)
	} else {
		l.human(ctx)
	}
	result := l.run.Wait()
	if !spec.NoRecord {
		s.retain(h)
	}
	return l.end(result)
}

// launch waits for the start, which a signal gives up.
func (l *live) launch(ctx context.Context, cancel func(), h runner) error {
	type started struct {
		run Run
		err error
	}
	done := make(chan started, 1)
	go func() {
		run, err := h.Start(ctx, l.spec)
		done <- started{run, err}
	}()
	for {
		select {
		case sig := <-l.sigs:
			if isSuspend(sig) {
				suspend()
				continue
			}
			l.caught = sig
			cancel()
		case got := <-done:
			if got.err != nil {
				return got.err
			}
			l.run = got.run
			if l.s.app.Started != nil {
				l.s.app.Started()
			}
			if l.caught != nil {
				l.try("stop", l.run.Stop(context.Background()))
			}
			return nil
		}
	}
}

// ndjson copies the events to stdout as they are.
func (l *live) ndjson(ctx context.Context) {
	if l.o.input != "" {
		go l.readCommands() // ends with stdin, or with the process
	}
	done, out := make(chan error, 1), &lastLine{w: l.s.app.IO.Out}
	go func() { done <- l.run.CopyEvents(ctx, out, 1) }()
	for {
		select {
		case err := <-done:
			switch {
			case out.err != nil:
				l.readerGone()
			case err != nil: // the events cannot be read
				l.unread = pluginapi.AsError(err)
				l.try("stop", l.run.Stop(context.Background()))
			}
			l.unended = !out.ended()
			return
		case sig := <-l.sigs:
			l.signal(ctx, sig)
		}
	}
}

// human renders the events, and asks what the agent asks.
func (l *live) human(ctx context.Context) {
	io := l.s.app.IO
	l.renderer = render.New(render.Options{
		Out: io.Out, Err: io.Err, Color: io.Color, Width: io.Width, Terminal: io.ErrTTY,
		Live: io.OutTTY, Shared: io.OutTTY && io.ErrTTY, Quiet: l.o.quiet, Debug: l.s.debug,
	})
	can := io.InTTY && io.ErrTTY || l.o.interactive
	l.asker = &asker{l: l, can: can, ask: l.spec.Approve == host.ApproveAsk, elsewhere: !can && !l.spec.Unattended}
	if l.o.interactive {
		l.asker.prompt, l.asker.over = l.send, l.endOfInput
		l.asker.listen()
		if l.busy = l.spec.Prompt != ""; !l.busy {
			l.ready()
		}
	}
	events, quit := make(chan host.Event, 64), make(chan struct{})
	defer close(quit)
	go func() { // ends at the last event, or with human
		defer close(events)
		for event, err := range l.run.Events(1) {
			if err != nil {
				l.s.errf("error: %v", err)
				return
			}
			select {
			case events <- event:
			case <-quit:
				return
			}
		}
	}()
	for {
		select {
		case event, ok := <-events:
			if !ok {
				return
			}
			if event.Type == "approval_request" && l.s.denyWarning != "" && !l.o.quiet {
				l.s.warnf("%s", l.s.denyWarning)
				l.s.denyWarning = ""
			}
			l.asker.event(ctx, event)
			if l.turn(event); l.o.interactive && event.Type == "turn_end" {
				l.ready()
			}
			if l.renderer.Err() != nil && !l.noReader {
				l.readerGone()
			}
		case typed, ok := <-l.typed():
			l.asker.line(ctx, typed, ok)
		case sig := <-l.sigs:
			l.signal(ctx, sig)
		}
	}
}

// send makes a line the next prompt. What was interrupted before is forgotten.
func (l *live) send(ctx context.Context, text string) {
	l.interrupts, l.caught, l.busy = 0, nil, true
	l.renderer.Answered()
	l.try("send", l.run.Send(ctx, text))
}

// turn notes whether the agent is at a turn.
func (l *live) turn(e host.Event) {
	switch e.Type {
	case "user_message", "turn_start":
		l.busy = true
	case "turn_end", "error":
		l.busy = false
	}
}

// typed are the lines for a question, or for the agent. At a terminal somebody may
// want to say something while it works; what a pipe holds waits.
func (l *live) typed() <-chan line {
	if l.spec.Conversation && l.busy && l.asker.current == nil && !l.s.app.IO.InTTY {
		return nil
	}
	return l.asker.lines
}

// endOfInput lets the agent finish what it is at.
func (l *live) endOfInput(ctx context.Context) {
	if l.s.app.IO.InTTY {
		l.renderer.Note("ending; Ctrl-C stops it at once")
	}
	l.try("end", l.run.End(ctx))
}

// ready asks for the next prompt.
func (l *live) ready() {
	if l.s.app.IO.InTTY && l.s.app.IO.ErrTTY && !l.asker.ended && l.asker.current == nil {
		l.renderer.AskPrompt()
	}
}

// readerGone stops a run whose output nobody reads any more.
func (l *live) readerGone() {
	l.noReader = true
	l.try("stop", l.run.Stop(context.Background()))
}

// signal does what a signal means: Ctrl-C interrupts the turn, again it stops the
// run, once more it kills; others stop it. Ctrl-Z pauses the agent with amux.
func (l *live) signal(ctx context.Context, sig os.Signal) {
	switch {
	case isSuspend(sig):
		if err := l.run.Pause(ctx); err != nil {
			l.try("pause", err)
		}
		suspend() // until somebody says fg
		l.try("resume", l.run.Resume(ctx))
		return
	case sig == os.Interrupt:
		l.interrupts++
		l.caught = sig
		switch l.interrupts {
		case 1:
			if l.run.Interrupt(ctx) == nil {
				if l.s.app.IO.ErrTTY {
					l.note("interrupting; Ctrl-C again stops the run")
				}
				return
			}
			fallthrough // it cannot be interrupted
		case 2:
			l.try("stop", l.run.Stop(ctx))
		default:
			l.try("kill", l.run.Kill(ctx))
		}
	default:
		l.caught = sig
		l.try("stop", l.run.Stop(ctx))
	}
}

func (l *live) note(text string) {
	if l.renderer != nil {
		l.renderer.Note("amux: " + text)
		return
	}
	l.s.errf("%s", text)
}

// try says what went wrong with a command, unless the run has ended meanwhile.
func (l *live) try(what string, err error) {
	e := pluginapi.AsError(err)
	if e == nil || e.Code == pluginapi.CodeRunNotActive {
		return
	}
	l.note(fmt.Sprintf("error: %s: %s", what, e.Error()))
}

// end makes the exit code of the result, and says what went wrong.
func (l *live) end(result host.Result) error {
	if l.o.quiet && result.Text != "" {
		text := render.String(result.Text)
		if _, err := io.WriteString(l.s.app.IO.Out, ensureNewline(text)); err != nil {
			l.noReader = true
		}
	}
	if l.noReader {
		return exitError(signalCode(syscall.SIGPIPE))
	}
	if result.Err == nil && l.unread != nil {
		result.Err = l.unread
	}
	if l.unended && result.Err != nil {
		// The record could not take the last event: a full disk, for example.
		l.s.printError(result.RunID, result.Err)
	}
	if l.caught != nil && result.State != "completed" {
		return exitError(signalCode(l.caught))
	}
	if result.Err == nil {
		return nil
	}
	l.s.say(result.Err, result.RunID, l.spec.Agent)
	return exitError(result.Err.Code.Info().Exit)
}

// lastLine is a writer of events that knows whether the last one was run_end.
type lastLine struct {
	w    io.Writer
	line []byte // how the last line begins
	over bool   // that line is whole
	err  error
}

var runEnd = []byte(`{"type":"run_end",`)

func (e *lastLine) Write(data []byte) (int, error) {
	n, err := e.w.Write(data)
	if err != nil {
		e.err = err
	}
	for rest := data[:n]; len(rest) > 0; {
		if e.over {
			e.line, e.over = e.line[:0], false
		}
		line, after, whole := bytes.Cut(rest, []byte{'\n'})
		e.line = append(e.line, line[:min(len(line), len(runEnd)-min(len(e.line), len(runEnd)))]...)
		e.over, rest = whole, after
	}
	return n, err
}

// ended reports whether the last event is run_end, and whole.
func (e *lastLine) ended() bool { return e.over && bytes.Equal(e.line, runEnd) }

func ensureNewline(text string) string {
	if strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// signalCode is the exit code of a program that a signal ended.
func signalCode(sig os.Signal) int {
	if number, ok := sig.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return 130
}
