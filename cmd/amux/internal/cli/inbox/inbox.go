// Package inbox has amux inbox: what the agents of all runs ask, in one list, answered in
// place.
package inbox

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/internal/sys/printable"
)

// Options are what amux inbox needs.
type Options struct {
	Process *app.Process
	Print   *app.Printer
	Config  *app.Config
	Runs    *app.Runs
	Now     func() time.Time

	Selection app.Selection
	Follow    bool
	List      bool
	JSON      bool
}

// lookEvery is how often the live runs are looked at.
const lookEvery = 500 * time.Millisecond

// NewCmd makes amux inbox.
func NewCmd(a *app.App) *cobra.Command {
	o := &Options{Process: a.Process, Print: a.Print, Config: a.Config, Runs: a.Runs, Now: time.Now}
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "Answer what the agents of all runs ask",
		Long: `Show the open questions of all live runs, the oldest first. At a terminal amux asks each
in place, with the keys of amux run (? explains them). Enter alone leaves a question for
later; Ctrl-C or Ctrl-D leaves the inbox. The first answer wins, wherever it comes from.
Without a terminal, and with --list, amux prints the questions.`,
		Example: `  amux inbox
  amux inbox --follow --tag nightly
  amux inbox --json | jq -r '.[] | "\(.run_id) \(.event.tool_name)"'`,
		Args: app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error { return inbox(o) }),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&o.Follow, "follow", "f", false, "wait for new questions")
	f.BoolVarP(&o.List, "list", "l", false, "only print the questions")
	f.BoolVar(&o.JSON, "json", false, "print JSON; with --follow one object a line, when a question opens")
	o.Selection.AddFlags(f)
	return cmd
}

func inbox(o *Options) error {
	open, err := o.Runs.Inbox(&o.Selection)
	if err != nil {
		return err
	}
	if o.Process.Attended() && !o.JSON && !o.List {
		return answer(o, open)
	}
	return list(o, open)
}

// list prints the questions; with --follow each when it opens, until a signal comes.
func list(o *Options, inbox *app.Inbox) error {
	sigs, stop := o.Process.Signals()
	defer stop()
	open, err := inbox.Look()
	switch {
	case err != nil:
		return err
	case o.JSON && !o.Follow:
		if open == nil {
			open = []app.Asked{} // [] in JSON
		}
		return o.Print.JSON(open)
	case len(open) == 0 && !o.JSON && !o.Follow:
		o.Print.Notef("no open questions")
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var shown []app.Asked
	for {
		for _, q := range open {
			if slices.ContainsFunc(shown, func(p app.Asked) bool { return same(p, q) }) {
				continue
			}
			if err := printQuestion(o, q); err != nil {
				return err
			}
		}
		if !o.Follow {
			return nil
		}
		shown = open
		select {
		case sig := <-sigs:
			if app.IsSuspend(sig) {
				app.Suspend()
			} else if sig == os.Interrupt {
				return nil
			} else {
				return app.ExitError(app.SignalCode(sig))
			}
		case <-look.C:
			if open, err = inbox.Look(); err != nil {
				return err
			}
		}
	}
}

func same(a, b app.Asked) bool { return a.RunID == b.RunID && a.ID == b.ID && a.Asked.Equal(b.Asked) }

func printQuestion(o *Options, q app.Asked) error {
	if o.JSON {
		line, err := json.Marshal(q)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.Process.IO.Out, "%s\n", printable.JSON(line))
		return err
	}
	text := render.Question(q.Question, from(o, q), o.Process.IO.OutTTY && o.Process.IO.Color)
	verbs := "answer %[1]s %[2]s TEXT"
	if q.Approval {
		verbs = "approve %[1]s %[2]s; amux deny %[1]s %[2]s"
	}
	_, err := fmt.Fprintf(o.Process.IO.Out, "%[3]s  amux "+verbs+"\n", render.ShortID(q.RunID), printable.Line(q.ID), text)
	return err
}

// from says which run asks, and since when.
func from(o *Options, q app.Asked) string {
	return q.From() + " · " + render.Age(o.Now().Sub(q.Asked))
}
