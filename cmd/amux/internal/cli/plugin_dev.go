package cli

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

func newPluginDev(s *session) *cobra.Command {
	var replace bool
	var takeOver []string
	cmd := &cobra.Command{
		Use:   "dev [DIR]",
		Short: "Build a plugin, link it, and build it again whenever it is saved",
		Long: `Build the Go plugin in a folder, link it, and build it again whenever a file is
saved, until Ctrl-C. New runs use the new build, runs that have begun keep theirs.
What does not build is shown, and the last good build stays. The link stays too, and
every run says so; amux plugin remove takes it away.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly("a folder")(cmd, args)
			}
			return nil
		},
		RunE: command(func(_ *cobra.Command, args []string) error {
			w := &works{s: s, dir: s.app.Cwd}
			if len(args) == 1 {
				w.dir = s.abs(args[0])
			}
			defer w.close()
			if _, _, err := w.manifest(); err != nil {
				return err
			}
			if !w.isGo() {
				return pluginapi.Errorf(pluginapi.CodeValidation, "%s holds no Go program to build", w.dir).
					WithHint("build it yourself, and link it: amux plugin install %s", w.dir)
			}
			w.link = install.Request{Place: install.Place{Link: w.dir}, Develop: true, Replace: replace, TakeOver: takeOver}
			return s.interruptible(w.develop)
		}),
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "take the place of a plugin that came with amux")
	cmd.Flags().StringArrayVar(&takeOver, "take-over", nil, "let it serve this agent in the place of another plugin, by `ID` (repeatable)")
	return cmd
}

// lookAgain is how often the files are looked at.
const lookAgain = 300 * time.Millisecond

// develop builds at once, and again whenever what it builds from has changed.
func (w *works) develop(ctx context.Context) error {
	last := ""
	for {
		if now := w.state(); now != last {
			last = now
			if err := w.rebuild(ctx); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				w.s.say(pluginapi.AsError(err), "", "")
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

// state tells one set of sources from another.
func (w *works) state() string {
	var b strings.Builder
	_ = filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone while we look
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

// rebuild puts a new build in the place of the last, and links the folder.
func (w *works) rebuild(ctx context.Context) error {
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
	in, err := w.s.installer("")
	if err != nil {
		return err
	}
	result, err := in.Install(ctx, w.link)
	if err != nil {
		return err
	}
	w.s.errf("built %s %s; try it: amux run %s", result.Name, result.Version, m.Agents[0].ID)
	return nil
}
