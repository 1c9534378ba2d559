package agents

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
)

// modelJSON is a model in --json.
type modelJSON struct {
	ID          string   `json:"id"`
	DisplayName string   `json:"display_name,omitempty"`
	Aliases     []string `json:"aliases,omitempty"`
	Default     bool     `json:"default,omitempty"`
}

// ModelsOptions are what amux agents models needs.
type ModelsOptions struct {
	Print *app.Printer
	Host  func() (app.Host, error)

	Agent string
	JSON  bool
}

// NewCmdModels makes amux agents models.
func NewCmdModels(a *app.App) *cobra.Command {
	o := &ModelsOptions{Print: a.Print, Host: a.Opener.Host}
	cmd := &cobra.Command{
		Use:   "models AGENT",
		Short: "List an agent's models",
		Long: `List the models of an agent with their aliases. The agent's own command lists them where
it has one; otherwise these are the models that the adapter knows. An agent may accept
others: amux run --model passes any name on.`,
		Example:           "  amux agents models claude\n  amux agents models opencode --json | jq -r '.[].id'",
		Args:              app.ExactArgs("an agent"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Agent = args[0]
			return models(o)
		}),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func models(o *ModelsOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	a, err := working(h, o.Agent)
	if err != nil {
		return err
	}
	known := a.Description.GetModels()
	if a.Description.GetCapabilities().GetListModels() {
		if known, err = h.AgentModels(context.Background(), o.Agent); err != nil {
			return err
		}
	}
	models := []modelJSON{} // [] in JSON
	for _, m := range known {
		models = append(models, modelJSON{m.Id, m.DisplayName, m.Aliases, m.IsDefault})
	}
	switch {
	case o.JSON:
		return o.Print.JSON(models)
	case len(models) == 0:
		o.Print.Notef("no models are known for %s; it may have some all the same", o.Agent)
		return nil
	}
	rows := [][]string{{"MODEL", "NAME", "ALIASES", ""}}
	for _, m := range models {
		note := ""
		if m.Default {
			note = "default"
		}
		rows = append(rows, []string{render.String(m.ID), render.Dash(m.DisplayName), render.Dash(strings.Join(m.Aliases, ", ")), note})
	}
	o.Print.Table(rows)
	return nil
}
