package run

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/ask"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// lineAttachment is a terminal or pipe that is attached to a run whose agent has no
// terminal. It shows the run as in the foreground; lines answer its questions or are
// prompts.
type lineAttachment struct {
	l      *live
	runs   *app.Runs
	run    app.Recorded
	writer *writer
	seen   uint64
	sigs   <-chan os.Signal
	caught os.Signal // while the pager had the terminal
}

// leaveLine is the line that leaves.
const leaveLine = "~."

// attachLines returns when the user leaves or the run ends. The exit code is then that of
// the run.
func attachLines(o *AttachOptions, run app.Recorded, w *writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	info := run.Info()
	config, err := o.Config.Dir()
	if err != nil {
		return err
	}
	a := &lineAttachment{runs: o.Runs, run: run, writer: w}
	a.l = &live{process: o.Process, print: o.Print, run: run}
	if set, err := o.Config.User(); err == nil { // else it has been reported
		a.l.notify = set.Notify
	}
	a.l.spec.Agent, a.l.spec.Conversation = info.Agent, info.Conversation
	a.l.sit(talkOptions{
		config: config, keep: !info.Spec.NoRecord, prompts: info.Conversation, watch: w.readOnly || info.End != nil,
		changes: func(context.Context) (*host.Changes, error) { return run.Changes(), nil },
	})
	defer a.l.talk.close()
	options := o.Print.RenderOptions()
	options.Terminal, options.Prompts = o.Process.IO.ErrTTY, true
	a.l.talk.render(&options, o.Plain)
	a.l.renderer = render.New(options)
	types := w.had
	a.l.asker = &asker{l: a.l, borrow: a.borrow, can: types, elsewhere: !types, prompt: a.prompt}
	if !w.readOnly {
		a.l.asker.listen()
	}
	return a.stay(ctx, info)
}

// stay shows the events and passes on what is typed.
func (a *lineAttachment) stay(ctx context.Context, info host.RunInfo) error {
	sigs, stop := a.l.process.Signals()
	defer stop()
	a.sigs = sigs
	events, failed := make(chan host.Event, 64), make(chan error, 1)
	go a.follow(ctx, events, failed)
	waiting := map[string]host.Event{} // asked before this terminal was attached
	var order []string
	if info.End == nil && a.l.process.IO.ErrTTY {
		a.l.note("attached; type ~. to leave, the run goes on")
		if !a.writer.had && !a.writer.readOnly {
			a.l.note("somebody else is typing; take over with amux attach --steal")
		}
	}
	caughtUp := info.Events == 0 && info.End == nil
	for {
		var lines <-chan ask.Line
		if caughtUp && (info.Conversation || a.l.process.IO.InTTY || a.l.asker.dialog.Open() != "" || !a.writer.had) {
			lines = a.l.typed()
		}
		select {
		case event, ok := <-events:
			if !ok {
				return a.end(<-failed)
			}
			if a.l.renderer.Err() != nil {
				return nil // its reader has seen enough
			}
			a.l.turn(event)
			if event.Seq > info.Events {
				a.l.asker.event(ctx, event)
				a.l.talk.event(event)
				continue
			}
			a.l.renderer.Event(event.Type, event.Raw)
			a.l.talk.event(event)
			if id, asks := interaction(event); asks {
				waiting[id] = event
				order = append(order, id)
			} else if id != "" {
				delete(waiting, id)
			}
			if event.Seq < info.Events || info.End != nil {
				continue
			}
			caughtUp = true
			for _, id := range order {
				if event, open := waiting[id]; open {
					delete(waiting, id)
					a.l.asker.askAgain(ctx, event)
				}
			}
		case typed, ok := <-lines:
			if !ok && !a.l.process.IO.InTTY {
				a.look(ctx) // the pipe has ended
				continue
			}
			if !ok || typed.Text == leaveLine {
				return a.left()
			}
			if a.mayType(ctx) {
				a.l.asker.line(ctx, typed, true)
			}
			if a.caught != nil {
				return a.leave(a.caught)
			}
		case <-a.l.talk.tick():
			a.l.talk.alive()
		case <-a.l.talk.resized:
			a.l.talk.resize()
		case sig := <-sigs:
			if app.IsSuspend(sig) {
				a.l.talk.aside(app.Suspend)
				continue
			}
			return a.leave(sig)
		}
	}
}

