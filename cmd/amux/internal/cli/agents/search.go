package agents

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host/install/acp"
)

// foundJSON is an agent of a registry in --json.
type foundJSON struct {
	ID          string         `json:"id"`
	Name        string         `json:"name,omitempty"`
	Version     string         `json:"version,omitempty"`
	Description string         `json:"description,omitempty"`
	Repository  string         `json:"repository,omitempty"`
	License     string         `json:"license,omitempty"`
	Methods     []string       `json:"methods"`
	AddedAs     []string       `json:"added_as"`
	Error       *app.ErrorJSON `json:"error,omitempty"`
}

// NewCmdSearch makes amux agents search.
func NewCmdSearch(a *app.App) *cobra.Command {
	registry, asJSON := "", false
	cmd := &cobra.Command{
		Use:   "search [WORD…]",
		Short: "Search an ACP registry for agents",
		Long: `List the agents of an ACP registry that have all of the words in their id, name or
description; without words all of them. amux agents add acp:ID adds one.`,
		Example: `  amux agents search
  amux agents search open source
  amux agents search --registry ./registry.json --json | jq -r '.[].id'`,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			return a.Interruptible(func(ctx context.Context) error { return search(ctx, a, registry, args, asJSON) })
		}),
	}
	addRegistryFlag(cmd, &registry)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func search(ctx context.Context, a *app.App, registry string, words []string, asJSON bool) error {
	s, err := store(a)
	if err != nil {
		return err
	}
	r, err := s.Load(ctx, cmp.Or(source(a, registry), acp.Official))
	if err != nil {
		return err
	}
	added, err := acp.Read(s.Dir)
	if err != nil {
		return err
	}
	found := []foundJSON{} // [] in JSON
	rows := [][]string{{"AGENT", "VERSION", "BY", "ADDED", "DESCRIPTION"}}
	for _, e := range r.Search(words) {
		names := []string{}
		for _, one := range added {
			if one.ID == e.ID && one.Registry == r.Source {
				names = append(names, one.Name+" "+one.Version)
			}
		}
		methods := append([]string{}, e.Methods()...)
		found = append(found, foundJSON{e.ID, e.Name, e.Version, e.Description, e.Repository, e.License, methods, names, app.JSONError(e.Err)})
		by, about := strings.Join(methods, ", "), e.Description
		switch {
		case e.Err != nil:
			by, about = "-", "malformed: "+e.Err.Error()
		case len(methods) == 0:
			by = "not for this platform"
		}
		rows = append(rows, []string{"acp:" + e.ID, render.Dash(e.Version), by, render.Dash(strings.Join(names, ", ")), render.Dash(shorten(about))})
	}
	switch {
	case asJSON:
		return a.Print.JSON(found)
	case len(found) == 0:
		a.Print.Notef("no agent of %s has these words", render.String(r.Source))
		return nil
	}
	a.Print.Table(rows)
	return nil
}

// shorten keeps a description to its part of a line.
func shorten(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
