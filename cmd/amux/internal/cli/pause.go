package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newPause(s *session) *cobra.Command {
	return s.control("pause", "Stop every process of a run where it stands",
		"Stop every process of a run where it stands; amux resume lets them go on."+finishedRest,
		func(ctx context.Context, run Recorded) error { return run.Pause(ctx) }, true)
}
