package plugin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

// MirrorOptions are what amux plugin mirror needs.
type MirrorOptions struct {
	Print         *app.Printer
	Plugins       *app.Plugins
	Interruptible func(func(ctx context.Context) error) error
	Each          func(names []string, do func(name string) error) error
	Cwd           string

	Dir     string
	Sources []string // empty: what is installed
	JSON    bool

	copied []mirroredJSON
}

// mirroredJSON is a release that was copied.
type mirroredJSON struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// NewCmdMirror makes amux plugin mirror.
func NewCmdMirror(a *app.App) *cobra.Command {
	o := &MirrorOptions{Print: a.Print, Plugins: a.Plugins, Interruptible: a.Interruptible, Each: a.Each, Cwd: a.Cwd, copied: []mirroredJSON{}}
	cmd := &cobra.Command{
		Use:   "mirror DIR [SOURCE…]",
		Short: "Copy releases into a mirror",
		Long: `Copy whole releases, for all platforms, into a tree of files that others install from:
the releases of the sources, or of all installed plugins. The tree may be on a share or
behind any web server. Users name it with --mirror or in sources.toml:

  [[mirror]]
  root = "https://plugins.example.com"
  include = ["acme-*"]

amux asks only the first mirror whose patterns match a plugin.`,
		Example: `  amux plugin mirror /srv/plugins
  amux plugin mirror /srv/plugins gh:acme/amux-plugin-acme@1.2.0`,
		Args: app.SomeArgs("a folder"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Dir, o.Sources = a.Abs(args[0]), args[1:]
			return mirror(o)
		}),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func mirror(o *MirrorOptions) error {
	in, err := o.Plugins.Installer("")
	if err != nil {
		return err
	}
	err = o.Interruptible(func(ctx context.Context) error {
		if len(o.Sources) > 0 {
			return o.Each(o.Sources, func(source string) error { return mirrorSource(ctx, o, in, source) })
		}
		lock, err := install.ReadLock(in.LockFile())
		if err != nil {
			return err
		}
		return o.Each(lock.Names(), func(name string) error {
			entry := lock.Get(name)
			if entry.Link != "" {
				o.Print.Warnf("skipping plugin %s: it is linked to %s", name, entry.Link)
				return nil
			}
			src, err := in.Reopen(name, entry.Source)
			if err != nil {
				return err
			}
			return o.copy(ctx, in, src, install.ExactConstraint(src, entry.Version), entry)
		})
	})
	if o.JSON {
		if printErr := o.Print.JSON(o.copied); err == nil {
			err = printErr
		}
	}
	return err
}

func mirrorSource(ctx context.Context, o *MirrorOptions, in *install.Installer, source string) error {
	place, err := in.Resolve(source, o.Cwd)
	if err != nil {
		return err
	}
	if place.Source == nil {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%s is a folder under development, not a release", source).
			WithHint("make a release: amux plugin package")
	}
	return o.copy(ctx, in, place.Source, place.Constraint, nil)
}

// copy adds one release to the mirror.
func (o *MirrorOptions) copy(ctx context.Context, in *install.Installer, src install.Source, constraint string, locked *install.Locked) error {
	name, version, err := in.AddToMirror(ctx, o.Dir, src, constraint, locked)
	if err == nil {
		o.Print.Notef("mirrored %s %s", name, version)
		o.copied = append(o.copied, mirroredJSON{name, version})
	}
	return err
}
