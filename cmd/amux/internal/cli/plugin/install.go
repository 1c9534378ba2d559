package plugin

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
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
	Index   string
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
  name[@version]                        a mirror: --mirror, or sources.toml; or else an
                                        index that you have added (amux plugin index add)

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
	flags.StringVar(&o.Index, "index", "", "take names from the index `NAME`")
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
			if req.Place, err = o.resolve(ctx, in, source); err != nil {
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

// resolve finds a source. A name that no mirror is set for is looked up in the indexes.
func (o *InstallOptions) resolve(ctx context.Context, in *install.Installer, source string) (install.Place, error) {
	if o.Index == "" {
		place, err := in.Resolve(source, o.Cwd)
		if name, _, _ := strings.Cut(source, "@"); err == nil || o.Mirror != "" || install.CheckName(name) != nil {
			return place, err
		}
		if listed, found, listErr := in.ResolveListed(ctx, source, ""); found || listErr != nil {
			return listed, listErr
		}
		return place, err
	}
	place, found, err := in.ResolveListed(ctx, source, o.Index)
	if err == nil && !found {
		err = pluginapi.Errorf(pluginapi.CodePluginNotFound, "no index %s that has a plugin %s was added", render.String(o.Index), render.String(source)).
			WithHint("see: amux plugin index list, amux plugin search")
	}
	return place, err
}
