// Package worktree has the commands about the git worktrees that runs work in: one command a
// file.
package worktree

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// Options are what the commands need.
type Options struct {
	Print *app.Printer
	Host  func() (app.Host, error)
	Runs  interface{ RecoverAll(h app.Host) }
	Width int
}

// NewCmd makes amux worktree. diff is its command of that name.
func NewCmd(a *app.App, diff *cobra.Command) *cobra.Command {
	o := &Options{Print: a.Print, Host: a.Opener.ForRuns, Runs: a.Runs, Width: a.IO.Width}
	subs := []*cobra.Command{newCmdList(o), diff, newCmdMerge(o), newCmdDrop(o), newCmdPrune(o)}
	for _, sub := range subs {
		if sub.Args != nil && sub.Name() != "list" && sub.Name() != "prune" {
			sub.ValidArgsFunction = o.complete
		}
	}
	return app.Group(&cobra.Command{
		Use:     "worktree",
		Aliases: []string{"worktrees"},
		Short:   "Look after the git worktrees that runs work in",
		Long: `amux run --worktree has a run work in a git worktree of its own: a folder below
~/.agent-mux/worktrees, on a branch amux/NAME of your repository, made of its last commit.
Your files, your branches and your index stay as they are until you merge.

While a run uses a worktree nobody removes it. Nobody removes one either that holds what
is nowhere else: changes, new files, or commits on no other branch.`,
		Example: "  amux run claude --worktree=login \"fix the login\"\n  amux worktree list\n  amux worktree merge login\n  amux worktree drop login",
	}, subs...)
}

// open returns the worktrees, when the runs whose host has died have ended: these have the
// lease of theirs no more.
func (o *Options) open() (app.Worktrees, error) {
	h, err := o.Host()
	if err != nil {
		return nil, err
	}
	o.Runs.RecoverAll(h)
	return h.Worktrees(), nil
}

func (o *Options) complete(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	h, err := o.Host()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := h.Worktrees().List(context.Background())
	var names []string
	for _, w := range list {
		names = append(names, w.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