// leave ends the attachment because of a signal. The run goes on.
func (a *lineAttachment) leave(sig os.Signal) error {
	if sig == os.Interrupt || app.IsQuit(sig) { // the same key leaves a terminal
		return a.left()
	}
	return app.ExitError(app.SignalCode(sig))
}

// borrow gives the terminal to a program of the user's.
func (a *lineAttachment) borrow(do func(ctx context.Context)) { a.caught = ask.Borrow(a.sigs, do) }

func (a *lineAttachment) left() error {
	a.l.note("left run " + render.ShortID(a.run.ID()) + ", which goes on")
	return nil
}

// follow sends all events, in whatever process the run is hosted, and at the end the
// error, if any.
func (a *lineAttachment) follow(ctx context.Context, events chan<- host.Event, failed chan<- error) {
	defer close(events)
	run := a.run
	var patience app.Patience
	for {
		var err error
		for event, e := range run.Events(context.Background(), a.seen+1) {
			if err = e; err != nil {
				break
			}
			a.seen = event.Seq
			select {
			case events <- event:
			case <-ctx.Done():
				failed <- nil
				return
			}
		}
		if !errors.Is(err, pluginapi.CodeHostGone) || !patience.Again(run.Info(), a.seen) {
			failed <- app.Unended(run, err)
			return
		}
		if run, err = a.runs.Open(run.ID()); err != nil {
			failed <- err
			return
		}
	}
}

// interaction returns the id of the question that an event asks or closes.
func interaction(e host.Event) (id string, asks bool) {
	switch e.Type {
	case code.EventApprovalRequest, code.EventInputRequired:
		asks = true
	case code.EventApprovalGranted, code.EventApprovalDenied, code.EventInputAnswered:
	default:
		return "", false
	}
	var field struct {
		InteractionID string `json:"interaction_id"`
	}
	_ = e.Decode(&field) // an event without one is about none
	return field.InteractionID, asks
}

// mayType reports whether a line counts. A terminal that has lost the right to type only
// watches.
func (a *lineAttachment) mayType(ctx context.Context) bool {
	a.writer.next = time.Time{} // each line asks
	if a.writer.may() {
		a.l.asker.can, a.l.asker.elsewhere = true, false
		return true
	}
	a.look(ctx)
	a.l.note("ignored: somebody else is typing")
	return false
}

// look makes the attachment only watch: somebody answers elsewhere.
func (a *lineAttachment) look(ctx context.Context) {
	a.l.asker.can, a.l.asker.elsewhere = false, true
	if !a.l.process.IO.InTTY {
		a.l.asker.lines = nil // at a terminal the user may still leave
	}
	a.l.asker.done(ctx)
}

func (a *lineAttachment) prompt(ctx context.Context, text string) {
	if text = a.l.talk.prompt(ctx, text); text == "" {
		return
	}
	a.l.busy = true
	a.l.talk.work(true)
	a.l.try("send", a.run.Send(ctx, text))
}

// end returns the exit code of the run.
func (a *lineAttachment) end(err error) error {
	if err != nil {
		return err
	}
	run, err := a.runs.Open(a.run.ID())
	if err != nil {
		return err
	}
	result, _ := run.Wait(context.Background())
	a.l.print.Changes(run)
	if result.Err == nil {
		return nil
	}
	a.l.print.Error(result.Err, result.RunID, run.Info().Agent)
	return app.Failed(result)
}
