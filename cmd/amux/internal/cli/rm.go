package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// deleter removes records.
type deleter interface {
	Delete(ctx context.Context, ref string) (host.Outcome, error)
}

func newRemove(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "rm RUN…",
		Short: "Remove the records of runs that have ended",
		Long:  "Remove the records of runs that have ended. A run that has not is left alone: stop it\nfirst.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly("a run")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: s.completeRuns(false),
		RunE: command(func(_ *cobra.Command, args []string) error {
			h, err := s.runsHost()
			if err != nil {
				return err
			}
			var failed error
			for _, ref := range args {
				s.recoverRun(h, ref)
				_, err := h.Delete(context.Background(), ref)
				if e := pluginapi.AsError(err); e != nil {
					s.say(e, "", "") // the others are removed all the same
					if failed == nil {
						failed = exitError(e.Code.Info().Exit)
					}
				}
			}
			return failed
		}),
	}
}
