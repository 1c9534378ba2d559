package inbox

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/ask"
	"github.com/amux-dev/amux/cmd/amux/internal/notify"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// desk is where somebody answers one question after the other.
type desk struct {
	*Options
	inbox    *app.Inbox
	renderer *render.Renderer
	dialog   ask.Dialog
	sigs     <-chan os.Signal
	caught   os.Signal // while the pager had the terminal

	notify settings.Notify

	open  []app.Asked
	asked app.Asked   // the one on the screen
	later []app.Asked // answered, or left for later
}

// answer asks until nothing is open; with --follow until somebody leaves.
func answer(o *Options, inbox *app.Inbox) error {
	sigs, stop := o.Process.Signals()
	defer stop()
	options := o.Print.RenderOptions()
	options.Terminal = true
	d := &desk{Options: o, inbox: inbox, renderer: render.New(options), sigs: sigs}
	d.dialog = ask.Dialog{Renderer: d.renderer, Failed: d.failed, Process: o.Process, Borrow: d.borrow}
	if err := d.look(); err != nil {
		return err
	}
	if set, err := o.Config.User(); err == nil { // else it has been reported
		d.notify = set.Notify
	}
	if len(d.open) == 0 {
		d.Print.Notef("no open questions")
		if !o.Follow {
			return nil
		}
	}
	d.dialog.Keyboard = ask.NewKeyboard(o.Process.IO, func() {
		o.Print.Notef("error: a line is longer than %d MiB, so it is not sent", host.MaxPrompt>>20)
	})
	return d.stay()
}

func (d *desk) stay() error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if d.dialog.Open() == "" && !d.next() && !d.Follow {
			return nil
		}
		select {
		case typed, ok := <-d.dialog.Keyboard.Lines:
			if !ok {
				d.renderer.Answered()
				return nil
			}
			d.line(typed)
			if d.caught != nil {
				return left(d.caught)
			}
		case <-look.C:
			if err := d.look(); err != nil {
				return err
			}
			if d.dialog.Open() != "" && !d.waits(d.asked) {
				d.renderer.Note("amux: answered elsewhere")
				d.dialog.Withdraw()
			}
		case sig := <-d.sigs:
			if app.IsSuspend(sig) {
				app.Suspend()
				continue
			}
			return left(sig)
		}
	}
}

// left is the end by a signal. Ctrl-C is the way out.
func left(sig os.Signal) error {
	if sig == os.Interrupt {
		return nil
	}
	return app.ExitError(app.SignalCode(sig))
}

// look reads what is open, and rings for what is new.
func (d *desk) look() (err error) {
	known := d.open
	d.open, err = d.inbox.Look()
	for _, q := range d.open {
		if !slices.ContainsFunc(known, func(k app.Asked) bool { return same(k, q) }) {
			notify.Ring(d.Process.IO.Err, d.notify, q.From()+" asks: "+render.QuestionLine(q.Question))
			break // once is enough
		}
	}
	return err
}

func (d *desk) waits(q app.Asked) bool {
	return slices.ContainsFunc(d.open, func(o app.Asked) bool { return same(o, q) })
}

// next asks the next question, and reports whether there is one.
func (d *desk) next() bool {
	for _, q := range d.open {
		if slices.ContainsFunc(d.later, func(l app.Asked) bool { return same(l, q) }) {
			continue
		}
		run, err := d.Runs.Open(q.RunID)
		if err != nil || !run.Waits(q.ID) {
			d.later = append(d.later, q) // it has just been answered, or has ended
			continue
		}
		d.asked = q
		d.dialog.Ask(run, q.Question, from(d.Options, q))
		return true
	}
	return false
}

// line takes what was typed.
func (d *desk) line(typed ask.Line) {
	switch {
	case d.dialog.Open() == "": // typed ahead: it answers nothing
	case typed.Text == "" && !d.dialog.Keyboard.Early(typed):
		d.renderer.Answered()
		d.renderer.Note("left for later")
		d.later = append(d.later, d.asked)
		d.dialog.Withdraw()
	case d.dialog.Line(context.Background(), typed):
		d.later = append(d.later, d.asked)
	}
}

func (d *desk) failed(what string, err error) {
	d.renderer.Note("amux: error: " + what + ": " + pluginapi.AsError(err).Error())
}

// borrow gives the terminal to a program of the user's.
func (d *desk) borrow(do func(ctx context.Context)) { d.caught = ask.Borrow(d.sigs, do) }
