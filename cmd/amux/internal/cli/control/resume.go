package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// NewCmdResume makes amux resume.
func NewCmdResume(a *app.App) *cobra.Command {
	return several(a, &cobra.Command{
		Use:     "resume [RUN…]",
		Aliases: []string{"unpause"},
		Short:   "Continue paused runs",
		Long:    "Continue every process of a run that amux pause has stopped." + finishedNeeded,
		Example: "  amux resume 86CCFA\n  amux resume --filter state=paused",
	}, act(a.Runs, false, func(ctx context.Context, run app.Recorded) error { return run.Resume(ctx) }))
}
