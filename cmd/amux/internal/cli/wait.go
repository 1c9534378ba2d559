package cli

import (
	"time"

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
	var try patience
	for result.Err != nil && result.Err.Code == pluginapi.CodeHostGone && run.Info().End == nil && try.again(run.Info().Events) {
		var err error
		if run, err = s.recorded(run.ID()); err != nil {
			return result, err
		}
		result = run.Wait()
	}
	return result, nil
}

// recoverPatience is how long who follows a run whose host has died waits for another
// host, or for the end that somebody makes of the journal, while nothing comes.
const recoverPatience = 30 * time.Second

// patience says whether it is worth to look again for somebody who finishes a run's
// record. Hosts may die one after the other: each event is a new beginning.
type patience struct {
	seen  uint64
	since time.Time
}

// again waits a little. seen is the last event that there is.
func (p *patience) again(seen uint64) bool {
	now := time.Now()
	if p.since.IsZero() || seen > p.seen {
		p.seen, p.since = seen, now
	}
	if now.Sub(p.since) > recoverPatience {
		return false
	}
	time.Sleep(min(now.Sub(p.since)/4+10*time.Millisecond, time.Second))
	return true
}
