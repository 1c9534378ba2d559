package records

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// RmOptions are what amux rm needs.
type RmOptions struct {
	Host func() (app.Host, error)
	Runs Runs
	Each func(refs []string, do func(ref string) error) error

	Selection app.Selection
	Refs      []string
	Force     bool
}

// NewCmdRm makes amux rm.
func NewCmdRm(a *app.App) *cobra.Command {
	o := &RmOptions{Host: a.Opener.ForRuns, Runs: a.Runs, Each: a.Each}
	cmd := &cobra.Command{
		Use: "rm [RUN…]", Aliases: []string{"remove", "delete"},
		Short: "Remove the records of ended runs",
		Long: `Remove the records of ended runs. A run that has not ended is refused: stop it first,
or have --force kill it. Several runs may be named; or select ended runs, with --force
others too, with --agent, --tag and --filter, as amux ps does. amux clean removes what
is old.`,
		Example:           "  amux rm 86CCFA\n  amux rm 86CCFA DGXP98 nightly\n  amux rm --filter state=failed --tag nightly\n  amux rm --force 86CCFA",
		ValidArgsFunction: a.Runs.Complete,
		RunE: app.Command(func(cmd *cobra.Command, args []string) (err error) {
			if o.Refs, err = o.Runs.Choose(cmd, args, &o.Selection, fits(o.Force)); err != nil {
				return err
			}
			return rm(o)
		}),
	}
	cmd.Flags().BoolVarP(&o.Force, "force", "f", false, "kill a run that has not ended, and remove its record")
	o.Selection.AddFlags(cmd.Flags())
	return cmd
}

// fits says which runs a selection means.
func fits(force bool) func(host.RunInfo) bool {
	if force {
		return func(host.RunInfo) bool { return true }
	}
	return app.HasEnded
}

// end kills a run and waits for its end.
func end(runs Runs, ref string) error {
	run, err := runs.Open(ref)
	if err != nil || run.Info().End != nil {
		return err
	}
	if err := run.Kill(context.Background()); err != nil && !errors.Is(err, pluginapi.CodeRunNotActive) {
		return err
	}
	_, err = runs.Wait(run)
	return err
}

// rm removes each of the runs, also where another one cannot be removed.
func rm(o *RmOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	return o.Each(o.Refs, func(ref string) error {
		o.Runs.Recover(h, ref)
		if o.Force {
			if err := end(o.Runs, ref); err != nil {
				return err
			}
		}
		_, err := h.Delete(context.Background(), ref)
		return err
	})
}
