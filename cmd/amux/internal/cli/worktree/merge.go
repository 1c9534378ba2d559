package worktree

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
)

func newCmdMerge(o *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "merge NAME",
		Short: "Merge a worktree into your files",
		Long: `Bring what a worktree holds, committed there or not, into the files of the work tree that
it was made from. amux merges as git does and changes files alone: look at them, then
commit them yourself. Your index and branches stay as they are.

Nothing is changed if your work tree has changes that are not committed, if both changed
the same lines, or while a run uses the worktree. To keep the commits of the agent, commit
what is left in the worktree and merge its branch: git merge amux/NAME.`,
		Example: "  amux worktree merge login\n  git add -A && git commit && amux worktree drop login",
		Args:    app.ExactArgs("a worktree"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			trees, err := o.open()
			if err != nil {
				return err
			}
			root, files, err := trees.Merge(context.Background(), args[0])
			if err != nil {
				return err
			}
			if len(files) == 0 {
				o.Print.Notef("worktree %s has nothing that %s has not", args[0], root)
				return nil
			}
			added, deleted := 0, 0
			for _, f := range files {
				added += f.Added
				deleted += f.Deleted
			}
			o.Print.Notef("merged %s into %s; nothing is committed: see git status", render.Changed(len(files), added, deleted), root)
			o.Print.Notef("when you have committed it: amux worktree drop %s", args[0])
			return nil
		}),
	}
}
