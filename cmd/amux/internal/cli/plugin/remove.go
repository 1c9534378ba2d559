package plugin

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/pluginapi"
)

// RemoveOptions are what amux plugin remove needs.
type RemoveOptions struct {
	Print   *app.Printer
	Host    func() (app.Host, error)
	Plugins *app.Plugins

	Plugin  string
	Version string // empty: all
	JSON    bool
}

// NewCmdRemove makes amux plugin remove.
func NewCmdRemove(a *app.App) *cobra.Command {
	o := &RemoveOptions{Print: a.Print, Host: a.Opener.Host, Plugins: a.Plugins}
	cmd := &cobra.Command{
		Use: "remove PLUGIN", Aliases: []string{"rm", "uninstall"},
		Short: "Remove a plugin",
		Long: `Remove a plugin, or one version of it. amux refuses to remove a plugin that a live run
uses, or a bundled one.`,
		Example:           "  amux plugin remove acme\n  amux plugin remove acme --version 1.1.0",
		Args:              app.ExactArgs("a plugin"),
		ValidArgsFunction: a.Plugins.Complete,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Plugin = args[0]
			return remove(o)
		}),
	}
	cmd.Flags().StringVar(&o.Version, "version", "", "remove only this `VERSION`")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func remove(o *RemoveOptions) error {
	in, err := o.Plugins.Installer("")
	if err != nil {
		return err
	}
	r, err := o.Plugins.Registry(false)
	if err != nil {
		return err
	}
	plugins := r.List()
	for _, p := range plugins {
		if p.Name == o.Plugin && p.Origin == registry.OriginBundled {
			return pluginapi.Errorf(pluginapi.CodePlugin, "plugin %s is bundled with amux and cannot be removed", o.Plugin)
		}
	}
	h, err := o.Host()
	if err != nil {
		return err
	}
	if users, err := usersOf(h, o.Plugin, o.Version); err != nil {
		return err
	} else if len(users) > 0 {
		return pluginapi.Errorf(pluginapi.CodePlugin, "plugin %s is used by run %s", o.Plugin, strings.Join(users, ", ")).
			WithHint("wait for its end, or: amux stop %s", users[0])
	}
	removed, err := in.Remove(o.Plugin, o.Version)
	if err != nil {
		if e := pluginapi.AsError(err); e.Code == pluginapi.CodePluginNotFound && o.Version == "" {
			return app.NotInstalled(o.Plugin, plugins)
		}
		return err
	}
	if err := o.Plugins.RemoveCopies(); err != nil {
		return err
	}
	o.Print.Notef("removed %s %s", o.Plugin, strings.Join(removed, ", "))
	if o.JSON {
		return o.Print.JSON(removed)
	}
	return nil
}

// usersOf returns the live runs that use a plugin.
func usersOf(h app.Records, name, version string) ([]string, error) {
	runs, err := h.Live(context.Background())
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
