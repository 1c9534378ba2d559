package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/cmd/amux/internal/screen"
	"github.com/amux-dev/amux/host/vt"
)

func newScreen(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "screen RUN",
		Short: "Show what is on the terminal of a run",
		Long: `Show what is on the terminal of a run that was started with --pty, as text. It is
made of all that the agent has printed. When the run has ended it is what was on
the terminal last.`,
		Args:              exactly("a run"),
		ValidArgsFunction: s.completeRuns(false),
		RunE: command(func(_ *cobra.Command, args []string) error {
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			var display *vt.Screen
			for piece, err := range run.Terminal(context.Background(), false) {
				if err != nil {
					return err
				}
				display = screen.Follow(display, piece)
			}
			if display == nil {
				return nil // nothing has been started on it yet
			}
			if _, err = io.WriteString(s.app.IO.Out, render.String(display.Text())); err != nil {
				return ignoreClosed(err)
			}
			return s.checked(run.ID())
		}),
	}
}
