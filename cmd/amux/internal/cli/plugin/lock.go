package plugin

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

// LockOptions are what amux plugin lock needs.
type LockOptions struct {
	Print         *app.Printer
	Plugins       *app.Plugins
	Interruptible func(func(ctx context.Context) error) error
	LockFile      func() (string, error) // of the project; empty: no project

	Check     bool
	JSON      bool
	Platforms []string
}

// NewCmdLock makes amux plugin lock.
func NewCmdLock(a *app.App) *cobra.Command {
	o := &LockOptions{Print: a.Print, Plugins: a.Plugins, Interruptible: a.Interruptible, LockFile: projectLock(a)}
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Write or check the project's plugin lock",
		Long: `Write the project's .agent-mux/plugins.lock: the versions of plugins that its runs use,
with the hashes of their archives for all platforms. Commit it. It chooses among
installed plugins and installs none. --check compares it with what is installed; the
exit code is 1 if they differ.`,
		Example: `  amux plugin lock
  amux plugin lock --platform linux/arm64
  amux plugin lock --check`,
		Args: app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error { return lock(o) }),
	}
	cmd.Flags().BoolVar(&o.Check, "check", false, "compare the lock with what is installed")
	app.AddRepeated(cmd.Flags(), &o.Platforms, "platform", "", "fetch the archive for `OS/ARCH` as well, to hash its files (repeatable)")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON, with --check")
	return cmd
}

// projectLock returns a function that finds the lock of the project here.
func projectLock(a *app.App) func() (string, error) {
	return func() (string, error) {
		dir, err := a.Config.Dir()
		if err != nil {
			return "", err
		}
		return a.Project.LockFile(dir), nil
	}
}

func lock(o *LockOptions) error {
	in, err := o.Plugins.Installer("")
	if err != nil {
		return err
	}
	file, err := o.LockFile()
	if err != nil {
		return err
	}
	if o.Check {
		if file == "" {
			file = in.LockFile()
		} else if _, err := os.Lstat(file); errors.Is(err, os.ErrNotExist) {
			return pluginapi.Errorf(pluginapi.CodeConfig, "%s does not exist", file).WithHint("write it: amux plugin lock")
		}
		return checkLock(o, in, file)
	}
	if file == "" {
		return pluginapi.Errorf(pluginapi.CodeConfig, "no project here").
			WithHint("a project has a folder .agent-mux or .git; or name it with --project-dir")
	}
	return writeLock(o, in, file)
}

func checkLock(o *LockOptions, in *install.Installer, file string) error {
	read := install.ReadProjectLock
	if file == in.LockFile() {
		read = install.ReadLock
	}
	locked, err := read(file)
	if err != nil {
		return err
	}
	differences := in.Check(locked)
	if o.JSON {
		if err := o.Print.JSON(append([]install.Difference{}, differences...)); err != nil {
			return err
		}
	} else {
		for _, d := range differences {
			o.Print.Outf("%s: %s\n", d.Name, d.What)
		}
		if len(differences) == 0 {
			o.Print.Notef("%s: %s as locked", file, render.Plural(len(locked.Plugins), "plugin"))
		}
	}
	if len(differences) > 0 {
		return app.ExitError(1)
	}
	return nil
}

// writeLock locks what the user has installed, except links, which exist nowhere else.
func writeLock(o *LockOptions, in *install.Installer, file string) error {
	for _, p := range o.Platforms {
		if strings.Count(p, "/") != 1 {
			return app.Usagef("invalid --platform %q: expected OS/ARCH", p).WithHint("for example linux/arm64")
		}
	}
	own, err := install.ReadLock(in.LockFile())
	if err != nil {
		return err
	}
	locked := &install.Lock{}
	for _, entry := range own.Plugins {
		if entry.Link != "" {
			o.Print.Warnf("skipping plugin %s: it is linked to %s", entry.Name, entry.Link)
			continue
		}
		entry.Previous = ""
		locked.Set(entry)
	}
	if len(locked.Plugins) == 0 {
		return pluginapi.Errorf(pluginapi.CodeConfig, "no plugin is installed that could be locked").WithHint("see: amux plugin install --help")
	}
	err = o.Interruptible(func(ctx context.Context) error {
		for i := range locked.Plugins {
			for _, platform := range slices.Compact(slices.Sorted(slices.Values(o.Platforms))) {
				if err := in.Complete(ctx, &locked.Plugins[i], platform); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := install.WriteProjectLock(file, locked); err != nil {
		return err
	}
	o.Print.Notef("%s: %s", file, render.Plural(len(locked.Plugins), "plugin"))
	return nil
}
