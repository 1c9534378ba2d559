// Package plugin has the commands for users and authors of amux's plugins: one command
// a file.
package plugin

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
)

// NewCmd makes amux plugin.
func NewCmd(a *app.App) *cobra.Command {
	cmd := app.Group(&cobra.Command{
		Use: "plugin", Aliases: []string{"plugins"}, Short: "Install, check, remove and write plugins",
		Long: "Install, check and remove the plugins that serve the agents, choose whose signatures\ncount, and write plugins of your own.",
	},
		NewCmdInstall(a),
		NewCmdSearch(a),
		NewCmdList(a),
		NewCmdInfo(a),
		NewCmdVerify(a),
		NewCmdUpgrade(a),
		NewCmdRemove(a),
		NewCmdLock(a),
		newCmdTrust(a),
		newCmdIndex(a),
		NewCmdMirror(a),
		NewCmdPrune(a),
		NewCmdNew(a),
		NewCmdDev(a),
		NewCmdRecord(a),
		NewCmdTest(a),
		NewCmdPackage(a),
		NewCmdSign(a),
	)
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return host.CheckSystem() }
	return cmd
}

func newCmdTrust(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use: "trust", Short: "Choose whose signatures count",
		Long: "Choose whose signatures count, and for which plugins and agents.",
	}, NewCmdTrustAdd(a), NewCmdTrustList(a), NewCmdTrustRemove(a))
}
