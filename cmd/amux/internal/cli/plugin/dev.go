package plugin

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

// DevOptions are what amux plugin dev needs.
type DevOptions struct {
	Print         *app.Printer
	Plugins       *app.Plugins
	Interruptible func(func(ctx context.Context) error) error
	Workspace     *workspace

	Replace  bool
	TakeOver []string
}

// NewCmdDev makes amux plugin dev.
func NewCmdDev(a *app.App) *cobra.Command {
	o := &DevOptions{Print: a.Print, Plugins: a.Plugins, Interruptible: a.Interruptible}
	cmd := &cobra.Command{
		Use:   "dev [DIR]",
		Short: "Build and link a plugin whenever it changes",
		Long: `Build the Go plugin in a folder, link it, and build it again whenever a file is saved,
until Ctrl-C. New runs use the new build, live runs keep theirs. If a build fails, amux
prints the errors and keeps the last good build. The link stays afterwards, and every
run warns of it; amux plugin remove removes it.`,
		Example: "  amux plugin dev\n  amux plugin dev ./amux-plugin-acme",
		Args:    app.RangeArgs(0, "a folder"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Workspace = newWorkspace(a, app.Arg(args, 0))
			defer o.Workspace.close()
			return dev(o)
		}),
	}
	cmd.Flags().BoolVar(&o.Replace, "replace", false, "replace a bundled plugin")
	app.AddRepeated(cmd.Flags(), &o.TakeOver, "take-over", "", "let it serve the agent `ID` in the place of another plugin (repeatable)")
	return cmd
}

func dev(o *DevOptions) error {
	w := o.Workspace
	if _, _, err := w.manifest(); err != nil {
		return err
	}
	if !w.isGo() {
		return pluginapi.Errorf(pluginapi.CodeValidation, "no Go program to build in %s", w.dir).
			WithHint("build it yourself, and link it: amux plugin install %s", w.dir)
	}
	return o.Interruptible(func(ctx context.Context) error { return develop(ctx, o) })
}

// lookAgain is how often the files are looked at.
const lookAgain = 300 * time.Millisecond

// develop builds at once, and again whenever a source has changed.
func develop(ctx context.Context, o *DevOptions) error {
	last := ""
	for {
		if now := o.Workspace.state(); now != last {
			last = now
			if err := rebuild(ctx, o); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				o.Print.Error(pluginapi.AsError(err), "", "")
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

// state differs between two states of the sources.
func (w *workspace) state() string {
	var b strings.Builder
	_ = filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // removed meanwhile
		}
		name := e.Name()
		if e.IsDir() && path != w.dir && (strings.HasPrefix(name, ".") || name == "dist" || name == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") || name == "go.mod" || name == "go.sum" || name == install.ManifestName {
			if info, err := e.Info(); err == nil {
				b.WriteString(path + info.ModTime().String() + "\n")
			}
		}
		return nil
	})
	return b.String()
}

// rebuild replaces the last build, and links the folder.
func rebuild(ctx context.Context, o *DevOptions) error {
	w := o.Workspace
	m, _, err := w.manifest()
	if err != nil {
		return err
	}
	built, err := w.build(ctx, m, install.Platform())
	if err != nil {
		return err
	}
	text, err := w.runDescribe(ctx, built)
	if err != nil {
		return err
	}
	d, err := install.ParseDescription("--amux-describe", text)
	if err == nil {
		err = m.Agrees(d)
	}
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
		mode os.FileMode
	}{
		{install.ExecutableName(m.Name, install.Platform()), binary, 0o755},
		{install.DescribeName, append(bytes.TrimSpace(text), '\n'), 0o644},
	} {
		// Renamed into place: a run that starts meanwhile gets the old or the new.
		path := filepath.Join(w.dir, f.name)
		if err := os.WriteFile(path+".new", f.data, f.mode); err != nil {
			return pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			return pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
		}
	}
	in, err := o.Plugins.Installer("")
	if err != nil {
		return err
	}
	result, err := in.Install(ctx, install.Request{Place: install.Place{Link: w.dir}, Develop: true, Replace: o.Replace, TakeOver: o.TakeOver})
	if err != nil {
		return err
	}
	o.Print.Notef("built %s %s; try it: amux run %s", result.Name, result.Version, m.Agents[0].ID)
	return nil
}
