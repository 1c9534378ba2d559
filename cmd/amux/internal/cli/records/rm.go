package records

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/pluginapi"
)

// RmOptions are what amux rm needs.
type RmOptions struct {
	Print *app.Printer
	Host  func() (app.Host, error)
	Runs  Runs

	Refs []string
}

// NewCmdRm makes amux rm.
func NewCmdRm(a *app.App) *cobra.Command {
	o := &RmOptions{Print: a.Print, Host: a.Opener.ForRuns, Runs: a.Runs}
	return &cobra.Command{
		Use:               "rm RUN…",
		Short:             "Remove the records of ended runs",
		Long:              "Remove the records of ended runs. A run that has not ended is refused: stop it first.",
		Example:           "  amux rm 86CCFA\n  amux rm 86CCFA DGXP98 nightly",
		Args:              app.SomeArgs("a run"),
		ValidArgsFunction: a.Runs.Complete,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Refs = args
			return rm(o)
		}),
	}
}

// rm removes each of the runs, also where another one cannot be removed.
func rm(o *RmOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	var failed error
	for _, ref := range o.Refs {
		o.Runs.Recover(h, ref)
		_, err := h.Delete(context.Background(), ref)
		if e := pluginapi.AsError(err); e != nil {
			o.Print.Error(e, "", "")
			if failed == nil {
				failed = app.ExitError(e.Code.Info().Exit)
			}
		}
	}
	return failed
}
