package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/pluginapi"
)

func newPluginRemove(s *session) *cobra.Command {
	var version string
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "remove PLUGIN",
		Short:             "Remove a plugin",
		Long:              "Remove a plugin, or one version of it. One that a run uses is left alone, and so is\nwhat came with amux.",
		Args:              exactly("a plugin"),
		ValidArgsFunction: s.completePlugin,
		RunE: command(func(_ *cobra.Command, args []string) error {
			name := args[0]
			in, err := s.installer("")
			if err != nil {
				return err
			}
			r, err := s.registry(false)
			if err != nil {
				return err
			}
			plugins := r.List()
			for _, p := range plugins {
				if p.Name == name && p.Origin == registry.OriginBundled {
					return pluginapi.Errorf(pluginapi.CodePlugin, "plugin %s came with amux and goes with it", name)
				}
			}
			h, err := s.theHost()
			if err != nil {
				return err
			}
			if users, err := usersOf(h, name, version); err != nil {
				return err
			} else if len(users) > 0 {
				return pluginapi.Errorf(pluginapi.CodePlugin, "plugin %s is used by %s", name, strings.Join(users, ", ")).
					WithHint("wait for its end, or: amux stop %s", users[0])
			}
			removed, err := in.Remove(name, version)
			if err != nil {
				if e := pluginapi.AsError(err); e.Code == pluginapi.CodePluginNotFound && version == "" {
					return s.notInstalled(name, plugins)
				}
				return err
			}
			if err := s.removeCopies(); err != nil {
				return err
			}
			s.errf("removed %s %s", name, strings.Join(removed, ", "))
			if asJSON {
				return s.printJSON(removed)
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&version, "version", "", "only this `VERSION`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// usersOf are the runs that have not ended and use a plugin.
func usersOf(h interface {
	Runs(ctx context.Context) ([]host.RunInfo, error)
}, name, version string) ([]string, error) {
	runs, err := h.Runs(context.Background())
	if err != nil {
		return nil, err
	}
	var users []string
	for _, r := range runs {
		if r.End == nil && r.Plugin == name && (version == "" || r.PluginVersion == version) {
			users = append(users, render.ShortID(r.ID))
		}
	}
	return users, nil
}
