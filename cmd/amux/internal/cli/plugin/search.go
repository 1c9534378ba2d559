package plugin

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

// foundJSON is a plugin of an index in --json.
type foundJSON struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"` // the newest
	Summary   string   `json:"summary"`
	Agents    []string `json:"agents"`
	Publisher string   `json:"publisher"`
	Key       string   `json:"key"`
	Trusted   bool     `json:"trusted"` // the user trusts that key
	Index     string   `json:"index"`
}

// NewCmdSearch makes amux plugin search.
func NewCmdSearch(a *app.App) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "search [WORD…]",
		Short: "Search the indexes for plugins",
		Long: `List the plugins of the indexes that you have added (amux plugin index add) that have all
of the words in their name, summary, agents or publisher. An index says whose a plugin is;
TRUSTED says whether you trust that publisher's key.`,
		Example: "  amux plugin search\n  amux plugin search goose\n  amux plugin search --json | jq -r '.[].name'",
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			return a.Interruptible(func(ctx context.Context) error { return search(ctx, a, args, asJSON) })
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func search(ctx context.Context, a *app.App, words []string, asJSON bool) error {
	in, err := a.Plugins.Installer("")
	if err != nil {
		return err
	}
	indexes, err := in.Indexes()
	if err == nil && len(indexes) == 0 {
		err = pluginapi.Errorf(pluginapi.CodeConfig, "no index was added").WithHint("add one: amux plugin index add ROOT --key KEY")
	}
	if err != nil {
		return err
	}
	trusted, err := in.Trust()
	if err != nil {
		return err
	}
	keys := map[string]bool{}
	for _, k := range trusted {
		keys[k.Key] = true
	}
	found := []foundJSON{} // [] in JSON
	failed := app.Each(a.Print, names(indexes), func(name string) error {
		for _, x := range indexes {
			if x.Name != name {
				continue
			}
			l, err := in.ReadIndex(ctx, x)
			if err != nil {
				return err
			}
			for _, p := range l.Plugins {
				if has(p, words) {
					publisher := l.Publisher(p)
					found = append(found, foundJSON{p.Name, p.Newest(), p.Summary, p.Agents, p.Publisher, publisher.Key, keys[publisher.Key], x.Name})
				}
			}
		}
		return nil
	})
	if asJSON {
		if err := a.Print.JSON(found); err != nil {
			return err
		}
		return failed
	}
	if len(found) == 0 {
		if failed == nil {
			a.Print.Notef("no plugin of the indexes has these words")
		}
		return failed
	}
	rows := [][]string{{"PLUGIN", "VERSION", "AGENTS", "PUBLISHER", "TRUSTED", "INDEX", "SUMMARY"}}
	for _, p := range found {
		trust := "no"
		if p.Trusted {
			trust = "yes"
		}
		rows = append(rows, []string{p.Name, p.Version, strings.Join(p.Agents, ", "), p.Publisher, trust, p.Index, render.Dash(p.Summary)})
	}
	a.Print.Table(rows)
	return failed
}

func names(indexes []install.Index) (list []string) {
	for _, x := range indexes {
		list = append(list, x.Name)
	}
	return list
}

// has reports whether a plugin has all of the words.
func has(p install.Listed, words []string) bool {
	text := strings.ToLower(p.Name + "\n" + p.Summary + "\n" + p.Publisher + "\n" + strings.Join(p.Agents, "\n"))
	for _, word := range words {
		if !strings.Contains(text, strings.ToLower(word)) {
			return false
		}
	}
	return true
}
