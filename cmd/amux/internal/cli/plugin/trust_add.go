package plugin

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/sys/foreign"
)

// TrustAddOptions are what amux plugin trust add needs.
type TrustAddOptions struct {
	Print   *app.Printer
	Plugins *app.Plugins

	Publisher string
	Key       string
	KeyFile   string // Key, if it is a path
	Names     []string
}

// NewCmdTrustAdd makes amux plugin trust add.
func NewCmdTrustAdd(a *app.App) *cobra.Command {
	o := &TrustAddOptions{Print: a.Print, Plugins: a.Plugins}
	cmd := &cobra.Command{
		Use:   "add PUBLISHER KEY",
		Short: "Trust a publisher's key",
		Long: `Trust a publisher's minisign key, given as its one line or as the file minisign.pub. Get
the key from the publisher by another way than the plugin. It counts for plugins and
agents named PUBLISHER or PUBLISHER-*, unless --names says otherwise. For a publisher
that you trust already, the command adds --names.`,
		Example: `  amux plugin trust add acme ./minisign.pub
  amux plugin trust add acme RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3 --names acme,acme-*`,
		Args: app.ExactArgs("a publisher", "a key"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Publisher, o.Key, o.KeyFile = args[0], args[1], a.Abs(args[1])
			return trustAdd(o)
		}),
	}
	cmd.Flags().StringSliceVar(&o.Names, "names", nil, "`PATTERNS` of the plugins that the key may sign and of the agents that they may serve, such as acme,acme-*")
	return cmd
}

func trustAdd(o *TrustAddOptions) error {
	key := o.Key
	if !strings.HasPrefix(key, "RW") {
		data, err := foreign.Read(o.KeyFile, foreign.Rule{Limit: app.MaxConfigFile})
		if err != nil {
			return app.Usagef("invalid key %q: neither a key nor a file with one", key).WithHint("a key is one line: RW… with 56 characters")
		}
		key = string(data)
	}
	names := o.Names
	if len(names) == 0 {
		names = []string{o.Publisher, o.Publisher + "-*"}
	}
	in, err := o.Plugins.Installer("")
	if err != nil {
		return err
	}
	if err := in.AddTrust(install.Key{ID: o.Publisher, Key: key, Names: names}); err != nil {
		return err
	}
	o.Print.Notef("signatures of %s count for the plugins and agents %s", o.Publisher, strings.Join(names, ", "))
	return nil
}
