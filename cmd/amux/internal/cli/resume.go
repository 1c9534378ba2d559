package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newResume(s *session) *cobra.Command {
	return s.control("resume", "Let a paused run go on", "Let a paused run go on."+finishedNeeded,
		func(ctx context.Context, run Recorded) error { return run.Resume(ctx) }, false)
}
