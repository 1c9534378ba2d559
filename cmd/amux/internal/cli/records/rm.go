package records

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// RmOptions are what amux rm needs.
type RmOptions struct {
	Host func() (app.Host, error)
	Runs Runs
	Each func(refs []string, do func(ref string) error) error

	Selection app.Selection
	Refs      []string
}

// NewCmdRm makes amux rm.
func NewCmdRm(a *app.App) *cobra.Command {
	o := &RmOptions{Host: a.Opener.ForRuns, Runs: a.Runs, Each: a.Each}
	cmd := &cobra.Command{
		Use:   "rm [RUN…]",
		Short: "Remove the records of ended runs",
		Long: `Remove the records of ended runs. A run that has not ended is refused: stop it first.
Several runs may be named; or select ended runs with --agent, --tag and --filter, as
amux ps does. amux clean removes what is old.`,
		Example:           "  amux rm 86CCFA\n  amux rm 86CCFA DGXP98 nightly\n  amux rm --filter state=failed --tag nightly",
		ValidArgsFunction: a.Runs.Complete,
		RunE: app.Command(func(cmd *cobra.Command, args []string) (err error) {
			if o.Refs, err = o.Runs.Choose(cmd, args, &o.Selection, app.HasEnded); err != nil {
				return err
			}
			return rm(o)
		}),
	}
	o.Selection.AddFlags(cmd.Flags())
	return cmd
}

// rm removes each of the runs, also where another one cannot be removed.
func rm(o *RmOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	return o.Each(o.Refs, func(ref string) error {
		o.Runs.Recover(h, ref)
		_, err := h.Delete(context.Background(), ref)
		return err
	})
}
