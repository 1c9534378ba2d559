package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newAnswer(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "answer RUN [ID] TEXT",
		Short: "Answer the question of a run's agent",
		Long: `Answer the question of a run's agent. Without ID it is the one that waits. Where the
agent asks several at once, TEXT is a JSON object: question → answer.` + finishedNeeded,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 3 {
				return nil
			}
			return exactly("a run", "an answer")(cmd, args)
		},
		ValidArgsFunction: s.completeRuns(true),
		RunE: command(func(_ *cobra.Command, args []string) error {
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			id := ""
			if len(args) == 3 {
				id = args[1]
			}
			return run.Answer(context.Background(), id, args[len(args)-1])
		}),
	}
}
