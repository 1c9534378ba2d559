package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newDeny(s *session) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "deny RUN [ID]",
		Short:             "Refuse what the agent of a run asks",
		Long:              "Refuse what the agent of a run asks leave for, or an answer to its question. Without\nID it is the one that waits." + finishedNeeded,
		Args:              between(1, 2, "a run", "an id"),
		ValidArgsFunction: s.completeRuns(true),
		RunE: command(func(_ *cobra.Command, args []string) error {
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			return run.Deny(context.Background(), optional(args, 1), reason)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "tell the agent why")
	return cmd
}
