package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// NewCmdInterrupt makes amux interrupt.
func NewCmdInterrupt(a *app.App) *cobra.Command {
	return several(a, &cobra.Command{
		Use:     "interrupt [RUN…]",
		Short:   "Cancel the current turn of runs",
		Long:    "Cancel the current turn of a run's agent. A conversation goes on with the next prompt." + finishedRest,
		Example: "  amux interrupt 86CCFA\n  amux interrupt --agent claude",
	}, act(a.Runs, true, func(ctx context.Context, run app.Recorded) error { return run.Interrupt(ctx) }))
}
