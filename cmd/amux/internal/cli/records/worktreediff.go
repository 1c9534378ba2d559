package records

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// NewCmdWorktreeDiff makes amux worktree diff.
func NewCmdWorktreeDiff(a *app.App) *cobra.Command {
	o := &DiffOptions{Process: a.Process, Print: a.Print, Runs: a.Runs}
	cmd := &cobra.Command{
		Use:   "diff NAME",
		Short: "Show what a worktree holds",
		Long: `Compare the files of a worktree as they are now with the commit that it was made of:
what is committed there, what is not, and files that git does not know. Ignored files do
not count. It is shown as amux diff shows a run.`,
		Example: "  amux worktree diff login\n  amux worktree diff login --stat\n  amux worktree diff login > login.patch",
		Args:    app.ExactArgs("a worktree"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			h, err := a.Opener.ForRuns()
			if err != nil {
				return err
			}
			d, err := h.Worktrees().Diff(context.Background(), args[0])
			if err != nil {
				return err
			}
			defer d.Close()
			return showDiff(o, d, diffJSON{Worktree: args[0], Root: d.Root(), Live: true})
		}),
	}
	o.addFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("stat", "name-only", "json")
	return cmd
}
