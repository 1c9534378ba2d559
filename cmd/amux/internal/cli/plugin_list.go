package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/host/registry"
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
	// TookOver are agents of other plugins that it serves, Lost those that it declares
	// and another serves.
	TookOver []string   `json:"took_over,omitempty"`
	Lost     []string   `json:"lost,omitempty"`
	Error    *errorJSON `json:"error,omitempty"`
}

func jsonOfPlugin(p registry.Plugin) pluginJSON {
	agents := []string{}
	for _, a := range p.Description.GetAgents() {
		agents = append(agents, a.Id)
	}
	return pluginJSON{
		Plugin: p.Name, Version: p.Version, Agents: agents, Trust: p.Trust, From: string(p.Origin), Source: p.Source, Dir: p.Dir,
		Error: jsonOfError(p.Err),
	}
}

// claims adds which agents of several plugins it serves, and which not.
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

// claimed says so in words.
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

func newPluginList(s *session) *cobra.Command {
	var asJSON, outdated, strays bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the plugins; starts nothing",
		Long: `List the plugins: their agents, how far they are trusted, and what chose them. One
that cannot be used keeps its row, with the reason.`,
		Args: exactly(),
		RunE: command(func(*cobra.Command, []string) error {
			if strays {
				return s.listStrays(asJSON)
			}
			r, err := s.registry(false)
			if err != nil {
				return err
			}
			list := []pluginJSON{}
			plugins := r.List()
			claims := registry.Claims(plugins)
			for _, p := range plugins {
				list = append(list, jsonOfPlugin(p).claims(claims))
			}
			if outdated {
				if list, err = s.outdated(list); err != nil {
					return err
				}
			}
			if asJSON {
				return s.printJSON(list)
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
				rows = append(rows, []string{p.Plugin, orDash(p.Version), orDash(strings.Join(p.Agents, ", ")), render.String(p.Trust), p.From, note})
			}
			table(s.app.IO.Out, rows)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&outdated, "outdated", false, "only those of which there is a newer version; asks their sources")
	cmd.Flags().BoolVar(&strays, "path", false, "list what lies in PATH under a plugin's name, and is not used")
	return cmd
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return render.String(text)
}

// outdated keeps the plugins of which their sources have a newer version. A
// source that cannot be asked is a warning.
func (s *session) outdated(list []pluginJSON) ([]pluginJSON, error) {
	in, err := s.installer("")
	if err != nil {
		return nil, err
	}
	lock, err := install.ReadLock(in.LockFile())
	if err != nil {
		return nil, err
	}
	kept := []pluginJSON{}
	err = s.interruptible(func(ctx context.Context) error {
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
				s.warnf("%s", err)
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

// listStrays finds programs in PATH that are named as plugins. amux never runs
// them: whoever can write to a folder of PATH would be trusted.
func (s *session) listStrays(asJSON bool) error {
	strays := []string{}
	for _, dir := range filepath.SplitList(s.getenv("PATH")) {
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
	if asJSON {
		return s.printJSON(strays)
	}
	var rows [][]string
	for _, path := range strays {
		rows = append(rows, []string{render.String(path)})
	}
	table(s.app.IO.Out, rows)
	if len(strays) > 0 {
		s.errf("PATH is never searched for plugins; to use one: amux run --plugin NAME=PATH, or amux plugin install")
	}
	return nil
}
