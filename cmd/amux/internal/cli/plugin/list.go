package plugin

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/registry"
)

// pluginJSON is a plugin in --json.
type pluginJSON struct {
	Plugin  string   `json:"plugin"`
	Version string   `json:"version,omitempty"`
	Agents  []string `json:"agents"`
	Trust   string   `json:"trust"`
	From    string   `json:"from"` // which place chose it: override, project lock, user lock, bundled
	Source  string   `json:"source"`
	Dir     string   `json:"dir"`
	Newest  string   `json:"newest,omitempty"` // with --outdated
	// TookOver are agents of other plugins that it serves; Lost are those that it
	// declares and another plugin serves.
	TookOver []string       `json:"took_over,omitempty"`
	Lost     []string       `json:"lost,omitempty"`
	Error    *app.ErrorJSON `json:"error,omitempty"`
}

func jsonOfPlugin(p registry.Plugin) pluginJSON {
	agents := []string{}
	for _, a := range p.Description.GetAgents() {
		agents = append(agents, a.Id)
	}
	return pluginJSON{
		Plugin: p.Name, Version: p.Version, Agents: agents, Trust: p.Trust, From: string(p.Origin), Source: p.Source, Dir: p.Dir,
		Error: app.JSONError(p.Err),
	}
}

// claims adds which agents it took over from other plugins, and which it lost.
func (p pluginJSON) claims(claims []registry.Claim) pluginJSON {
	for _, c := range claims {
		switch {
		case c.By == p.Plugin && c.TakenOver:
			p.TookOver = append(p.TookOver, c.Agent)
		case slices.Contains(c.Others, p.Plugin):
			p.Lost = append(p.Lost, c.Agent)
		}
	}
	return p
}

// claimed describes the claims.
func (p pluginJSON) claimed() string {
	var notes []string
	if len(p.TookOver) > 0 {
		notes = append(notes, "took over "+strings.Join(p.TookOver, ", "))
	}
	if len(p.Lost) > 0 {
		notes = append(notes, "does not serve "+strings.Join(p.Lost, ", "))
	}
	return strings.Join(notes, "; ")
}

// ListOptions are what amux plugin list needs.
type ListOptions struct {
	Print         *app.Printer
	Plugins       *app.Plugins
	Interruptible func(func(ctx context.Context) error) error
	Path          string // the variable

	JSON     bool
	Outdated bool
	Strays   bool
}

// NewCmdList makes amux plugin list.
func NewCmdList(a *app.App) *cobra.Command {
	o := &ListOptions{Print: a.Print, Plugins: a.Plugins, Interruptible: a.Interruptible, Path: a.Getenv("PATH")}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List plugins",
		Long: `List the plugins: their agents, how far they are trusted, and what chose them. A broken
plugin is listed with the reason. This starts nothing.`,
		Example: `  amux plugin list
  amux plugin list --outdated
  amux plugin list --json | jq -r '.[].plugin'`,
		Args: app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error {
			if o.Strays {
				return listStrays(o)
			}
			return list(o)
		}),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&o.Outdated, "outdated", false, "list only plugins with a newer version; asks their sources")
	cmd.Flags().BoolVar(&o.Strays, "path", false, "list files in PATH that are named like a plugin; amux never runs them")
	return cmd
}

func list(o *ListOptions) error {
	r, err := o.Plugins.Registry(false)
	if err != nil {
		return err
	}
	list := []pluginJSON{}
	plugins := r.List()
	claims := registry.Claims(plugins)
	for _, p := range plugins {
		list = append(list, jsonOfPlugin(p).claims(claims))
	}
	if o.Outdated {
		if list, err = outdated(o, list); err != nil {
			return err
		}
	}
	if o.JSON {
		return o.Print.JSON(list)
	}
	rows := [][]string{{"PLUGIN", "VERSION", "AGENTS", "TRUST", "FROM", ""}}
	for _, p := range list {
		note := p.claimed()
		switch {
		case p.Error != nil:
			note = "broken: " + render.String(p.Error.Message)
		case p.Newest != "":
			note = "newest: " + p.Newest
		}
		rows = append(rows, []string{p.Plugin, render.Dash(p.Version), render.Dash(strings.Join(p.Agents, ", ")), render.String(p.Trust), p.From, note})
	}
	o.Print.Table(rows)
	return nil
}

// outdated keeps the plugins with a newer version at their source. A source that does
// not answer is a warning.
func outdated(o *ListOptions, list []pluginJSON) ([]pluginJSON, error) {
	in, err := o.Plugins.Installer("")
	if err != nil {
		return nil, err
	}
	lock, err := install.ReadLock(in.LockFile())
	if err != nil {
		return nil, err
	}
	kept := []pluginJSON{}
	err = o.Interruptible(func(ctx context.Context) error {
		for _, p := range list {
			entry := lock.Get(p.Plugin)
			if entry == nil || entry.Fixed() != "" {
				continue
			}
			asking, cancel := context.WithTimeout(ctx, 30*time.Second)
			newest, err := in.Newest(asking, *entry)
			cancel()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				o.Print.Warnf("%s", err)
				continue
			}
			if newest != entry.Version {
				p.Newest = newest
				kept = append(kept, p)
			}
		}
		return nil
	})
	return kept, err
}

// listStrays finds programs in PATH that are named like plugins. amux never runs them:
// that would trust everybody who can write to a folder of PATH.
func listStrays(o *ListOptions) error {
	strays := []string{}
	for _, dir := range filepath.SplitList(o.Path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "amux-plugin-") {
				strays = append(strays, filepath.Join(dir, e.Name()))
			}
		}
	}
	if o.JSON {
		return o.Print.JSON(strays)
	}
	var rows [][]string
	for _, path := range strays {
		rows = append(rows, []string{render.String(path)})
	}
	o.Print.Table(rows)
	if len(strays) > 0 {
		o.Print.Notef("amux never searches PATH for plugins; to use one: amux run --plugin NAME=PATH, or amux plugin install")
	}
	return nil
}
