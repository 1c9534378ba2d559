package plugin

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

// TrustListOptions are what amux plugin trust list needs.
type TrustListOptions struct {
	Print   *app.Printer
	Plugins *app.Plugins

	JSON bool
}

// NewCmdTrustList makes amux plugin trust list.
func NewCmdTrustList(a *app.App) *cobra.Command {
	o := &TrustListOptions{Print: a.Print, Plugins: a.Plugins}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short:   "List the trusted keys",
		Long:    "List the trusted keys, with the plugins and agents that each counts for.",
		Example: "  amux plugin trust list\n  amux plugin trust list --json",
		Args:    app.ExactArgs(),
		RunE:    app.Command(func(*cobra.Command, []string) error { return trustList(o) }),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func trustList(o *TrustListOptions) error {
	in, err := o.Plugins.Installer("")
	if err != nil {
		return err
	}
	keys, err := in.Trust()
	if err != nil {
		return err
	}
	if o.JSON {
		return o.Print.JSON(append([]install.Key{}, keys...))
	}
	rows := [][]string{{"PUBLISHER", "KEY", "ID", "PLUGINS AND AGENTS"}}
	for _, k := range keys {
		public, err := install.ParsePublicKey(k.Key)
		if err != nil {
			return pluginapi.AsError(err)
		}
		rows = append(rows, []string{k.ID, k.Key, install.KeyID(public), strings.Join(k.Names, ", ")})
	}
	o.Print.Table(rows)
	return nil
}
