package agents

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
)

// agentPluginJSON is one of the agent's own plugins in --json.
type agentPluginJSON struct {
	ID          string `json:"id"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	Enabled     bool   `json:"enabled"`
	Source      string `json:"source,omitempty"`
	Path        string `json:"path,omitempty"`
}

// PluginsOptions are what amux agents plugins list needs.
type PluginsOptions struct {
	Print *app.Printer
	Host  func() (app.Host, error)

	Agent string
	JSON  bool
}

// NewCmdPlugins makes amux agents plugins.
func NewCmdPlugins(a *app.App) *cobra.Command {
	list := newCmdPluginsList(a)
	cmd := app.Group(&cobra.Command{
		Use: "plugins", Aliases: []string{"plugin", "extensions"}, Short: "List, install, remove the agent's own extensions",
		Long: `List, install and remove the agent's own plugins or extensions, by its own command.
The agent uses them without amux too. The plugins of amux are in amux plugin.`,
		ValidArgsFunction: a.CompleteAgent,
	}, list, newCmdPluginsInstall(a), newCmdPluginsRemove(a))
	cmd.Flags().AddFlag(list.Flags().Lookup("json"))
	none := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { // amux agents plugins AGENT is the list
		if len(args) != 1 {
			return none(cmd, args)
		}
		return list.RunE(list, args)
	}
	return cmd
}

func newCmdPluginsList(a *app.App) *cobra.Command {
	o := &PluginsOptions{Print: a.Print, Host: a.Opener.Host}
	cmd := &cobra.Command{
		Use:   "list AGENT",
		Short: "List the agent's own extensions",
		Long: `List the agent's own plugins or extensions, as its own command reports them. amux
changes nothing. The plugins of amux are in amux plugin list.`,
		Example:           "  amux agents plugins list claude\n  amux agents plugins list gemini --json | jq -r '.[].id'",
		Args:              app.ExactArgs("an agent"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Agent = args[0]
			return plugins(o)
		}),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func newCmdPluginsInstall(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "install AGENT SOURCE", Aliases: []string{"add"},
		Short: "Install one of the agent's own extensions",
		Long: `Install a plugin or extension of the agent's own, by its own command and at most for
five minutes. SOURCE is what that command takes: NAME@MARKETPLACE for Claude Code and
Codex, whose marketplaces you add with their own commands; a folder (./NAME), an address
or a package for the others. An extension may run programs on this machine: amux does not
look into it, and where the agent would ask whether you trust it amux answers yes.`,
		Example:           "  amux agents plugins install claude formatter@my-team\n  amux agents plugins install gemini https://github.com/acme/extension",
		Args:              app.ExactArgs("an agent", "a source"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(cmd *cobra.Command, args []string) error {
			h, err := a.Opener.Host()
			if err != nil {
				return err
			}
			source := args[1]
			if strings.HasPrefix(source, ".") { // the agent's command runs in the project
				source = a.Process.Abs(source)
			}
			if err := h.Own(args[0]).AddPlugin(cmd.Context(), source); err != nil {
				return err
			}
			a.Print.Notef("installed %s for %s", source, args[0])
			return nil
		}),
	}
}

func newCmdPluginsRemove(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "remove AGENT PLUGIN", Aliases: []string{"rm", "uninstall"},
		Short:             "Remove one of the agent's own extensions",
		Long:              "Remove a plugin or extension of the agent's own, by its own command. PLUGIN is as the\nlist has it.",
		Example:           "  amux agents plugins remove claude formatter@my-team",
		Args:              app.ExactArgs("an agent", "a plugin"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(cmd *cobra.Command, args []string) error {
			h, err := a.Opener.Host()
			if err != nil {
				return err
			}
			if err := h.Own(args[0]).RemovePlugin(cmd.Context(), args[1]); err != nil {
				return err
			}
			a.Print.Notef("removed %s from %s", args[1], args[0])
			return nil
		}),
	}
}

func plugins(o *PluginsOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	list, err := h.Own(o.Agent).Plugins(context.Background())
	if err != nil {
		return err
	}
	plugins := []agentPluginJSON{} // [] in JSON
	for _, p := range list {
		plugins = append(plugins, agentPluginJSON{p.Id, p.Version, p.Description, !p.Disabled, p.Source, p.Path})
	}
	switch {
	case o.JSON:
		return o.Print.JSON(plugins)
	case len(plugins) == 0:
		o.Print.Notef("%s has no extensions of its own", o.Agent)
		return nil
	}
	rows := [][]string{{"PLUGIN", "VERSION", "", "SOURCE"}}
	for _, p := range plugins {
		state := "enabled"
		if !p.Enabled {
			state = "disabled"
		}
		rows = append(rows, []string{render.String(p.ID), render.Dash(p.Version), state, render.Dash(p.Source)})
	}
	o.Print.Table(rows)
	return nil
}
