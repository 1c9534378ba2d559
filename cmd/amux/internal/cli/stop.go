package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// canceler ends runs, whoever hosts them.
type canceler interface {
	Cancel(ctx context.Context, ref string, kill bool) (host.Outcome, error)
}

func newStop(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "stop RUN",
		Short: "End a run: TERM to all its processes, the grace time, KILL",
		Long: `End a run, whoever hosts it: TERM to all its processes, the grace time that it was
started with, KILL. It returns when that was asked for; amux wait RUN waits for
the end.` + finishedRest,
		Args:              exactly("a run"),
		ValidArgsFunction: s.completeRuns(true),
		RunE:              command(func(_ *cobra.Command, args []string) error { return s.cancel(args[0], false) }),
	}
}

func (s *session) cancel(ref string, kill bool) error {
	h, err := s.runsHost()
	if err != nil {
		return err
	}
	outcome, err := h.Cancel(context.Background(), ref, kill)
	// Only then: what was asked does not wait for the host that tells the end.
	if outcome != host.NotFound {
		s.recoverRun(h, ref)
	}
	if errors.Is(err, pluginapi.CodeHostGone) {
		outcome, err = h.Cancel(context.Background(), ref, kill) // it has ended by now
	}
	if outcome == host.AlreadyFinished {
		s.alreadyFinished(ref)
		return nil
	}
	return err
}

// alreadyFinished says why nothing was done.
func (s *session) alreadyFinished(ref string) { s.errf("run %s has already finished", ref) }
