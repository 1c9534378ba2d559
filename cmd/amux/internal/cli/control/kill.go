package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// NewCmdKill makes amux kill.
func NewCmdKill(a *app.App) *cobra.Command {
	var signal string
	send := act(a.Runs, false, func(ctx context.Context, run app.Recorded) error { return run.Signal(ctx, signal) })
	cmd := several(a, &cobra.Command{
		Use:   "kill [RUN…]",
		Short: "Kill runs at once, or send them a signal",
		Long: `Kill all processes of a run at once, until none is left.

With --signal amux sends that signal instead, and the processes decide what it means:
HUP, INT and QUIT reach all of them, other signals only the agent's first process. TERM
is amux stop, STOP is amux pause, CONT is amux resume. A run that ends because of the
signal is canceled.

If a run has finished, there is nothing to do: amux reports that and exits with 0.
Only --signal fails then, with RUN_NOT_ACTIVE (exit code 1).`,
		Example: "  amux kill 86CCFA\n  amux kill 86CCFA --signal USR1\n  amux kill --agent codex",
	}, func(ref string) error {
		if signal == "" {
			return a.Runs.Cancel(ref, true)
		}
		return send(ref)
	})
	cmd.Flags().StringVarP(&signal, "signal", "s", "", "send this `SIGNAL` instead, for example INT")
	return cmd
}
