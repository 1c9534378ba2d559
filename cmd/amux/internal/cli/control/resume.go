package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// NewCmdResume makes amux resume.
func NewCmdResume(a *app.App) *cobra.Command {
	do := func(ctx context.Context, run app.Recorded) error { return run.Resume(ctx) }
	return simple(a, &Options{Do: do}, &cobra.Command{
		Use:     "resume RUN",
		Short:   "Continue a paused run",
		Long:    "Continue every process of a run that amux pause has stopped." + finishedNeeded,
		Example: "  amux resume 86CCFA\n  amux resume nightly",
	})
}
