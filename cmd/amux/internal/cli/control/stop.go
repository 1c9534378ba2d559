package control

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// NewCmdStop makes amux stop.
func NewCmdStop(a *app.App) *cobra.Command {
	return several(a, &cobra.Command{
		Use:   "stop [RUN…]",
		Short: "Stop runs: TERM, the grace period, KILL",
		Long: `Stop a run, in whatever process it is hosted: send TERM to all its processes, wait for
the run's grace period, send KILL to those that are left. The command returns when the
stop was requested; amux wait RUN waits for the end.` + finishedRest,
		Example: "  amux stop 86CCFA\n  amux stop nightly && amux wait nightly\n  amux stop --tag nightly --filter state=waiting",
	}, func(ref string) error { return a.Runs.Cancel(ref, false) })
}
