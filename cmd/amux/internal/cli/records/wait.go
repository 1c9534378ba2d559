package records

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// WaitOptions are what amux wait needs.
type WaitOptions struct {
	Print *app.Printer
	Runs  Runs

	Run string
}

// NewCmdWait makes amux wait.
func NewCmdWait(a *app.App) *cobra.Command {
	o := &WaitOptions{Print: a.Print, Runs: a.Runs}
	return &cobra.Command{
		Use:   "wait RUN",
		Short: "Wait for the end of a run",
		Long:  "Wait for the end of a run. The exit code is the one that amux run would have had.",
		Example: `  amux wait 86CCFA
  id=$(amux run claude "fix the tests" --detach); amux wait "$id"`,
		Args:              app.ExactArgs("a run"),
		ValidArgsFunction: a.Runs.CompleteActive,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Run = args[0]
			return wait(o)
		}),
	}
}

func wait(o *WaitOptions) error {
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	result, err := o.Runs.Wait(run)
	if err == nil {
		err = o.Runs.Check(run.ID())
	}
	if err != nil || result.Err == nil {
		return err
	}
	o.Print.Error(result.Err, result.RunID, run.Info().Agent)
	return app.ExitError(result.Err.Code.Info().Exit)
}
