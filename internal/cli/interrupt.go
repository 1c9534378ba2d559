package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newInterrupt(s *session) *cobra.Command {
	return s.control("interrupt", "Ask the agent of a run to leave its turn",
		func(ctx context.Context, run Recorded) error { return run.Interrupt(ctx) })
}

// control is a command that has one thing done to a run that has not ended.
func (s *session) control(name, short string, do func(context.Context, Recorded) error) *cobra.Command {
	return &cobra.Command{
		Use:               name + " RUN",
		Short:             short,
		Args:              exactly("a run"),
		ValidArgsFunction: s.completeRuns(true),
		RunE: command(func(_ *cobra.Command, args []string) error {
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			return do(context.Background(), run)
		}),
	}
}
