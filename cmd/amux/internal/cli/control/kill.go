package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// KillOptions are what amux kill needs.
type KillOptions struct {
	Runs Runs

	Run    string
	Signal string
}

// NewCmdKill makes amux kill.
func NewCmdKill(a *app.App) *cobra.Command {
	o := &KillOptions{Runs: a.Runs}
	cmd := &cobra.Command{
		Use:   "kill RUN",
		Short: "Kill a run at once, or send it a signal",
		Long: `Kill all processes of a run at once, until none is left.

With --signal amux sends that signal instead, and the processes decide what it means:
HUP, INT and QUIT reach all of them, other signals only the agent's first process. TERM
is amux stop, STOP is amux pause, CONT is amux resume. A run that ends because of the
signal is canceled.

If the run has finished, there is nothing to do: amux reports that and exits with 0.
Only --signal fails then, with RUN_NOT_ACTIVE (exit code 1).`,
		Example:           "  amux kill 86CCFA\n  amux kill 86CCFA --signal USR1",
		Args:              app.ExactArgs("a run"),
		ValidArgsFunction: a.Runs.CompleteActive,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Run = args[0]
			return kill(o)
		}),
	}
	cmd.Flags().StringVar(&o.Signal, "signal", "", "send this `SIGNAL` instead, for example INT")
	return cmd
}

func kill(o *KillOptions) error {
	if o.Signal == "" {
		return o.Runs.Cancel(o.Run, true)
	}
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	return run.Signal(context.Background(), o.Signal)
}
