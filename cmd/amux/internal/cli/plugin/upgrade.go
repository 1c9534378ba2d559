package plugin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install"
)

// UpgradeOptions are what amux plugin upgrade needs.
type UpgradeOptions struct {
	Plugins       *app.Plugins
	Interruptible func(func(ctx context.Context) error) error
	Each          func(names []string, do func(name string) error) error
	Trust

	Names    []string
	All      bool
	Rollback bool
}

// NewCmdUpgrade makes amux plugin upgrade.
func NewCmdUpgrade(a *app.App) *cobra.Command {
	o := &UpgradeOptions{Plugins: a.Plugins, Interruptible: a.Interruptible, Each: a.Each, Trust: newTrust(a)}
	cmd := &cobra.Command{
		Use:   "upgrade [PLUGIN | --all]",
		Short: "Upgrade plugins to the newest allowed version",
		Long: `Upgrade a plugin to the newest version that its constraint allows, from the source that
it was installed from. The old version stays until amux plugin prune: runs that use it
go on, and --rollback returns to it.`,
		Example: `  amux plugin upgrade acme
  amux plugin upgrade --all --dry-run
  amux plugin upgrade acme --rollback`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.All && (len(args) > 0 || o.Rollback):
				return app.Usagef("--all cannot be combined with a plugin or --rollback")
			case o.All:
				return nil
			}
			return app.ExactArgs("a plugin")(cmd, args)
		},
		ValidArgsFunction: a.Plugins.Complete,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Names = args
			if o.Rollback {
				return rollback(o)
			}
			return upgrade(o)
		}),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&o.All, "all", false, "upgrade every plugin that is neither pinned nor linked")
	cmd.Flags().BoolVar(&o.Rollback, "rollback", false, "return to the version that was active before")
	o.addFlags(cmd.Flags())
	return cmd
}

func rollback(o *UpgradeOptions) error {
	in, err := o.Plugins.Installer("")
	if err != nil {
		return err
	}
	result, err := in.Rollback(o.Names[0])
	if err != nil {
		return err
	}
	o.Print.Notef("%s is at %s again (was %s)", result.Name, result.Version, result.Previous)
	return o.printResults([]*install.Result{result}, nil)
}

func upgrade(o *UpgradeOptions) error {
	in, err := o.Plugins.Installer("")
	if err != nil {
		return err
	}
	names := o.Names
	if o.All {
		lock, err := install.ReadLock(in.LockFile())
		if err != nil {
			return err
		}
		for _, entry := range lock.Plugins {
			if why := entry.Fixed(); why != "" {
				o.Print.Notef("%s %s %s", entry.Name, entry.Version, why)
			} else {
				names = append(names, entry.Name)
			}
		}
	}
	results := []*install.Result{}
	err = o.Interruptible(func(ctx context.Context) error {
		return o.Each(names, func(name string) error {
			req, err := o.request()
			if err != nil {
				return err
			}
			result, err := in.Upgrade(ctx, name, req)
			if err == nil {
				o.report(result)
				results = append(results, result)
			}
			return err
		})
	})
	return o.printResults(results, err)
}
