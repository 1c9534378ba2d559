package plugin

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

func newCmdIndex(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use: "index", Short: "Find plugins through signed indexes",
		Long: `Add indexes, through which amux plugin search and install find plugins by name, and make
one of your own. An index is a signed list of plugins and of whose they are. It vouches
for none: you still choose whose signatures count (amux plugin trust add).`,
	}, newCmdIndexAdd(a), newCmdIndexList(a), newCmdIndexRemove(a), newCmdIndexNew(a), newCmdIndexCheck(a), newCmdIndexSign(a))
}

// indexRoot is the place of an index, with an absolute path.
func indexRoot(a *app.App, root string) string {
	if install.IsAddress(root) {
		return root
	}
	return a.Abs(root)
}

func newCmdIndexAdd(a *app.App) *cobra.Command {
	key := ""
	cmd := &cobra.Command{
		Use:   "add ROOT",
		Short: "Add an index",
		Long: `Add the index at ROOT, a folder or an https address. Its list must be signed by --key,
which you got from its operator by another way. Without --key amux shows the key that the
index names and asks; where nobody can be asked it refuses. From then on the key and the
name stay the same, and the list never gets older.`,
		Example: `  amux plugin index add https://plugins.example.com --key RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3
  amux plugin index add ./community --key ./index.pub`,
		Args: app.ExactArgs("a folder or an address"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			return a.Interruptible(func(ctx context.Context) error { return addIndex(ctx, a, indexRoot(a, args[0]), key) })
		}),
	}
	cmd.Flags().StringVar(&key, "key", "", "`KEY` that signs the list: RW…, or a file with it")
	return cmd
}

func addIndex(ctx context.Context, a *app.App, root, key string) error {
	in, err := a.Plugins.Installer("")
	if err != nil {
		return err
	}
	switch {
	case key == "":
		if key, err = in.IndexKey(ctx, root); err != nil {
			return err
		}
		if !a.Attended() {
			return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "index %s: nobody can be asked whether its key is right", root).
				WithHint("get the key from its operator, and give it: --key RW…")
		}
		a.Print.Notef("index %s says that its key is %s", render.String(root), render.String(key))
		if !a.Confirm("is that what its operator told you?") {
			return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "index %s was not accepted", root).WithHint("nothing was added")
		}
	case len(key) < 2 || key[:2] != "RW":
		data, err := foreign.Read(a.Abs(key), foreign.Rule{Limit: app.MaxConfigFile})
		if err != nil {
			return app.Usagef("invalid --key %q: neither a key nor a file with one", key).WithHint("a key is one line: RW… with 56 characters")
		}
		key = string(data)
	}
	l, err := in.AddIndex(ctx, root, key)
	if err != nil {
		return err
	}
	a.Print.Notef("added index %s: %d plugins of %d publishers, serial %d", l.Name, len(l.Plugins), len(l.Publishers), l.Serial)
	return nil
}

func newCmdIndexList(a *app.App) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short:   "List the indexes that you have added",
		Long:    "List the indexes that you have added, with their keys. This fetches nothing.",
		Example: "  amux plugin index list\n  amux plugin index list --json | jq -r '.[].root'",
		Args:    app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error {
			in, err := a.Plugins.Installer("")
			if err != nil {
				return err
			}
			list, err := in.Indexes()
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				return a.Print.JSON(append([]install.Index{}, list...))
			case len(list) == 0:
				a.Print.Notef("no index was added; see: amux plugin index add --help")
				return nil
			}
			rows := [][]string{{"INDEX", "ROOT", "KEY"}}
			for _, x := range list {
				rows = append(rows, []string{render.String(x.Name), render.String(x.Root), install.ShortKey(x.Key)})
			}
			a.Print.Table(rows)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newCmdIndexRemove(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "remove INDEX", Aliases: []string{"rm"},
		Short:   "Remove an index",
		Long:    "Remove an index that you have added. Plugins that were found through it stay.",
		Example: "  amux plugin index remove community",
		Args:    app.ExactArgs("an index"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			in, err := a.Plugins.Installer("")
			if err != nil {
				return err
			}
			if err := in.RemoveIndex(args[0]); err != nil {
				return err
			}
			a.Print.Notef("removed index %s", args[0])
			return nil
		}),
	}
}

func newCmdIndexNew(a *app.App) *cobra.Command {
	name := ""
	cmd := &cobra.Command{
		Use:   "new DIR",
		Short: "Make an index of your own",
		Long: `Make a folder with an empty index and a README that says how to fill it. Then: amux
plugin index check, sign, and publish the folder.`,
		Example: "  amux plugin index new ./community\n  amux plugin index new ./plugins --name acme",
		Args:    app.ExactArgs("a folder"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			dir := a.Abs(args[0])
			if name == "" {
				name = filepath.Base(dir)
			}
			if err := install.NewIndex(dir, name); err != nil {
				return err
			}
			a.Print.Notef("made index %s; its README.md says how to fill it", name)
			return nil
		}),
	}
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the index (default: that of the folder)")
	return cmd
}

func newCmdIndexCheck(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "check DIR",
		Short: "Check an index of your own",
		Long: `Check the list of an index as the amux of a user would, and the archives that lie in its
folder: their hashes, and that their publisher has signed them.`,
		Example: "  amux plugin index check .",
		Args:    app.ExactArgs("a folder"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			l, _, err := checkIndex(a, args[0])
			if err == nil {
				a.Print.Notef("index %s is valid: %d plugins, serial %d", l.Name, len(l.Plugins), l.Serial)
			}
			return err
		}),
	}
}

func checkIndex(a *app.App, dir string) (*install.Listing, []byte, error) {
	l, data, problems, err := install.CheckIndex(a.Abs(dir))
	if err != nil {
		return nil, nil, err
	}
	if len(problems) > 0 {
		for _, problem := range problems[:len(problems)-1] {
			a.Print.Notef("%s", render.String(problem.Error()))
		}
		return nil, nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "index %s: %w", l.Name, problems[len(problems)-1]).
			WithHint("repair the list or the archives, then check again")
	}
	return l, data, nil
}

func newCmdIndexSign(a *app.App) *cobra.Command {
	o := &SignOptions{Print: a.Print}
	if a.Attended() {
		o.ReadPassword = a.IO.ReadPassword
	}
	var key, passwordFile string
	cmd := &cobra.Command{
		Use:   "sign DIR --key FILE",
		Short: "Check and sign an index of your own",
		Long: `Check an index and sign its list with a secret key of minisign (amux plugin sign
--generate makes one). The signature names the index and its serial: raise the serial with
every change. The public key is written to index.pub.`,
		Example: "  amux plugin index sign . --key index.key",
		Args:    app.ExactArgs("a folder"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			if key == "" {
				return app.Usagef("amux plugin index sign needs --key").WithHint("make a key: amux plugin sign --generate NAME")
			}
			o.KeyFile, o.PasswordFile = a.Abs(key), a.Abs(passwordFile)
			l, data, err := checkIndex(a, args[0])
			if err != nil {
				return err
			}
			secret, err := o.secretKey()
			if err != nil {
				return err
			}
			public := install.PublicKey(secret)
			if err := install.WriteListingSignature(a.Abs(args[0]), public, install.SignListing(secret, l, data)); err != nil {
				return err
			}
			a.Print.Notef("signed index %s, serial %d, with %s", l.Name, l.Serial, public)
			return nil
		}),
	}
	cmd.Flags().StringVar(&key, "key", "", "`FILE` with the secret key")
	cmd.Flags().StringVar(&passwordFile, "password-file", "", "`FILE` with the key's password; otherwise amux asks for it")
	return cmd
}
