package control

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// StopOptions are what amux stop needs.
type StopOptions struct {
	Runs Runs

	Run string
}

// NewCmdStop makes amux stop.
func NewCmdStop(a *app.App) *cobra.Command {
	o := &StopOptions{Runs: a.Runs}
	return &cobra.Command{
		Use:   "stop RUN",
		Short: "Stop a run: TERM, the grace period, KILL",
		Long: `Stop a run, in whatever process it is hosted: send TERM to all its processes, wait for
the run's grace period, send KILL to those that are left. The command returns when the
stop was requested; amux wait RUN waits for the end.` + finishedRest,
		Example:           "  amux stop 86CCFA\n  amux stop nightly && amux wait nightly",
		Args:              app.ExactArgs("a run"),
		ValidArgsFunction: a.Runs.CompleteActive,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Run = args[0]
			return o.Runs.Cancel(o.Run, false)
		}),
	}
}
