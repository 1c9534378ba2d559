package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newKill(s *session) *cobra.Command {
	var signal string
	cmd := &cobra.Command{
		Use:   "kill RUN",
		Short: "End a run at once, or send it a signal",
		Long: `End a run at once: KILL to all its processes, until none is left.

With --signal the run gets that signal, and its processes decide what it means:
HUP, INT and QUIT reach all of them, others the agent's first one. TERM is amux
stop, STOP amux pause, CONT amux resume. A run that ends of it is canceled.

On a run that has finished there is nothing to do: amux says so and exits 0. A signal
reaches nobody then: --signal fails with RUN_NOT_ACTIVE (exit code 1).`,
		Example:           "  amux kill 86CCFA\n  amux kill 86CCFA --signal USR1",
		Args:              exactly("a run"),
		ValidArgsFunction: s.completeRuns(true),
		RunE: command(func(_ *cobra.Command, args []string) error {
			if signal == "" {
				return s.cancel(args[0], true)
			}
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			return run.Signal(context.Background(), signal)
		}),
	}
	cmd.Flags().StringVar(&signal, "signal", "", "send this signal instead, for example `INT`")
	return cmd
}
