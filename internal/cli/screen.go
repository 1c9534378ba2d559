package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/vt"
	"github.com/amux-dev/amux/internal/render"
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
				display = follow(display, piece)
			}
			if display == nil {
				return nil // nothing has been started on it yet
			}
			_, err = io.WriteString(s.app.IO.Out, render.String(display.Text()))
			return ignoreClosed(err)
		}),
	}
}

// follow does what became of a run's terminal to its screen and returns it, or the
// screen of a new terminal. It is nil before there is one.
func follow(display *vt.Screen, p host.TerminalPiece) *vt.Screen {
	switch {
	case p.Opened:
		return vt.NewScreen(p.Cols, p.Rows)
	case display == nil:
	case p.Cols > 0:
		display.Resize(p.Cols, p.Rows)
	default:
		display.Write(p.Output)
	}
	return display
}
