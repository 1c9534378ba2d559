package worktree

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

func newCmdList(o *Options) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List worktrees and what they hold",
		Long: `List the worktrees of all repositories: whether a run uses one, and what it holds that is
nowhere else. First amux finishes what it was killed in the middle of: worktrees that were
being made or removed go, a merge that was cut off is taken back.`,
		Example: "  amux worktree list\n  amux worktree list --json | jq -r '.[] | select(.dirty).path'",
		Args:    app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error {
			trees, err := o.open()
			if err != nil {
				return err
			}
			list, err := trees.List(context.Background())
			if json {
				if list == nil {
					list = []host.Worktree{}
				}
				if err := o.Print.JSON(list); err != nil {
					return err
				}
			} else if len(list) > 0 {
				o.Print.Table(table(list))
			} else if err == nil {
				o.Print.Notef("no worktrees; make one: amux run AGENT --worktree")
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print JSON")
	return cmd
}

func table(list []host.Worktree) [][]string {
	rows := [][]string{{"NAME", "STATE", "CHANGED", "FOLDER"}}
	for _, w := range list {
		changed := "-"
		if w.Files > 0 {
			changed = render.Changed(w.Files, w.Added, w.Deleted)
		}
		rows = append(rows, []string{w.Name, state(w), changed, filepath.FromSlash(w.Path)})
	}
	return rows
}

// state says in words whether a worktree may be removed.
func state(w host.Worktree) string {
	switch {
	case w.Run != "":
		return "in use by " + render.ShortID(w.Run)
	case w.Strange != "":
		return "cannot tell: " + render.Excerpt(w.Strange, 60)
	case w.Merged != nil:
		return "merged"
	case !w.Dirty:
		return "clean"
	}
	var holds []string
	if w.Unsaved > 0 {
		holds = append(holds, fmt.Sprintf("%d not committed", w.Unsaved))
	}
	if w.Commits > 0 {
		holds = append(holds, render.Plural(w.Commits, "commit"))
	}
	return strings.Join(holds, ", ")
}
