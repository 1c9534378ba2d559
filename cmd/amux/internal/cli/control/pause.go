package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// NewCmdPause makes amux pause.
func NewCmdPause(a *app.App) *cobra.Command {
	return several(a, &cobra.Command{
		Use:     "pause [RUN…]",
		Short:   "Pause every process of runs",
		Long:    "Pause every process of a run where it stands. amux resume continues them." + finishedRest,
		Example: "  amux pause 86CCFA\n  amux pause --tag nightly",
	}, act(a.Runs, true, func(ctx context.Context, run app.Recorded) error { return run.Pause(ctx) }))
}
