package cli

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/pluginapi"
)

func newWait(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "wait RUN",
		Short: "Wait for the end of a run; the exit code is that of amux run",
		Args:  exactly("a run"),
		RunE: command(func(_ *cobra.Command, args []string) error {
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			result := run.Wait()
			for range recoverTries {
				if result.Err == nil || result.Err.Code != pluginapi.CodeHostGone || run.Info().End != nil {
					break
				}
				if run, err = s.recorded(run.ID()); err != nil { // makes the end that its host has not made
					return err
				}
				result = run.Wait()
			}
			if result.Err == nil {
				return nil
			}
			s.say(result.Err, result.RunID, run.Info().Agent)
			return exitError(result.Err.Code.Info().Exit)
		}),
		ValidArgsFunction: s.completeRuns(true),
	}
}

// recoverTries is how often the end of a run whose host has died is asked for:
// another process may be at it.
const recoverTries = 5
