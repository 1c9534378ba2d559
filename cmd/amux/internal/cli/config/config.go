// Package config has the commands that show and change the user's settings.
package config

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Options are what the commands need.
type Options struct {
	Process *app.Process
	Print   *app.Printer
	Config  *app.Config
	Project *app.Project

	Origin, JSON bool
}

// NewCmd makes amux config.
func NewCmd(a *app.App) *cobra.Command {
	o := &Options{Process: a.Process, Print: a.Print, Config: a.Config, Project: a.Project}
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and change settings",
		Long: `Show and change config.toml, your settings. Comments, order and everything else in the
file stay as they are; what would not be valid is not written.`,
	}
	cmd.AddCommand(newGet(o), newSet(o), newUnset(o), newList(o), newEdit(o), newPath(o))
	return cmd
}

// complete completes the name of a setting as the first argument.
func complete(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return settings.Keys(), cobra.ShellCompDirectiveNoFileComp
}

func newGet(o *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "get KEY",
		Short: "Print a setting",
		Long: `Print the value of a setting that counts here: the project's, yours, or the default. It
prints nothing, and exits with 1, if there is none. A key in a table has its table's
name before a dot.`,
		Example:           "  amux config get model\n  amux config get budgets.day.cost",
		Args:              app.ExactArgs("a setting"),
		ValidArgsFunction: complete,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			want, err := settings.Key(args[0])
			if err != nil {
				return err
			}
			values, err := o.values()
			if err != nil {
				return err
			}
			for _, v := range values {
				if key, err := settings.Key(v.Key); err == nil && slices.Equal(key, want) && v.Text != "" {
					o.Print.Outf("%s\n", settings.Plain(v.Text))
					return nil
				}
			}
			return app.ExitError(1)
		}),
	}
}

func newSet(o *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY VALUE…",
		Short: "Change a setting",
		Long: `Change a setting in your config.toml. Several values make a list. The file is checked
before it is written; it keeps its comments, its order and its mode.`,
		Example:           "  amux config set model opus\n  amux config set tags ci nightly\n  amux config set budgets.day.cost 20",
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: complete,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			dir, err := o.Config.SafeDir()
			if err == nil {
				err = settings.Set(dir, args[0], args[1:]...)
			}
			return err
		}),
	}
}

func newUnset(o *Options) *cobra.Command {
	return &cobra.Command{
		Use:               "unset KEY",
		Short:             "Take a setting out of config.toml",
		Long:              `Take a setting out of your config.toml, so that its default counts again.`,
		Example:           "  amux config unset model",
		Args:              app.ExactArgs("a setting"),
		ValidArgsFunction: complete,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			dir, err := o.Config.SafeDir()
			if err != nil {
				return err
			}
			found, err := settings.Unset(dir, args[0])
			if err == nil && !found {
				o.Print.Notef("%s is not set in %s", args[0], filepath.Join(dir, settings.Name))
			}
			return err
		}),
	}
}

func newList(o *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List all settings",
		Long: `List the settings that count here, as a config.toml would have them, and with --origin
who has set each: the environment, the project's file, yours, or the default. A flag of
amux run wins over all of them.`,
		Example: "  amux config list\n  amux config list --origin\n  amux config list --json | jq -r '.[] | select(.set).key'",
		Args:    app.ExactArgs(),
		RunE:    app.Command(func(*cobra.Command, []string) error { return list(o) }),
	}
	cmd.Flags().BoolVar(&o.Origin, "origin", false, "show who has set each")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func list(o *Options) error {
	values, err := o.values()
	if err != nil {
		return err
	}
	if o.JSON {
		return o.Print.JSON(values)
	}
	rows := [][]string{{"KEY", "VALUE"}}
	if o.Origin {
		rows[0] = append(rows[0], "ORIGIN")
	}
	for _, v := range values {
		text := strings.Join(strings.Fields(v.Text), " ")
		if text == "" {
			text = "-"
		}
		row := []string{v.Key, text}
		if o.Origin {
			row = append(row, v.Origin)
		}
		rows = append(rows, row)
	}
	o.Print.Table(rows)
	return nil
}

// values are those of the files and of the environment.
func (o *Options) values() ([]settings.Value, error) {
	dir, err := o.Config.SafeDir()
	if err != nil {
		return nil, err
	}
	o.Project.WarnIgnored(dir)
	values, err := settings.Values(dir, o.Project.Dir(dir), o.Config.ProfileName())
	if ms := o.Process.Getenv("AGENT_MUX_GRACE_PERIOD_MS"); ms != "" && err == nil {
		i := slices.IndexFunc(values, func(v settings.Value) bool { return v.Key == "grace" })
		values[i] = settings.Value{Key: "grace", Text: `"` + ms + `ms"`, Origin: "environment AGENT_MUX_GRACE_PERIOD_MS", Set: true}
	}
	return values, err
}

func newPath(o *Options) *cobra.Command {
	return &cobra.Command{
		Use:     "path",
		Short:   "Print where config.toml is",
		Long:    `Print the path of your config.toml, whether it exists or not.`,
		Example: "  amux config path\n  cat \"$(amux config path)\"",
		Args:    app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error {
			dir, err := o.Config.Dir()
			if err == nil {
				o.Print.Outf("%s\n", filepath.Join(dir, settings.Name))
			}
			return err
		}),
	}
}

func newEdit(o *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "edit",
		Short: "Open config.toml in your editor",
		Long: `Open a copy of your config.toml in $VISUAL or $EDITOR, or in vi. When the editor ends
without an error and the copy is valid, it takes the place of the file.`,
		Example: "  amux config edit\n  EDITOR=nano amux config edit",
		Args:    app.ExactArgs(),
		RunE:    app.Command(func(*cobra.Command, []string) error { return edit(o) }),
	}
}

// maxFile is the largest config.toml.
const maxFile = 256 << 10

func edit(o *Options) error {
	dir, err := o.Config.SafeDir()
	if err != nil {
		return err
	}
	kept := ""
	err = settings.Edit(dir, func(data []byte) ([]byte, error) {
		copied, err := os.CreateTemp(dir, "config-*.toml")
		if err != nil {
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
		}
		kept = copied.Name()
		_, err = copied.Write(data)
		if err = errors.Join(err, copied.Close()); err != nil {
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
		}
		if err := o.Process.Edit(context.Background(), kept); err != nil {
			return nil, err
		}
		changed, err := foreign.Read(kept, foreign.Rule{Limit: maxFile, Private: true})
		if err != nil {
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
		}
		if bytes.Equal(changed, data) {
			o.Print.Notef("nothing was changed")
		}
		return changed, nil
	})
	if e := pluginapi.AsError(err); e != nil && kept != "" {
		return e.WithHint("your text is kept in %s", kept)
	}
	if err := os.Remove(kept); kept != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Print.Warnf("%v", err)
	}
	return err
}
