package records

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// UndoOptions are what amux undo needs.
type UndoOptions struct {
	Print *app.Printer
	Runs  Runs

	Run string
}

// NewCmdUndo makes amux undo.
func NewCmdUndo(a *app.App) *cobra.Command {
	o := &UndoOptions{Print: a.Print, Runs: a.Runs}
	cmd := &cobra.Command{
		Use:   "undo [RUN]",
		Short: "Undo what a run changed",
		Long: `Give the files that a run changed the content and mode they had when it started, and
remove the files that it made. Only files count: commits, branches and the index of the
repository stay as they are.

If one of these files was changed after the run, amux names it and undoes nothing. What
was undone can be made again with amux diff RUN --apply .`,
		Example:           "  amux undo 86CCFA\n  amux diff 86CCFA --apply .",
		Args:              app.RangeArgs(0, "a run"),
		ValidArgsFunction: a.Runs.Complete,
		RunE: a.Runs.Of(app.HasEnded, func(_ *cobra.Command, args []string) error {
			o.Run = args[0]
			return undo(o)
		}),
	}
	return cmd
}

func undo(o *UndoOptions) error {
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	files, err := run.Changes().Undo(context.Background())
	if err != nil {
		return err
	}
	o.Print.Notef("undid %s", changed(files))
	return nil
}
