package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// lineAttachment is somebody's terminal, or pipe, while it stands for that of a run
// whose agent speaks by pipes: what the run does is shown as in the foreground, and
// lines answer its questions or are prompts.
type lineAttachment struct {
	l      *live
	run    Recorded
	writer *writer
	seen   uint64
}

// leaveLine is the line that leaves.
const leaveLine = "~."

// attachLines stays until somebody leaves or the run ends, whose exit code it has
// then.
func (s *session) attachLines(run Recorded, w *writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	info := run.Info()
	a := &lineAttachment{run: run, writer: w}
	io := s.app.IO
	a.l = &live{s: s, o: &runOptions{}, run: run, renderer: render.New(render.Options{
		Out: io.Out, Err: io.Err, Color: io.Color, Width: io.Width, Terminal: io.ErrTTY,
		Live: io.OutTTY, Shared: io.OutTTY && io.ErrTTY, Prompts: true, Debug: s.debug,
	})}
	a.l.spec.Agent, a.l.spec.Conversation = info.Agent, info.Conversation
	types := w.had
	a.l.asker = &asker{l: a.l, can: types, ask: info.Approve == host.ApproveAsk, elsewhere: !types, prompt: a.prompt}
	if !w.readOnly {
		a.l.asker.listen()
	}
	return a.stay(ctx, info)
}

// stay shows what comes and passes on what is typed.
func (a *lineAttachment) stay(ctx context.Context, info host.RunInfo) error {
	s := a.l.s
	sigs, stop := s.app.Signals()
	defer stop()
	events, failed := make(chan host.Event, 64), make(chan error, 1)
	go a.follow(ctx, events, failed)
	waiting := map[string]host.Event{} // asked before we came
	var order []string
	if info.End == nil && s.app.IO.ErrTTY {
		a.l.note("attached; the line ~. leaves, and the run goes on")
		if !a.writer.had && !a.writer.readOnly {
			a.l.note("somebody else types: amux attach --steal takes over")
		}
	}
	caughtUp := info.Events == 0 && info.End == nil
	for {
		var lines <-chan line
		if caughtUp && (info.Conversation || s.app.IO.InTTY || a.l.asker.current != nil || !a.writer.had) {
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
				continue
			}
			a.l.renderer.Event(event.Type, event.Raw)
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
			if !ok && !s.app.IO.InTTY {
				a.look(ctx) // the pipe is empty
				continue
			}
			if !ok || typed.text == leaveLine {
				return a.left()
			}
			if a.mayType(ctx) {
				a.l.asker.line(ctx, typed, true)
			}
		case sig := <-sigs:
			if isSuspend(sig) {
				suspend()
				continue
			}
			if sig == os.Interrupt || isQuit(sig) { // the same key leaves a terminal
				return a.left()
			}
			return exitError(signalCode(sig))
		}
	}
}

func (a *lineAttachment) left() error {
	a.l.note("left run " + render.ShortID(a.run.ID()) + ", which goes on")
	return nil
}

// follow gives all events, whoever hosts the run, and in the end the error, if any.
func (a *lineAttachment) follow(ctx context.Context, events chan<- host.Event, failed chan<- error) {
	defer close(events)
	run := a.run
	var try patience
	for {
		var err error
		for event, e := range run.Events(a.seen + 1) {
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
		if !errors.Is(err, pluginapi.CodeHostGone) || !try.again(run.Info(), a.seen) {
			failed <- unended(run, err)
			return
		}
		if run, err = a.l.s.recorded(run.ID()); err != nil { // makes the end that its host has not made
			failed <- err
			return
		}
	}
}

// interaction is the id of the question that an event asks or closes.
func interaction(e host.Event) (id string, asks bool) {
	switch e.Type {
	case "approval_request", "input_required":
		asks = true
	case "approval_granted", "approval_denied", "input_answered":
	default:
		return "", false
	}
	var field struct {
		InteractionID string `json:"interaction_id"`
	}
	_ = e.Decode(&field) // an event without one is about none
	return field.InteractionID, asks
}

// mayType reports whether a line counts. Who has lost the right to type looks on.
func (a *lineAttachment) mayType(ctx context.Context) bool {
	a.writer.next = time.Time{} // each line asks
	if a.writer.may() {
		a.l.asker.can, a.l.asker.elsewhere = true, false
		return true
	}
	a.look(ctx)
	a.l.note("somebody else types; this goes nowhere")
	return false
}

// look leaves it at looking: somebody elsewhere answers.
func (a *lineAttachment) look(ctx context.Context) {
	a.l.asker.can, a.l.asker.elsewhere = false, true
	if !a.l.s.app.IO.InTTY {
		a.l.asker.lines = nil // at a terminal somebody may want to leave
	}
	a.l.asker.done(ctx)
}

func (a *lineAttachment) prompt(ctx context.Context, text string) {
	a.l.busy = true
	a.l.try("send", a.run.Send(ctx, text))
}

// end makes the exit code of the run's.
func (a *lineAttachment) end(err error) error {
	if err != nil {
		return err
	}
	run, err := a.l.s.recorded(a.run.ID())
	if err != nil {
		return err
	}
	result := run.Wait()
	if result.Err == nil {
		return nil
	}
	a.l.s.say(result.Err, result.RunID, run.Info().Agent)
	return exitError(result.Err.Code.Info().Exit)
}
