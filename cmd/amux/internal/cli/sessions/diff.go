package sessions

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// DiffOptions are what amux sessions diff needs.
type DiffOptions struct {
	Out    io.Writer
	Host   func() (app.Host, error)
	Finder *Finder

	Sessions [2]string
	Agent    string
}

// NewCmdDiff makes amux sessions diff.
func NewCmdDiff(a *app.App) *cobra.Command {
	o := &DiffOptions{Out: a.IO.Out, Host: a.Opener.Host, Finder: newFinder(a)}
	cmd := &cobra.Command{
		Use:   "diff SESSION SESSION",
		Short: "Show where two sessions part",
		Long: `Show where two sessions part, for example one that was forked from the other: how many
messages they share from the start, and how each goes on. The exit code is 1 if they
differ.`,
		Example: "  amux sessions diff 9b53 7f1e\n  amux sessions diff 9b53 7f1e --agent claude",
		Args:    app.ExactArgs("a session", "another session"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Sessions = [2]string{args[0], args[1]}
			return diff(o)
		}),
	}
	addAgentFlag(cmd, a, &o.Agent)
	return cmd
}

func diff(o *DiffOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	var sides [2]iter.Seq2[message, error]
	for i, ref := range o.Sessions {
		x, err := o.Finder.One(h, o.Agent, ref)
		if err != nil {
			return err
		}
		sides[i] = messagesOf(h, x)
	}
	return compare(o.Out, sides[0], sides[1])
}

// messagesOf reads the messages of a session; an error is the last.
func messagesOf(h app.Sessions, x host.Session) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		more := true
		err := h.ReadSession(context.Background(), x.Agent, x.ID, false, func(e host.Event) bool {
			if m, ok := messageOf(e); ok {
				more = yield(m, nil)
			}
			return more
		})
		if err != nil && more {
			yield(message{}, err)
		}
	}
}

// compare reads both sessions at once, so that neither has to fit into memory.
func compare(out io.Writer, a, b iter.Seq2[message, error]) error {
	nextA, stopA := iter.Pull2(a)
	defer stopA()
	nextB, stopB := iter.Pull2(b)
	defer stopB()
	same := 0
	oneA, errA, inA := nextA()
	oneB, errB, inB := nextB()
	for inA && inB && errA == nil && errB == nil && oneA == oneB {
		same++
		oneA, errA, inA = nextA()
		oneB, errB, inB = nextB()
	}
	if err := cmp.Or(errA, errB); err != nil {
		return err
	}
	fmt.Fprintf(out, "  %s the same\n", render.Number(int64(same)))
	if !inA && !inB {
		return nil
	}
	rest := func(sign string, one message, in bool, next func() (message, error, bool)) (err error) {
		for ; in && err == nil; one, err, in = next() {
			fmt.Fprintf(out, "%s %s: %s\n", sign, one.role, render.Excerpt(one.text, 100))
		}
		return err
	}
	if err := rest("-", oneA, inA, nextA); err != nil {
		return err
	}
	if err := rest("+", oneB, inB, nextB); err != nil {
		return err
	}
	return app.ExitError(1)
}
