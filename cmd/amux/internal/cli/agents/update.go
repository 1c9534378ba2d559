package agents

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install/acp"
)

// NewCmdUpdate makes amux agents update.
func NewCmdUpdate(a *app.App) *cobra.Command {
	o := &InstallOptions{IO: a.IO, Print: a.Print, Host: a.Opener.Host, Update: true}
	cmd := &cobra.Command{
		Use:   "update AGENT",
		Short: "Update an agent's CLI to the tested version",
		Long: `Update an agent's CLI to the version that its adapter is tested with. A newer CLI stays
as it is. An agent that was added from a registry gets the version that the registry has
now. --dry-run prints the command and runs nothing; --method is for a CLI that was
not installed in the first way that amux agents info lists.`,
		Example:           "  amux agents update claude\n  amux agents update codex --dry-run",
		Args:              app.ExactArgs("an agent"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(cmd *cobra.Command, args []string) error {
			o.Agent = args[0]
			added, err := a.Config.Added()
			if err != nil {
				return err
			}
			if from, ok := acp.Find(added, o.Agent); ok {
				add := &AddOptions{App: a, As: o.Agent, Method: o.Method, Update: true, Scripts: from.Scripts, DryRun: o.DryRun}
				return a.Interruptible(func(ctx context.Context) error { return add.add(ctx, "acp:"+from.ID) })
			}
			return install(cmd.Context(), o)
		}),
	}
	o.addFlags(cmd)
	return cmd
}
