package worktree

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
)

func newCmdPrune(o *Options) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove the worktrees that hold nothing",
		Long: `Remove every worktree that no run uses and that holds nothing that is not elsewhere: no
change, no new file, no commit that is on no other branch. Ignored files do not count.
What you merged but did not commit counts, until you drop the worktree.`,
		Example: "  amux worktree prune --dry-run\n  amux worktree prune",
		Args:    app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error {
			trees, err := o.open()
			if err != nil {
				return err
			}
			names, err := trees.Prune(context.Background(), dry)
			for _, name := range names {
				o.Print.Outf("%s\n", name)
			}
			did := "removed"
			if dry {
				did = "would remove"
			}
			o.Print.Notef("%s %s", did, render.Plural(len(names), "worktree"))
			return err
		}),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only list what would be removed")
	return cmd
}
