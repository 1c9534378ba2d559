package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/pluginapi"
)

// What the help of a command says of a run that has finished.
const (
	finishedRest   = "\n\nOn a run that has finished there is nothing to do: amux says so and exits 0."
	finishedNeeded = "\n\nOn a run that has finished this fails with RUN_NOT_ACTIVE (exit code 1)."
)

func newInterrupt(s *session) *cobra.Command {
	return s.control("interrupt", "Ask the agent of a run to leave its turn", "Ask the agent of a run to leave its turn."+finishedRest,
		func(ctx context.Context, run Recorded) error { return run.Interrupt(ctx) }, true)
}

// control is a command that has one thing done to a run. rest says that it asks for no
// more than what is so once the run has finished.
func (s *session) control(name, short, long string, do func(context.Context, Recorded) error, rest bool) *cobra.Command {
	return &cobra.Command{
		Use:               name + " RUN",
		Short:             short,
		Long:              long,
		Args:              exactly("a run"),
		ValidArgsFunction: s.completeRuns(true),
		RunE: command(func(_ *cobra.Command, args []string) error {
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			err = do(context.Background(), run)
			if rest && errors.Is(err, pluginapi.CodeRunNotActive) {
				s.alreadyFinished(args[0])
				return nil
			}
			return err
		}),
	}
}
