// Package control has the commands that act on runs which have not ended, in whatever
// process they are hosted: one command a file.
package control

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// What the help of a command says of a run that has finished, and of several runs.
const (
	finishedRest   = "\n\nIf a run has finished, there is nothing to do: amux reports that and exits with 0."
	finishedNeeded = "\n\nIf the run has finished, the command fails with RUN_NOT_ACTIVE (exit code 1)."
	severalRuns    = `

RUN is an id, a name, or at least four characters from the start or end of an id. Several
runs may be named; or select live runs with --agent, --tag and --filter, as amux ps does.
At a terminal, without any of these, amux lists the live runs to choose from.`
)

// Runs opens the runs that the commands act on.
type Runs interface {
	Open(ref string) (app.Recorded, error)
	Cancel(ref string, kill bool) error
	NoteFinished(ref string)
	Choose(cmd *cobra.Command, named []string, s *app.Selection, fits func(host.RunInfo) bool) ([]string, error)
	TheQuestion(fits func(host.Question) bool, usage string) (app.Asked, error)
}

// Options are what a command needs that does one thing to each of its runs.
type Options struct {
	Runs Runs
	Each func(refs []string, do func(ref string) error) error
	Do   func(ref string) error

	Selection app.Selection
	Refs      []string
}

// several completes a command that does one thing to each of its runs.
func several(a *app.App, cmd *cobra.Command, do func(ref string) error) *cobra.Command {
	o := &Options{Runs: a.Runs, Each: a.Each, Do: do}
	cmd.Long += severalRuns
	cmd.ValidArgsFunction = a.Runs.CompleteLive
	cmd.RunE = app.Command(func(cmd *cobra.Command, args []string) (err error) {
		if o.Refs, err = o.Runs.Choose(cmd, args, &o.Selection, app.IsLive); err != nil {
			return err
		}
		return o.Each(o.Refs, o.Do)
	})
	o.Selection.AddFlags(cmd.Flags())
	return cmd
}

// act returns what does one thing to a run. rest says that the command asks for no more
// than what holds when the run has finished.
func act(runs Runs, rest bool, do func(ctx context.Context, run app.Recorded) error) func(ref string) error {
	return func(ref string) error {
		run, err := runs.Open(ref)
		if err != nil {
			return err
		}
		err = do(context.Background(), run)
		if rest && errors.Is(err, pluginapi.CodeRunNotActive) {
			runs.NoteFinished(ref)
			return nil
		}
		return err
	}
}
