package agents

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host/install/acp"
	"github.com/amux-dev/amux/pluginapi"
)

// NewCmdRemove makes amux agents remove.
func NewCmdRemove(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "remove AGENT", Aliases: []string{"rm"},
		Short: "Remove an agent that was added from a registry",
		Long: `Remove an agent that amux agents add has added: its files, and the version and hashes
that are pinned. Its own settings and sessions stay, and so do the records of its runs. A
run of it that goes on may fail.`,
		Example:           "  amux agents remove cline",
		Args:              app.ExactArgs("an agent"),
		ValidArgsFunction: completeAdded(a),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			s, err := store(a)
			if err != nil {
				return err
			}
			added, err := acp.Read(s.Dir)
			if err != nil {
				return err
			}
			if _, ok := acp.Find(added, args[0]); !ok {
				return pluginapi.Errorf(pluginapi.CodeAgentNotFound, "agent %s was not added from a registry", render.String(args[0])).
					WithHint("amux agents list shows which ones were; those of plugins: amux plugin remove; your own are in config.toml")
			}
			if err := s.Remove(args[0]); err != nil {
				return err
			}
			a.Print.Notef("removed %s", args[0])
			return nil
		}),
	}
}

// completeAdded completes the agents that were added from a registry.
func completeAdded(a *app.App) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if len(args) == 0 {
			added, _ := a.Config.Added()
			for _, agent := range added {
				names = append(names, agent.Name+"\t"+render.String(agent.Title))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
