package agents

import (
	"context"

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

// PluginsOptions are what amux agents plugins needs.
type PluginsOptions struct {
	Print *app.Printer
	Host  func() (app.Host, error)

	Agent string
	JSON  bool
}

// NewCmdPlugins makes amux agents plugins.
func NewCmdPlugins(a *app.App) *cobra.Command {
	o := &PluginsOptions{Print: a.Print, Host: a.Opener.Host}
	cmd := &cobra.Command{
		Use:   "plugins AGENT",
		Short: "List the agent's own extensions",
		Long: `List the agent's own plugins or extensions, as its own command reports them. amux
changes nothing. The plugins of amux are in amux plugin list.`,
		Example:           "  amux agents plugins claude\n  amux agents plugins gemini --json | jq -r '.[].id'",
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

func plugins(o *PluginsOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	list, err := h.AgentPlugins(context.Background(), o.Agent)
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
