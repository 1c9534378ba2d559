package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
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
	for result.Err != nil && result.Err.Code == pluginapi.CodeHostGone && run.Info().End == nil && try.again(run.Info(), run.Info().Events) {
		var err error
		if run, err = s.recorded(run.ID()); err != nil {
			return result, err
		}
		result = run.Wait()
	}
	if result.Err != nil {
		result.Err = pluginapi.AsError(unended(run, result.Err))
	}
	return result, nil
}

// unended is err, but for a run whose record has no end because its disk took no more:
// then it says that.
func unended(run Recorded, err error) error {
	info := run.Info()
	if !errors.Is(err, pluginapi.CodeHostGone) || !isCutOff(info) {
		return err
	}
	return pluginapi.Errorf(pluginapi.CodeDiskFull, "the disk that holds the record of run %s is full; its last events are missing", info.ID).
		WithHint("free some space; then: amux logs %s", render.ShortID(info.ID))
}

// isCutOff reports that a run has ended and the disk did not take its end.
func isCutOff(info host.RunInfo) bool { return info.End == nil && info.Code == pluginapi.CodeDiskFull }

// recoverPatience is how long who follows a run whose host has died waits for another
// host, or for the end that somebody makes of the journal, while nothing comes.
const recoverPatience = 30 * time.Second

// patience says whether it is worth to look again for somebody who finishes a run's
// record. Hosts may die one after the other: each event is a new beginning.
type patience struct {
	seen  uint64
	since time.Time
}

// again waits a little. seen is the last event that there is. On a full disk once is
// enough.
func (p *patience) again(info host.RunInfo, seen uint64) bool {
	now := time.Now()
	if isCutOff(info) && !p.since.IsZero() {
		return false
	}
	if p.since.IsZero() || seen > p.seen {
		p.seen, p.since = seen, now
	}
	if now.Sub(p.since) > recoverPatience {
		return false
	}
	time.Sleep(min(now.Sub(p.since)/4+10*time.Millisecond, time.Second))
	return true
}
