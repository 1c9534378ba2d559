package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newPause(s *session) *cobra.Command {
	return s.control("pause", "Stop every process of a run where it stands",
		func(ctx context.Context, run Recorded) error { return run.Pause(ctx) })
}
