package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

func newPluginMirror(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "mirror DIR [SOURCE…]",
		Short: "Copy releases into a tree that others install from",
		Long: `Copy whole releases, for all platforms, into a tree of files: those of the sources,
or of all plugins that are installed. The tree may lie on a share or behind any web
server; users name it by --mirror or in sources.toml:

  [[mirror]]
  root = "https://plugins.example.com"
  include = ["acme-*"]

The first mirror whose patterns match a plugin is the only one asked for it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly("a folder")(cmd, args)
			}
			return nil
		},
		RunE: command(func(_ *cobra.Command, args []string) error {
			in, err := s.installer("")
			if err != nil {
				return err
			}
			type mirrored struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			}
			list := []mirrored{}
			add := func(ctx context.Context, src install.Source, constraint string, locked *install.Locked) error {
				name, version, err := in.AddToMirror(ctx, s.abs(args[0]), src, constraint, locked)
				if err == nil {
					s.errf("mirrored %s %s", name, version)
					list = append(list, mirrored{name, version})
				}
				return err
			}
			err = s.interruptible(func(ctx context.Context) error {
				if len(args) > 1 {
					return s.each(args[1:], func(source string) error {
						place, err := in.Resolve(source, s.app.Cwd)
						if err != nil {
							return err
						}
						if place.Source == nil {
							return pluginapi.Errorf(pluginapi.CodeValidation, "%s is a folder under development, no release", source).
								WithHint("make one with: amux plugin package")
						}
						return add(ctx, place.Source, place.Constraint, nil)
					})
				}
				lock, err := install.ReadLock(in.LockFile())
				if err != nil {
					return err
				}
				return s.each(lock.Names(), func(name string) error {
					entry := lock.Get(name)
					if entry.Link != "" {
						s.warnf("plugin %s is linked to %s, and is left out", name, entry.Link)
						return nil
					}
					src, err := in.Reopen(name, entry.Source)
					if err != nil {
						return err
					}
					return add(ctx, src, install.ExactConstraint(src, entry.Version), entry)
				})
			})
			if asJSON {
				if printErr := s.printJSON(list); err == nil {
					err = printErr
				}
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
