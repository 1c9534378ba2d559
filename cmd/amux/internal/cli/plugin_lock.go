package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

func newPluginLock(s *session) *cobra.Command {
	var check, asJSON bool
	var platforms []string
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Write the project's lock file, or check it",
		Long: `Write the project's .agent-mux/plugins.lock: which versions of plugins its runs use,
with the hashes of their archives for all platforms. Commit it; it chooses among
installed plugins and installs none. --check says how it differs from what is
installed, and the exit code is 1 if it does.`,
		Args: exactly(),
		RunE: command(func(*cobra.Command, []string) error {
			in, err := s.installer("")
			if err != nil {
				return err
			}
			file, err := s.projectLock()
			if err != nil {
				return err
			}
			if check {
				if file == "" {
					file = in.LockFile()
				} else if _, err := os.Lstat(file); errors.Is(err, os.ErrNotExist) {
					return pluginapi.Errorf(pluginapi.CodeConfig, "there is no %s to check", file).WithHint("it is written by: amux plugin lock")
				}
				return s.checkLock(in, file, asJSON)
			}
			if file == "" {
				return pluginapi.Errorf(pluginapi.CodeConfig, "there is no project here to lock the plugins of").
					WithHint("a project has .git or .agent-mux; or name its folder by --project-dir")
			}
			return s.writeProjectLock(in, file, platforms)
		}),
	}
	cmd.Flags().BoolVar(&check, "check", false, "compare the lock with what is installed")
	cmd.Flags().StringArrayVar(&platforms, "platform", nil, "fetch the archive of this `OS/ARCH` as well, for the hash of its files")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with --check")
	return cmd
}

func (s *session) checkLock(in *install.Installer, file string, asJSON bool) error {
	read := install.ReadProjectLock
	if file == in.LockFile() {
		read = install.ReadLock
	}
	lock, err := read(file)
	if err != nil {
		return err
	}
	differences := in.Check(lock)
	if asJSON {
		if err := s.printJSON(append([]install.Difference{}, differences...)); err != nil {
			return err
		}
	} else {
		for _, d := range differences {
			s.outf("%s: %s\n", d.Name, d.What)
		}
		if len(differences) == 0 {
			s.errf("%s: %s as locked", file, plural(len(lock.Plugins), "plugin"))
		}
	}
	if len(differences) > 0 {
		return exitError(1)
	}
	return nil
}

// writeProjectLock locks what the user has installed, but for links, which are
// nowhere else.
func (s *session) writeProjectLock(in *install.Installer, file string, platforms []string) error {
	for _, p := range platforms {
		if strings.Count(p, "/") != 1 {
			return usage("--platform %s: want OS/ARCH", p).WithHint("for example linux/arm64")
		}
	}
	own, err := install.ReadLock(in.LockFile())
	if err != nil {
		return err
	}
	lock := &install.Lock{}
	for _, entry := range own.Plugins {
		if entry.Link != "" {
			s.warnf("plugin %s is linked to %s, and is left out", entry.Name, entry.Link)
			continue
		}
		entry.Previous = ""
		lock.Set(entry)
	}
	if len(lock.Plugins) == 0 {
		return pluginapi.Errorf(pluginapi.CodeConfig, "no plugin is installed that could be locked").WithHint("see: amux plugin install --help")
	}
	err = s.interruptible(func(ctx context.Context) error {
		for i := range lock.Plugins {
			for _, platform := range slices.Compact(slices.Sorted(slices.Values(platforms))) {
				if err := in.Complete(ctx, &lock.Plugins[i], platform); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := install.WriteProjectLock(file, lock); err != nil {
		return err
	}
	s.errf("%s: %s", file, plural(len(lock.Plugins), "plugin"))
	return nil
}
