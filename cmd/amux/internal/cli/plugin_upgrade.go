package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host/install"
)

func newPluginUpgrade(s *session) *cobra.Command {
	var f trustFlags
	var all, rollback bool
	cmd := &cobra.Command{
		Use:   "upgrade [PLUGIN | --all]",
		Short: "Install the newest version of a plugin that its constraint allows",
		Long: `Install the newest version of a plugin that its constraint allows, from where it was
installed. The old version stays until amux plugin prune: runs that use it go on,
and --rollback goes back to it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case all && (len(args) > 0 || rollback):
				return usage("--all goes with neither a plugin nor --rollback")
			case all:
				return nil
			}
			return exactly("a plugin")(cmd, args)
		},
		ValidArgsFunction: s.completePlugin,
		RunE: command(func(_ *cobra.Command, args []string) error {
			in, err := s.installer("")
			if err != nil {
				return err
			}
			if rollback {
				result, err := in.Rollback(args[0])
				if err != nil {
					return err
				}
				s.errf("%s is at %s again (was %s)", result.Name, result.Version, result.Previous)
				if f.json {
					return s.printJSON([]*install.Result{result})
				}
				return nil
			}
			names := args
			if all {
				lock, err := install.ReadLock(in.LockFile())
				if err != nil {
					return err
				}
				for _, entry := range lock.Plugins {
					if why := entry.Fixed(); why != "" {
						s.errf("%s %s %s", entry.Name, entry.Version, why)
					} else {
						names = append(names, entry.Name)
					}
				}
			}
			results := []*install.Result{}
			err = s.interruptible(func(ctx context.Context) error {
				return s.each(names, func(name string) error {
					req, err := s.request(&f)
					if err != nil {
						return err
					}
					result, err := in.Upgrade(ctx, name, req)
					if err == nil {
						s.installed(result, f.dryRun)
						results = append(results, result)
					}
					return err
				})
			})
			if f.json {
				if printErr := s.printJSON(results); err == nil {
					err = printErr
				}
			}
			return err
		}),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&all, "all", false, "every plugin that is neither pinned nor linked")
	cmd.Flags().BoolVar(&rollback, "rollback", false, "go back to the version that was active before")
	f.add(cmd.Flags())
	return cmd
}
