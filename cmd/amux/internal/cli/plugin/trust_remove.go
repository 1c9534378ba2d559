package plugin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
)

// TrustRemoveOptions are what amux plugin trust remove needs.
type TrustRemoveOptions struct {
	Print   *app.Printer
	Host    func() (app.Host, error)
	Plugins *app.Plugins

	Publisher string
}

// NewCmdTrustRemove makes amux plugin trust remove.
func NewCmdTrustRemove(a *app.App) *cobra.Command {
	o := &TrustRemoveOptions{Print: a.Print, Host: a.Opener.Host, Plugins: a.Plugins}
	return &cobra.Command{
		Use: "remove PUBLISHER", Aliases: []string{"rm"},
		Short: "Stop trusting a publisher's key",
		Long: `Stop trusting a publisher's key. amux then refuses new runs with the plugins that it
signed, until you trust the key again or install the plugin by its checksum: amux
plugin install SOURCE --sha256 SUM --accept-signer. Live runs keep their plugin until
they end; amux names them, and amux stop ends them.`,
		Example: "  amux plugin trust remove acme",
		Args:    app.ExactArgs("a publisher"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Publisher = args[0]
			return trustRemove(o)
		}),
	}
}

func trustRemove(o *TrustRemoveOptions) error {
	in, err := o.Plugins.Installer("")
	if err != nil {
		return err
	}
	r, err := o.Plugins.Registry(false)
	if err != nil {
		return err
	}
	before := r.List()
	if err := in.RemoveTrust(o.Publisher); err != nil {
		return err
	}
	o.Print.Notef("signatures of %s no longer count", o.Publisher)
	refused := map[string]bool{}
	for _, p := range before {
		for _, now := range r.List() {
			if now.Name == p.Name && p.Err == nil && now.Err != nil {
				refused[p.Name] = true
				o.Print.Notef("plugin %s %s is refused from now on", p.Name, p.Version)
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	h, err := o.Host()
	if err != nil {
		return err
	}
	runs, err := h.Live(context.Background())
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.End == nil && refused[run.Plugin] {
			o.Print.Warnf("run %s goes on with plugin %s; to end it: amux stop %s", render.ShortID(run.ID), run.Plugin, render.ShortID(run.ID))
		}
	}
	return nil
}
