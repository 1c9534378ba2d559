package records

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/eventdiff"
	"github.com/amux-dev/amux/internal/sys/printable"
)

// ReplayOptions are what amux replay needs.
type ReplayOptions struct {
	Out   io.Writer
	Print *app.Printer
	Host  func() (app.Host, error)
	Runs  Runs

	Run    string
	Plugin string // a folder; empty: the run's own plugin
	Diff   bool
}

// NewCmdReplay makes amux replay.
func NewCmdReplay(a *app.App) *cobra.Command {
	o := &ReplayOptions{Out: a.IO.Out, Print: a.Print, Host: a.Opener.ForRuns, Runs: a.Runs}
	var plugin string
	cmd := &cobra.Command{
		Use:   "replay [RUN]",
		Short: "Rebuild the events of a run from its journal",
		Long: `Rebuild the events of a run from its journal with the plugin that it was started with,
and print each event as one line of JSON. amux does not start the agent and does not
change the record.

With --plugin another plugin makes the events, for example a newer version of the
adapter: name its folder. It needs no signature.

With --diff amux prints only the differences from the recorded events. The exit code is
0 if there are none, and 1 if there are some.`,
		Example: `  amux replay DGXP98
  amux replay DGXP98 --diff
  amux replay DGXP98 --plugin ./dist/acme --diff`,
		Args:              app.RangeArgs(0, "a run"),
		ValidArgsFunction: a.Runs.Complete,
		RunE: a.Runs.Of(nil, func(cmd *cobra.Command, args []string) error {
			o.Run = args[0]
			if cmd.Flags().Changed("plugin") {
				if plugin == "" {
					return app.Usagef(`invalid --plugin "": expected the folder of a plugin`)
				}
				o.Plugin = a.Abs(plugin)
			}
			if o.Diff {
				return app.IgnoreClosed(replayDiff(o))
			}
			return app.IgnoreClosed(replay(o))
		}),
	}
	// It hides the flag of the same name that all commands have: a recorded run has one
	// plugin, which needs no name.
	cmd.Flags().StringVar(&plugin, "plugin", "", "make the events with the plugin in the folder `DIR`")
	cmd.Flags().BoolVar(&o.Diff, "diff", false, "print how the events differ from the recorded ones; exit with 1 if they do")
	return cmd
}

func replay(o *ReplayOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	o.Runs.Recover(h, o.Run)
	with := host.ReplayOptions{Plugin: o.Plugin, OnPlugin: func(name, version string) {
		o.Print.Notef("replaying with plugin %s %s", name, version)
	}}
	return h.ReplayWith(context.Background(), o.Run, with, o.Out)
}

// replayDiff prints how the rebuilt events differ from those recorded.
func replayDiff(o *ReplayOptions) error {
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	info := run.Info()
	if info.End == nil && info.Damage == nil {
		return app.Usagef("run %s has not ended: its events are not complete", info.ID).WithHint("amux wait %s", info.ID)
	}
	h, err := o.Host()
	if err != nil {
		return err
	}
	made := info.Plugin + " " + info.PluginVersion
	with := host.ReplayOptions{Plugin: o.Plugin, OnPlugin: func(name, version string) {
		made = name + " " + version
		o.Print.Notef("replaying with plugin %s", made)
	}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	recorded := piped(func(w io.Writer) error { return run.CopyEvents(ctx, w, 1) })
	defer recorded.Close()
	replayed := piped(func(w io.Writer) error { return h.ReplayWith(ctx, info.ID, with, w) })
	defer replayed.Close()
	differ, err := eventdiff.Write(o.Out, recorded, replayed, func() string {
		return printable.String(fmt.Sprintf("--- recorded with %s %s\n+++ replayed with %s\n", info.Plugin, info.PluginVersion, made))
	})
	if err != nil {
		return err
	}
	if err := o.Runs.Check(info.ID); err != nil {
		return err
	}
	if differ {
		return app.ExitError(1)
	}
	return nil
}

// piped returns what a function writes. Its error is that of the last read; closing
// the reader ends it.
func piped(write func(w io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }() // nil is the end
	return r
}
