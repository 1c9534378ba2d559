// Package control has the commands that act on a run which has not ended, in whatever
// process it is hosted: one command a file.
package control

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/pluginapi"
)

// What the help of a command says of a run that has finished.
const (
	finishedRest   = "\n\nIf the run has finished, there is nothing to do: amux reports that and exits with 0."
	finishedNeeded = "\n\nIf the run has finished, the command fails with RUN_NOT_ACTIVE (exit code 1)."
)

// Runs opens the runs that the commands act on.
type Runs interface {
	Open(ref string) (app.Recorded, error)
	Cancel(ref string, kill bool) error
	NoteFinished(ref string)
}

// Options are what a command of one call needs: the run, and what to do to it.
type Options struct {
	Runs Runs
	Do   func(ctx context.Context, run app.Recorded) error
	// Rest says that the command asks for no more than what holds when the run has
	// finished.
	Rest bool

	Run string
}

// simple completes a command that has one thing done to a run.
func simple(a *app.App, o *Options, cmd *cobra.Command) *cobra.Command {
	o.Runs = a.Runs
	cmd.Args = app.ExactArgs("a run")
	cmd.ValidArgsFunction = a.Runs.CompleteActive
	cmd.RunE = app.Command(func(_ *cobra.Command, args []string) error {
		o.Run = args[0]
		return act(o)
	})
	return cmd
}

func act(o *Options) error {
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	err = o.Do(context.Background(), run)
	if o.Rest && errors.Is(err, pluginapi.CodeRunNotActive) {
		o.Runs.NoteFinished(o.Run)
		return nil
	}
	return err
}
