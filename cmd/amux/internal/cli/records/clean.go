package records

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
)

// CleanOptions are what amux clean needs.
type CleanOptions struct {
	Print *app.Printer
	Host  func() (app.Host, error)
	Runs  Runs

	DryRun bool
}

// NewCmdClean makes amux clean.
func NewCmdClean(a *app.App) *cobra.Command {
	o := &CleanOptions{Print: a.Print, Host: a.Opener.ForRuns, Runs: a.Runs}
	cmd := &cobra.Command{
		Use: "clean", Aliases: []string{"prune"},
		Short: "Remove old records and leftovers",
		Long: `Remove the records of ended runs over the limits (1,000 runs, 30 days, 5 GB, or those of
[keep] in config.toml, whichever comes first; every amux run does that as well), and the
leftovers of processes that died: temporary folders, sockets, copies of plugins that no
run uses, worktrees that were not finished. amux never touches a run that has not ended.

Journals of ended runs are packed, as they are in passing an hour after the end: they
take a fraction of the room, and commands find no difference.`,
		Example: "  amux clean --dry-run\n  amux clean",
		Args:    app.ExactArgs(),
		RunE:    app.Command(func(*cobra.Command, []string) error { return clean(o) }),
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only list what would be removed")
	return cmd
}

func clean(o *CleanOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	if !o.DryRun {
		o.Runs.RecoverAll(h)
	}
	removed, err := h.Clean(context.Background(), o.DryRun)
	var size int64
	rows := make([][]string, 0, len(removed))
	for _, r := range removed {
		size += r.Size
		rows = append(rows, []string{r.Kind, filepath.FromSlash(r.Path), r.Why})
	}
	o.Print.Table(rows)
	did := "removed"
	if o.DryRun {
		did = "would remove"
	}
	o.Print.Notef("%s %s, %s bytes", did, render.Plural(len(removed), "item"), render.Number(size))
	return err
}
