package agents

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install/acp"
)

// ListOptions are what amux agents list needs.
type ListOptions struct {
	Print *app.Printer
	Host  func() (app.Host, error)
	Whole func() error
	Added func() ([]acp.Installed, error)

	JSON    bool
	Refresh bool
}

// NewCmdList makes amux agents list.
func NewCmdList(a *app.App) *cobra.Command {
	o := &ListOptions{Print: a.Print, Host: a.Opener.Host, Whole: a.Whole, Added: a.Config.Added}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List agents",
		Long: `List all agents: whether their CLI is installed, whether you are signed in, and which
plugin serves them. This starts nothing: the version of a CLI is the one that it last
reported, as long as its file is unchanged. --refresh asks all installed CLIs again.`,
		Example: `  amux agents list
  amux agents list --refresh
  amux agents list --json | jq -r '.[] | select(.installed).agent'`,
		Args: app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error { return list(o) }),
	}
	cmd.Flags().BoolVar(&o.Refresh, "refresh", false, "ask the installed CLIs for their versions")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func list(o *ListOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	agents, err := h.Agents(context.Background())
	if err == nil && len(agents) == 0 {
		err = o.Whole()
	}
	if err != nil {
		return err
	}
	if o.Refresh {
		for i, a := range agents {
			if a.Err == nil && a.Installed {
				if agents[i], err = h.Refresh(context.Background(), a.Description.GetId()); err != nil {
					return err
				}
			}
		}
	}
	added, _ := o.Added() // opening the host has warned
	if o.JSON {
		list := []agentJSON{}
		for _, a := range agents {
			list = append(list, withOrigin(jsonOfAgent(a), added, a))
		}
		return o.Print.JSON(list)
	}
	rows := [][]string{{"AGENT", "INSTALLED", "AUTH", "PLUGIN", "TRUST", ""}}
	for _, a := range agents {
		rows = append(rows, row(a, added))
	}
	o.Print.Table(rows)
	return nil
}

func row(a host.AgentInfo, added []acp.Installed) []string {
	plugin := strings.TrimSpace(a.Plugin + " " + a.PluginVersion)
	if a.Err != nil {
		return []string{a.Description.GetId(), "-", "-", plugin, a.Trust, "broken: " + render.String(a.Err.Error())}
	}
	var notes []string
	if a.Description.GetUnproven() {
		notes = append(notes, "unproven")
	}
	if a.Description.GetDemo() {
		notes = append(notes, "demo")
	}
	if from, ok := originOf(added, a); ok {
		notes = append(notes, "acp:"+from.ID+" "+from.Version+" from "+render.String(from.Registry))
	}
	return []string{a.Description.GetId(), render.Installed(a), render.SignedIn(a), plugin, a.Trust, strings.Join(notes, ", ")}
}
