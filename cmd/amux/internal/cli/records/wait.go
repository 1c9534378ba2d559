package records

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// WaitOptions are what amux wait needs.
type WaitOptions struct {
	Print *app.Printer
	Runs  Runs

	Selection app.Selection
	Refs      []string
	Any       bool
}

// NewCmdWait makes amux wait.
func NewCmdWait(a *app.App) *cobra.Command {
	o := &WaitOptions{Print: a.Print, Runs: a.Runs}
	cmd := &cobra.Command{
		Use:   "wait [RUN…]",
		Short: "Wait for the end of runs",
		Long: `Wait for the end of a run. The exit code is the one that amux run would have had.

Several runs may be named; or select live runs with --agent, --tag and --filter, as
amux ps does. Then amux prints the id and the state of each run when it ends, and the
exit code is that of the first one that did not succeed, in the order of the runs. With
--any amux waits for one of them only.`,
		Example: `  amux wait 86CCFA
  id=$(amux run claude "fix the tests" --detach); amux wait "$id"
  amux wait --tag nightly
  amux wait --any 86CCFA DGXP98`,
		ValidArgsFunction: a.Runs.CompleteLive,
		RunE: app.Command(func(cmd *cobra.Command, args []string) (err error) {
			if o.Refs, err = o.Runs.Choose(cmd, args, &o.Selection, app.IsLive); err != nil {
				return err
			}
			return wait(o)
		}),
	}
	cmd.Flags().BoolVar(&o.Any, "any", false, "return when one of the runs has ended")
	o.Selection.AddFlags(cmd.Flags())
	return cmd
}

// ended is how one of the runs has ended.
type ended struct {
	index  int // in the order of the arguments
	run    app.Recorded
	result host.Result
	err    error
}

func wait(o *WaitOptions) error {
	runs := make([]app.Recorded, len(o.Refs))
	for i, ref := range o.Refs {
		run, err := o.Runs.Open(ref)
		if err != nil {
			return err
		}
		runs[i] = run
	}
	ends := make(chan ended, len(runs))
	for i, run := range runs {
		go func() {
			result, err := o.Runs.Wait(run)
			ends <- ended{i, run, result, err}
		}()
	}
	failed := make([]error, len(runs))
	for range runs {
		e := <-ends
		failed[e.index] = report(o, e)
		if o.Any {
			return failed[e.index]
		}
	}
	return cmp.Or(failed...)
}

// report says how a run has ended, and returns the error that the command ends with for
// it.
func report(o *WaitOptions, e ended) error {
	if len(o.Refs) > 1 && e.err == nil {
		o.Print.Outf("%s %s\n", render.ShortID(e.run.ID()), e.result.State)
	}
	if e.err == nil && len(o.Refs) == 1 {
		o.Print.Changes(e.run)
	}
	err := e.err
	if err == nil {
		err = o.Runs.Check(e.run.ID())
	}
	if err != nil || e.result.Err == nil {
		return err
	}
	o.Print.Error(e.result.Err, e.result.RunID, e.run.Info().Agent)
	return app.Failed(e.result)
}
