package cli

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host"
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
			result, err := s.wait(run)
			if err == nil {
				err = s.checked(run.ID())
			}
			if err != nil || result.Err == nil {
				return err
			}
			s.say(result.Err, result.RunID, run.Info().Agent)
			return exitError(result.Err.Code.Info().Exit)
		}),
		ValidArgsFunction: s.completeRuns(true),
	}
}

// wait waits for the end of a run. One whose host dies gets another, or the end
// that its host has not made.
func (s *session) wait(run Recorded) (host.Result, error) {
	result := run.Wait()
	for range recoverTries {
		if result.Err == nil || result.Err.Code != pluginapi.CodeHostGone || run.Info().End != nil {
			break
		}
		var err error
		if run, err = s.recorded(run.ID()); err != nil {
			return result, err
		}
		result = run.Wait()
	}
	return result, nil
}

// recoverTries is how often the end of a run whose host has died is asked for:
// another process may be at it.
const recoverTries = 5
