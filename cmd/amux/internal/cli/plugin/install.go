package plugin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install"
)

// InstallOptions are what amux plugin install needs.
type InstallOptions struct {
	Plugins       *app.Plugins
	Interruptible func(func(ctx context.Context) error) error
	Each          func(names []string, do func(name string) error) error
	Cwd           string
	Trust

	Sources []string
	SHA256  string
	Mirror  string
	Pin     bool
	Replace bool
}

// NewCmdInstall makes amux plugin install.
func NewCmdInstall(a *app.App) *cobra.Command {
	o := &InstallOptions{Plugins: a.Plugins, Interruptible: a.Interruptible, Each: a.Each, Cwd: a.Cwd, Trust: newTrust(a)}
	cmd := &cobra.Command{
		Use:   "install SOURCE…",
		Short: "Install plugins",
		Long: `Install plugins. A source is one of

  ./dir                                 a folder with a manifest: linked, for development
  ./dist, ./archive.tar.gz              a release made by amux plugin package
  https://host/archive.tar.gz#sha256=…  an archive; #sha256 where it is not signed
  gh:owner/repo[@version]               the releases of a repository on GitHub
  name[@version]                        a mirror: --mirror, or sources.toml

A package needs a signature by a key you trust (amux plugin trust add), or a checksum
that you give. Otherwise amux asks, and refuses where nobody can answer. An agent
belongs to one plugin: a plugin that declares another plugin's agent needs --take-over,
one named like a bundled plugin needs --replace. amux runs nothing in a package but its
plugin with --amux-describe.`,
		Example: `  amux plugin install gh:acme/amux-plugin-acme@^1
  amux plugin install ./dist --dry-run
  amux plugin install acme --mirror https://plugins.example.com --pin`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.SHA256 != "" && len(args) > 1 {
				return app.Usagef("--sha256 is for one archive; got %d sources", len(args))
			}
			return app.SomeArgs("a source")(cmd, args)
		},
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Sources = args
			return installPlugins(o)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.SHA256, "sha256", "", "checksum `SUM` that the archive must have")
	flags.StringVar(&o.Mirror, "mirror", "", "take names from the mirror at `ROOT`, a folder or an https address")
	flags.BoolVar(&o.Pin, "pin", false, "stay at this version: no upgrades")
	flags.BoolVar(&o.Replace, "replace", false, "replace a plugin of the same name from another source, or a bundled one")
	o.addFlags(flags)
	return cmd
}

func installPlugins(o *InstallOptions) error {
	in, err := o.Plugins.Installer(o.Mirror)
	if err != nil {
		return err
	}
	results := []*install.Result{}
	err = o.Interruptible(func(ctx context.Context) error {
		return o.Each(o.Sources, func(source string) error {
			req, err := o.request()
			if err != nil {
				return err
			}
			if req.Place, err = in.Resolve(source, o.Cwd); err != nil {
				return err
			}
			if o.SHA256 != "" {
				if len(o.SHA256) != 64 {
					return app.Usagef("invalid --sha256 %q: expected 64 digits of 0-9 and a-f", o.SHA256)
				}
				req.SHA256 = o.SHA256
			}
			req.Pin, req.Replace = o.Pin, o.Replace
			result, err := in.Install(ctx, req)
			if err == nil {
				o.report(result)
				results = append(results, result)
			}
			return err
		})
	})
	return o.printResults(results, err)
}
