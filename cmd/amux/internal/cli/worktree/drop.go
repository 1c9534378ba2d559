package worktree

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

func newCmdDrop(o *Options) *cobra.Command {
	var discard bool
	cmd := &cobra.Command{
		Use: "drop NAME…", Aliases: []string{"rm"},
		Short: "Remove worktrees and their branches",
		Long: `Remove worktrees, their branches amux/NAME, and their entries in git worktree list. One
that a run uses is never removed: stop the run first. One that holds what is nowhere else
is removed only if amux worktree merge has merged all of it, or with --discard. What a
run changed can still be shown: amux diff RUN.`,
		Example: "  amux worktree drop login\n  amux worktree drop --discard codex-86ccfa gemini-dgxp98",
		Args:    app.SomeArgs("a worktree"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			trees, err := o.open()
			if err != nil {
				return err
			}
			return app.Each(o.Print, args, func(name string) error {
				err := trees.Drop(context.Background(), name, discard)
				if err == nil {
					o.Print.Notef("dropped worktree %s", name)
				}
				return err
			})
		}),
	}
	cmd.Flags().BoolVar(&discard, "discard", false, "give up what the worktree holds")
	return cmd
}
