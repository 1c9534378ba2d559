package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
)

// modelJSON is a model in --json.
type modelJSON struct {
	ID          string   `json:"id"`
	DisplayName string   `json:"display_name,omitempty"`
	Aliases     []string `json:"aliases,omitempty"`
	Default     bool     `json:"default,omitempty"`
}

func newAgentsModels(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "models AGENT",
		Short: "List the models that an agent has, or its adapter knows of",
		Long: `List the models that an agent has, by its own command where it has one, and else those
that its adapter knows of, with their other names. An agent may take others: amux run
--model hands on what it is given.`,
		Args:              exactly("an agent"),
		ValidArgsFunction: s.completeAgent,
		RunE: command(func(_ *cobra.Command, args []string) error {
			h, err := s.theHost()
			if err != nil {
				return err
			}
			a, err := h.Agent(context.Background(), args[0])
			if err == nil {
				err = a.Err
			}
			if err != nil {
				return err
			}
			known := a.Description.GetModels()
			if a.Description.GetCapabilities().GetListModels() {
				if known, err = h.AgentModels(context.Background(), args[0]); err != nil {
					return err
				}
			}
			models := []modelJSON{} // [] in JSON
			for _, m := range known {
				models = append(models, modelJSON{m.Id, m.DisplayName, m.Aliases, m.IsDefault})
			}
			switch {
			case asJSON:
				return s.printJSON(models)
			case len(models) == 0:
				s.errf("%s names no models, and its adapter knows of none; it may have some", args[0])
				return nil
			}
			rows := [][]string{{"MODEL", "NAME", "ALIASES", ""}}
			for _, m := range models {
				note := ""
				if m.Default {
					note = "default"
				}
				rows = append(rows, []string{render.String(m.ID), dash(render.String(m.DisplayName)), dash(strings.Join(m.Aliases, ", ")), note})
			}
			table(s.app.IO.Out, rows)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
