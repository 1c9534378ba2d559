package records

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/cmd/amux/internal/screen"
	"github.com/amux-dev/amux/internal/vt"
)

// ScreenOptions are what amux screen needs.
type ScreenOptions struct {
	Out  io.Writer
	Runs Runs

	Run string
}

// NewCmdScreen makes amux screen.
func NewCmdScreen(a *app.App) *cobra.Command {
	o := &ScreenOptions{Out: a.IO.Out, Runs: a.Runs}
	return &cobra.Command{
		Use:   "screen [RUN]",
		Short: "Show the terminal of a run as text",
		Long: `Show what is on the terminal of a run that was started with --pty, as text. amux
rebuilds it from all output of the agent. For a run that has ended it is the last
screen.`,
		Example:           "  amux screen 86CCFA\n  watch -n 1 amux screen 86CCFA",
		Args:              app.RangeArgs(0, "a run"),
		ValidArgsFunction: a.Runs.Complete,
		RunE: a.Runs.Of(nil, func(_ *cobra.Command, args []string) error {
			o.Run = args[0]
			return showScreen(o)
		}),
	}
}

func showScreen(o *ScreenOptions) error {
	run, err := o.Runs.Open(o.Run)
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
	if _, err = io.WriteString(o.Out, render.String(display.Text())); err != nil {
		return app.IgnoreClosed(err)
	}
	return o.Runs.Check(run.ID())
}
