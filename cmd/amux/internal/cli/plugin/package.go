package plugin

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

// PackageOptions are what amux plugin package needs.
type PackageOptions struct {
	Print         *app.Printer
	Interruptible func(func(ctx context.Context) error) error
	Abs           func(path string) string
	Workspace     *workspace

	Out       string
	Platforms []string
	Binaries  []string
	JSON      bool
}

// NewCmdPackage makes amux plugin package.
func NewCmdPackage(a *app.App) *cobra.Command {
	o := &PackageOptions{Print: a.Print, Interruptible: a.Interruptible, Abs: a.Abs}
	var out string
	cmd := &cobra.Command{
		Use:   "package [DIR]",
		Short: "Package a plugin for release",
		Long: `Package the plugin in a folder for release: an archive for each platform and SHA256SUMS,
in dist/. amux builds a Go plugin for the platforms that its manifest names as os/arch;
--binary gives other executables. The same source gives the same bytes.`,
		Example: `  amux plugin package
  amux plugin package ./acme --platform linux/amd64 --platform darwin/arm64
  amux plugin package --binary linux/amd64=target/release/amux-plugin-acme`,
		Args: app.RangeArgs(0, "a folder"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Workspace = newWorkspace(a, app.Arg(args, 0))
			defer o.Workspace.close()
			if out == "" {
				out = filepath.Join(o.Workspace.dir, "dist")
			}
			o.Out = a.Abs(out)
			return o.Interruptible(func(ctx context.Context) error { return pack(ctx, o) })
		}),
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "`FOLDER` for the release (default DIR/dist)")
	app.AddRepeated(cmd.Flags(), &o.Platforms, "platform", "", "build for this `OS/ARCH` instead of those of the manifest (repeatable)")
	app.AddRepeated(cmd.Flags(), &o.Binaries, "binary", "", "use an executable that is built already, as `OS/ARCH=PATH` (repeatable)")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func pack(ctx context.Context, o *PackageOptions) error {
	w, out := o.Workspace, o.Out
	m, manifest, err := w.manifest()
	if err != nil {
		return err
	}
	built, err := executables(ctx, o, m)
	if err != nil {
		return err
	}
	description, err := describe(ctx, w, m, built)
	if err != nil {
		return err
	}
	extra, err := install.Extras(w.dir)
	if err != nil {
		return err
	}
	p := install.Package{Manifest: manifest, Describe: bytes.TrimSpace(description), Binaries: built, Extra: extra}
	p.Describe = append(p.Describe, '\n')
	m, sums, err := p.Write(out)
	if err != nil {
		return err
	}
	o.Print.Notef("packed %s %s for %s in %s", m.Name, m.Version, strings.Join(slices.Sorted(maps.Keys(built)), ", "), out)
	o.Print.Notef("sign it:    amux plugin sign %s --key KEY", out)
	o.Print.Notef("install it: amux plugin install %s", out)
	if o.JSON {
		return o.Print.JSON(struct {
			Name    string       `json:"name"`
			Version string       `json:"version"`
			Dir     string       `json:"dir"`
			SHA256  install.Sums `json:"sha256"`
		}{m.Name, m.Version, out, sums})
	}
	return nil
}

// executables builds what is packed, or takes what is given.
func executables(ctx context.Context, o *PackageOptions, m *install.Manifest) (map[string]string, error) {
	w, platforms := o.Workspace, o.Platforms
	found := map[string]string{}
	for _, g := range o.Binaries {
		platform, path, ok := strings.Cut(g, "=")
		if !ok || path == "" || strings.Count(platform, "/") != 1 {
			return nil, app.Usagef("invalid --binary %q: expected OS/ARCH=PATH", g)
		}
		found[platform] = o.Abs(path)
	}
	if len(found) > 0 && len(platforms) == 0 {
		return found, nil
	}
	if !w.isGo() {
		return nil, pluginapi.Errorf(pluginapi.CodeValidation, "no Go program to build in %s", w.dir).
			WithHint("give an executable: --binary %s=PATH", install.Platform())
	}
	if len(platforms) == 0 {
		named := map[string]bool{install.Platform(): true}
		for _, a := range m.Agents {
			for _, p := range a.Platforms {
				if strings.Contains(p, "/") {
					named[p] = true
				}
			}
		}
		platforms = slices.Sorted(maps.Keys(named))
	}
	for _, p := range platforms {
		if strings.Count(p, "/") != 1 {
			return nil, app.Usagef("invalid --platform %q: expected OS/ARCH", p)
		}
		path, err := w.build(ctx, m, p)
		if err != nil {
			return nil, err
		}
		found[p] = path
	}
	return found, nil
}

// describe asks an executable for this platform for its description.
func describe(ctx context.Context, w *workspace, m *install.Manifest, executables map[string]string) ([]byte, error) {
	path := executables[install.Platform()]
	if path != "" {
		if info, err := os.Stat(path); err != nil {
			return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "no such file: %s", path)
		} else if info.Mode()&0o111 == 0 && !app.IsWindows {
			return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s is not executable", path).WithHint("chmod +x %s", path)
		}
		return w.runDescribe(ctx, path)
	}
	if !w.isGo() {
		return nil, pluginapi.Errorf(pluginapi.CodeValidation, "no executable for %s, which must describe the plugin", install.Platform()).
			WithHint("add one: --binary %s=PATH", install.Platform())
	}
	path, err := w.build(ctx, m, install.Platform())
	if err != nil {
		return nil, err
	}
	return w.runDescribe(ctx, path)
}
