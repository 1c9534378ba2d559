package run

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/ask"
	"github.com/amux-dev/amux/cmd/amux/internal/ndjson"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// live is a run in the foreground.
type live struct {
	process  *app.Process
	print    *app.Printer
	mode     Mode
	spec     host.RunSpec
	commands *commands // of --input ndjson
	run      app.Run
	renderer *render.Renderer
	asker    *asker
	talk     talk

	config      string // the configuration folder
	denyWarning string // see request
	notify      settings.Notify
	sigs        <-chan os.Signal
	interrupts  int
	caught      os.Signal // the signal that ends amux
	noReader    bool      // stdout is closed
	busy        bool      // a prompt was sent, and its turn has not ended
	inTurn      bool      // the agent has begun a turn

	// If the events go to stdout as they are:
	unread  *pluginapi.Error // why they could not all be read
	unended bool             // the last one is not run_end
}

// foreground starts the run and stays with it until it ends.
func (r *request) foreground(h app.Host) error {
	sigs, stop := r.Process.Signals()
	defer stop()
	l := &live{process: r.Process, print: r.Print, mode: r.Mode, spec: r.spec, commands: r.commands, denyWarning: r.denyWarning, sigs: sigs}
	var err error
	if l.config, err = r.Config.Dir(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := l.launch(ctx, cancel, h); err != nil {
		if l.caught != nil {
			return app.ExitError(app.SignalCode(l.caught))
		}
		return err
	}
	r.export(l.run)
	r.printWarnings()
	r.sayWorktree(l.run)
	l.notify = r.settings.Notify
	watching, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	notified := r.watch(watching, l.run, r.Process.Attended() && !r.JSON)
	if r.JSON {
		l.ndjson(ctx)
	} else {
		l.human(ctx, h)
	}
	result, _ := l.run.Wait(context.Background())
	awaitHooks(notified, giveUp, l.sigs)
	l.changes(h)
	r.worktreeWays(l.run)
	if !r.spec.NoRecord {
		r.Runs.Retain(h, app.RetainTime)
	}
	return l.end(result)
}

// changes says how much the run changed, and how to see it.
func (l *live) changes(h app.Records) {
	if !l.spec.Changes || l.spec.NoRecord || l.mode.JSON || l.mode.Quiet {
		return
	}
	run, err := h.Open(context.Background(), l.run.ID())
	if err != nil {
		return // it was removed
	}
	l.print.Changes(run)
}

// launch starts the run. A signal cancels the start.
func (l *live) launch(ctx context.Context, cancel func(), h app.Starter) error {
	type started struct {
		run app.Run
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
			if app.IsSuspend(sig) {
				app.Suspend()
				continue
			}
			l.caught = sig
			cancel()
		case got := <-done:
			if got.err != nil {
				return got.err
			}
			l.run = got.run
			if l.process.Started != nil {
				l.process.Started()
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
	if l.mode.Input != "" {
		go l.readCommands() // ends with stdin, or with the process
	}
	done, out := make(chan error, 1), &ndjson.LastLine{W: ndjson.AtOnce(l.process.IO.Out)}
	go func() { done <- l.run.CopyEvents(ctx, out, 1) }()
	for {
		select {
		case err := <-done:
			switch {
			case out.Err != nil:
				l.readerGone()
			case err != nil: // the events cannot be read
				l.unread = pluginapi.AsError(err)
				l.try("stop", l.run.Stop(context.Background()))
			}
			l.unended = !out.Ended()
			return
		case sig := <-l.sigs:
			l.signal(ctx, sig)
		}
	}
}

// human renders the events, and asks the user what the agent asks.
func (l *live) human(ctx context.Context, h app.Records) {
	if l.mode.Interactive {
		l.sit(talkOptions{config: l.config, keep: !l.spec.NoRecord, prompts: true, echo: true, changes: func(ctx context.Context) (*host.Changes, error) {
			run, err := h.Open(ctx, l.run.ID())
			if err != nil {
				return nil, err
			}
			return run.Changes(), nil
		}})
		defer l.talk.close()
	}
	options := l.print.RenderOptions()
	options.Terminal, options.Quiet = l.process.IO.ErrTTY, l.mode.Quiet
	l.talk.render(&options, l.mode.Plain)
	l.renderer = render.New(options)
	can := l.process.Attended() || l.mode.Interactive
	l.asker = &asker{l: l, borrow: l.borrow, can: can, elsewhere: !can && !l.spec.Unattended}
	if l.mode.Interactive {
		l.asker.prompt, l.asker.over = l.send, l.endOfInput
		l.asker.listen()
		if l.busy = l.spec.Prompt != ""; !l.busy {
			l.ready()
		}
		l.talk.work(l.busy)
	}
	events, quit := make(chan host.Event, 64), make(chan struct{})
	defer close(quit)
	go func() { // ends at the last event, or with human
		defer close(events)
		for event, err := range l.run.Events(context.Background(), 1) {
			if err != nil {
				l.print.Notef("error: %v", err)
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
			if event.Type == code.EventApprovalRequest && l.denyWarning != "" && !l.mode.Quiet {
				l.print.Warnf("%s", l.denyWarning)
				l.denyWarning = ""
			}
			l.asker.event(ctx, event)
			if l.turn(event); l.mode.Interactive && event.Type == code.EventTurnEnd {
				l.ready()
			}
			l.talk.event(event)
			if l.renderer.Err() != nil && !l.noReader {
				l.readerGone()
			}
		case typed, ok := <-l.typed():
			l.asker.line(ctx, typed, ok)
		case <-l.talk.tick():
			l.talk.alive()
		case <-l.talk.resized:
			l.talk.resize()
		case sig := <-l.sigs:
			l.signal(ctx, sig)
		}
	}
}

// send makes a line the next prompt, and forgets earlier interrupts.
func (l *live) send(ctx context.Context, text string) {
	l.renderer.Answered()
	if text = l.talk.prompt(ctx, text); text == "" {
		if !l.busy {
			l.ready()
		}
		return
	}
	if l.busy && l.talk.line != nil {
		l.note("sent while the turn goes on")
	}
	l.interrupts, l.caught, l.busy = 0, nil, true
	l.talk.work(true)
	l.try("send", l.run.Send(ctx, text))
}

// turn notes whether the agent is in a turn. An error within a turn does not end it:
// turn_end does. Without a turn the error is about the prompt, for which none will begin.
func (l *live) turn(e host.Event) {
	switch e.Type {
	case code.EventUserMessage:
		l.busy = true
	case code.EventTurnStart:
		l.busy, l.inTurn = true, true
	case code.EventTurnEnd, code.EventRunEnd:
		l.busy, l.inTurn = false, false
	case code.EventError:
		l.busy = l.inTurn
	}
}

// typed are the lines for a question, or for the agent. At a terminal people may type
// while the agent works; the lines of a pipe wait.
func (l *live) typed() <-chan ask.Line {
	if l.spec.Conversation && l.busy && l.asker.dialog.Open() == "" && !l.process.IO.InTTY {
		return nil
	}
	return l.asker.lines
}

// endOfInput lets the agent finish its work.
func (l *live) endOfInput(ctx context.Context) {
	if l.process.IO.InTTY {
		l.renderer.Note("ending; Ctrl-C stops the run at once")
	}
	l.try("end", l.run.End(ctx))
}

// ready asks for the next prompt.
func (l *live) ready() {
	if l.process.Attended() && !l.asker.ended && l.asker.dialog.Open() == "" {
		l.renderer.AskPrompt()
	}
}

// readerGone stops a run whose stdout nobody reads any more.
func (l *live) readerGone() {
	l.noReader = true
	l.try("stop", l.run.Stop(context.Background()))
}

// signal handles a signal: Ctrl-C interrupts the turn, a second one stops the run, a
// third one kills it; other signals stop the run. Ctrl-Z pauses the agent with amux.
func (l *live) signal(ctx context.Context, sig os.Signal) {
	switch {
	case app.IsSuspend(sig):
		if err := l.run.Pause(ctx); err != nil {
			l.try("pause", err)
		}
		l.talk.aside(app.Suspend) // until somebody says fg
		l.try("resume", l.run.Resume(ctx))
		return
	case sig == os.Interrupt && !l.busy && l.talk.line != nil && l.talk.line.Clear():
	case sig == os.Interrupt:
		l.interrupts++
		l.caught = sig
		switch l.interrupts {
		case 1:
			if l.run.Interrupt(ctx) == nil {
				if l.process.IO.ErrTTY {
					l.note("interrupting; press Ctrl-C again to stop the run")
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
	l.print.Notef("%s", text)
}

// try reports the error of a command, unless the run has ended meanwhile.
func (l *live) try(what string, err error) {
	e := pluginapi.AsError(err)
	if e == nil || e.Code == pluginapi.CodeRunNotActive {
		return
	}
	l.note(fmt.Sprintf("error: %s: %s", what, e.Error()))
}

// end reports what went wrong, and returns the exit code of the result.
func (l *live) end(result host.Result) error {
	if l.mode.Quiet && result.Text != "" {
		text := render.String(result.Text)
		if _, err := io.WriteString(l.process.IO.Out, render.WholeLine(text)); err != nil {
			l.noReader = true
		}
	}
	if l.noReader {
		return app.ExitError(app.SignalCode(syscall.SIGPIPE))
	}
	if result.Err == nil && l.unread != nil {
		result.Err = l.unread
	}
	if l.unended && result.Err != nil {
		// The record could not take the last event: a full disk, for example.
		ndjson.WriteError(l.process.IO.Out, result.RunID, result.Err)
	}
	if l.caught != nil && result.State != code.StateCompleted {
		return app.ExitError(app.SignalCode(l.caught))
	}
	if result.Err == nil {
		return nil
	}
	l.print.Error(result.Err, result.RunID, l.spec.Agent)
	return app.Failed(result)
}
