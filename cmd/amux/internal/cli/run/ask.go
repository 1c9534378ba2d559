package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/amux-dev/amux/cmd/amux/internal/ask"
	"github.com/amux-dev/amux/cmd/amux/internal/notify"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// asker asks the user what the agent asks, one question at a time. While one is
// open the events behind it wait, so that nothing is written into the prompt.
type asker struct {
	l   *live
	can bool // somebody is at the terminal
	// elsewhere says that somebody answers from another terminal.
	elsewhere bool

	// prompt takes a line that answers no question; it may be nil.
	prompt func(ctx context.Context, text string)

	over func(ctx context.Context) // is called when stdin has ended; it may be nil
	// borrow gives the terminal to a pager or an editor.
	borrow func(do func(ctx context.Context))

	dialog ask.Dialog
	lines  <-chan ask.Line // nil: nobody listens yet, or any more
	held   []host.Event
	ended  bool // stdin has ended
}

// waits names the command that answers from another terminal.
func (l *live) waits(id, command string) {
	if !l.mode.Quiet {
		l.note(fmt.Sprintf("waits: amux %s %s %s", command, render.ShortID(l.run.ID()), id))
	}
}

// event renders an event, or holds it back behind the open question.
func (a *asker) event(ctx context.Context, e host.Event) {
	if open := a.dialog.Open(); open != "" {
		switch {
		case e.Type == code.EventRunEnd:
		case answers(e, open):
			a.l.note("answered elsewhere")
			a.done(ctx)
			a.event(ctx, e)
			return
		default:
			a.held = append(a.held, e)
			return
		}
		a.dialog.Withdraw() // nobody can answer it any more
		held := a.held
		a.held = nil
		for _, h := range held {
			a.l.renderer.Event(h.Type, h.Raw)
		}
	}
	a.l.renderer.Event(e.Type, e.Raw)
	switch e.Type {
	case code.EventApprovalRequest:
		if a.asks(e) {
			a.ask(ctx, e)
		}
	case code.EventInputRequired:
		a.ask(ctx, e)
	}
}

// asks reports whether an approval is for people: no rule, and nobody else, has answered.
func (a *asker) asks(e host.Event) bool {
	id, _ := interaction(e)
	return a.l.run.Waits(id)
}

// askAgain asks a question that was shown before.
func (a *asker) askAgain(ctx context.Context, e host.Event) {
	switch {
	case a.dialog.Open() != "":
		a.held = append(a.held, e)
	case e.Type == code.EventInputRequired || a.asks(e):
		a.ask(ctx, e)
	}
}

// answers reports whether e closes the question of that id.
func answers(e host.Event, id string) bool {
	closed, asks := interaction(e)
	return !asks && closed == id
}

// done closes the open question and goes on with what was held back.
func (a *asker) done(ctx context.Context) {
	a.dialog.Withdraw()
	for len(a.held) > 0 && a.dialog.Open() == "" {
		next := a.held[0]
		a.held = a.held[1:]
		a.event(ctx, next)
	}
}

// ask asks the question of an event.
func (a *asker) ask(ctx context.Context, e host.Event) {
	id, _ := interaction(e)
	q := host.Question{RunID: e.RunID, ID: id, Approval: e.Type == code.EventApprovalRequest, Cwd: a.l.spec.Cwd, Event: e.Raw}
	switch {
	case id == "":
	case a.elsewhere && q.Approval:
		a.l.waits(id, "approve")
	case a.elsewhere:
		a.l.waits(id, "answer")
	case !a.can || a.ended:
		a.sent("deny", a.l.run.Deny(ctx, id, ask.NobodyThere))
	default:
		known := a.l.run.Questions()
		if i := slices.IndexFunc(known, func(k host.Question) bool { return k.ID == id }); i >= 0 {
			q = known[i]
		}
		a.listen()
		a.dialog.Ask(a.l.run, q, "")
		if a.l.process.IO.ErrTTY {
			notify.Bell(a.l.terminal(), a.l.notify)
		}
	}
}

// listen begins to read what the user types.
func (a *asker) listen() {
	if a.lines != nil {
		return
	}
	a.dialog.Renderer, a.dialog.Process, a.dialog.Borrow = a.l.renderer, a.l.process, a.borrow
	a.dialog.Failed = a.l.try
	if a.l.talk.line != nil {
		a.dialog.Keyboard = ask.NewLineKeyboard(a.l.process.IO, a.l.talk.line)
		a.lines = a.dialog.Keyboard.Lines
		return
	}
	a.dialog.Keyboard = ask.NewKeyboard(a.l.process.IO, func() {
		a.l.print.Notef("error: a line is longer than %d MiB, so it is not sent", host.MaxPrompt>>20)
	})
	a.lines = a.dialog.Keyboard.Lines
}

// line takes what the user typed; ok is false when stdin has ended.
func (a *asker) line(ctx context.Context, typed ask.Line, ok bool) {
	if typed.Prompt {
		a.l.talk.remember(typed.Text) // also if a question came just then, which refuses it
	}
	switch open := a.dialog.Open() != ""; {
	case !ok:
		a.ended = true
		a.lines = nil
		if open {
			a.l.renderer.Note("stdin has ended: denied")
			a.dialog.Refuse(ctx)
			a.done(ctx)
		}
		if a.over != nil {
			a.over(ctx)
		}
	case !open:
		if a.prompt != nil && typed.Text != "" {
			a.prompt(ctx, typed.Text)
		} // else it was typed ahead: it answers nothing
	case a.dialog.Line(ctx, typed):
		a.done(ctx)
	}
}

// sent reports that a denial did not arrive, unless somebody else was first.
func (a *asker) sent(what string, err error) {
	if err == nil || errors.Is(err, pluginapi.CodeAlreadyAnswered) || errors.Is(err, io.EOF) {
		return
	}
	a.l.try(what, err)
}

// borrow gives the terminal to a program of the user's. A signal that stops the run ends
// that program.
func (l *live) borrow(do func(ctx context.Context)) {
	if caught := ask.Borrow(l.sigs, do); caught != nil {
		l.signal(context.Background(), caught)
	}
}
