package plugin

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host/install"
)

// PruneOptions are what amux plugin prune needs.
type PruneOptions struct {
	Print    *app.Printer
	Plugins  *app.Plugins
	LockFile func() (string, error) // of the project; empty: no project

	DryRun bool
	JSON   bool
}

// NewCmdPrune makes amux plugin prune.
func NewCmdPrune(a *app.App) *cobra.Command {
	o := &PruneOptions{Print: a.Print, Plugins: a.Plugins, LockFile: projectLock(a)}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove plugin versions that are not in use",
		Long: `Remove the versions of plugins that neither your lock nor that of the project here
names. Live runs keep theirs; a rollback to a removed version is no longer possible.`,
		Example: "  amux plugin prune --dry-run\n  amux plugin prune",
		Args:    app.ExactArgs(),
		RunE:    app.Command(func(*cobra.Command, []string) error { return prune(o) }),
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only list what would be removed")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func prune(o *PruneOptions) error {
	in, err := o.Plugins.Installer("")
	if err != nil {
		return err
	}
	keep := &install.Lock{}
	if file, err := o.LockFile(); err != nil {
		return err
	} else if file != "" {
		if keep, err = install.ReadProjectLock(file); err != nil {
			return err
		}
	}
	unused, err := in.Prune(keep, o.DryRun)
	if err == nil {
		err = o.Plugins.RemoveCopies()
	}
	if err != nil {
		return err
	}
	if o.JSON {
		return o.Print.JSON(append([]install.Unused{}, unused...))
	}
	var size int64
	for _, u := range unused {
		size += u.Size
		o.Print.Notef("  %s %s", u.Name, u.Version)
	}
	did := "removed"
	if o.DryRun {
		did = "would remove"
	}
	o.Print.Notef("%s %s, %s bytes", did, render.Plural(len(unused), "version"), render.Number(size))
	return nil
}
