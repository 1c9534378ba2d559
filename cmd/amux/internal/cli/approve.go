package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"
)

func newApprove(s *session) *cobra.Command {
	var updated string
	cmd := &cobra.Command{
		Use:   "approve RUN [ID]",
		Short: "Grant what the agent of a run asks leave for",
		Long: `Grant what the agent of a run asks leave for. Without ID it is the one request that
waits. The first answer wins, whoever gives it.` + finishedNeeded,
		Args:              between(1, 2, "a run", "an id"),
		ValidArgsFunction: s.completeRuns(true),
		RunE: command(func(_ *cobra.Command, args []string) error {
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			var input json.RawMessage
			if updated != "" {
				input = json.RawMessage(updated)
			}
			return run.Approve(context.Background(), optional(args, 1), input)
		}),
	}
	cmd.Flags().StringVar(&updated, "input", "", "change the tool's input to this `JSON`, where the agent allows it")
	return cmd
}

func optional(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// between demands the first least of the arguments that names lists.
func between(least, most int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		if len(args) > most {
			return exactly(names[:most]...)(cmd, args)
		}
		return exactly(names[:least]...)(cmd, args)
	}
}
