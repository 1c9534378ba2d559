package cli

import (
	"context"

	"github.com/spf13/cobra"

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

func newAgentsPlugins(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plugins AGENT",
		Short: "List an agent's own plugins or extensions, which are none of amux",
		Long: `List the plugins, or extensions, that you have added to an agent, as the agent's own
command tells. Nothing is changed. Plugins of amux are in amux plugin list.`,
		Args:              exactly("an agent"),
		ValidArgsFunction: s.completeAgent,
		RunE: command(func(_ *cobra.Command, args []string) error {
			h, err := s.theHost()
			if err != nil {
				return err
			}
			list, err := h.AgentPlugins(context.Background(), args[0])
			if err != nil {
				return err
			}
			plugins := []agentPluginJSON{} // [] in JSON
			for _, p := range list {
				plugins = append(plugins, agentPluginJSON{p.Id, p.Version, p.Description, !p.Disabled, p.Source, p.Path})
			}
			switch {
			case asJSON:
				return s.printJSON(plugins)
			case len(plugins) == 0:
				s.errf("%s has no plugins of its own", args[0])
				return nil
			}
			rows := [][]string{{"PLUGIN", "VERSION", "", "SOURCE"}}
			for _, p := range plugins {
				state := "enabled"
				if !p.Enabled {
					state = "disabled"
				}
				rows = append(rows, []string{render.String(p.ID), dash(render.String(p.Version)), state, dash(render.String(p.Source))})
			}
			table(s.app.IO.Out, rows)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
