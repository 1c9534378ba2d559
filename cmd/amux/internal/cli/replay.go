package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/eventdiff"
	"github.com/amux-dev/amux/internal/sys/printable"
)

func newReplay(s *session) *cobra.Command {
	var plugin string
	var diff bool
	cmd := &cobra.Command{
		Use:   "replay RUN",
		Short: "Make the events of a run again, from its journal",
		Long: `Make the events of a run again, from its journal and the plugin it was started with,
and print each as one line of JSON. The agent is not started, and the record stays as
it is.

With --plugin another plugin makes the events, for example a newer version of the
adapter: name its folder. It needs no signature.

With --diff only the differences from the recorded events are shown. The exit code is 0
if there are none, and 1 if there are.`,
		Example: `  amux replay DGXP98
  amux replay DGXP98 --diff
  amux replay DGXP98 --plugin ./dist/acme --diff`,
		Args:              exactly("a run"),
		ValidArgsFunction: s.completeRuns(false),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			o := host.ReplayOptions{}
			if cmd.Flags().Changed("plugin") {
				if plugin == "" {
					return usage(`--plugin "": want the folder of a plugin`)
				}
				o.Plugin = s.abs(plugin)
			}
			if diff {
				return ignoreClosed(s.replayDiff(args[0], o))
			}
			h, err := s.runsHost()
			if err != nil {
				return err
			}
			s.recoverRun(h, args[0])
			o.OnPlugin = func(name, version string) { s.errf("replaying with plugin %s %s", name, version) }
			return ignoreClosed(h.ReplayWith(context.Background(), args[0], o, s.app.IO.Out))
		}),
	}
	// It stands in the place of the flag that all commands have: a recorded run has one
	// plugin, which need not be named.
	cmd.Flags().StringVar(&plugin, "plugin", "", "make the events with the plugin in the folder `DIR`")
	cmd.Flags().BoolVar(&diff, "diff", false, "show how the events differ from the recorded ones; exit 1 if they do")
	return cmd
}

// replayDiff shows how the events that are made again differ from those recorded.
func (s *session) replayDiff(ref string, o host.ReplayOptions) error {
	run, err := s.recorded(ref)
	if err != nil {
		return err
	}
	info := run.Info()
	if info.End == nil && info.Damage == nil {
		return usage("run %s has not ended: its events are not complete", info.ID).WithHint("amux wait %s", info.ID)
	}
	h, err := s.theHost()
	if err != nil {
		return err
	}
	made := info.Plugin + " " + info.PluginVersion
	o.OnPlugin = func(name, version string) {
		made = name + " " + version
		s.errf("replaying with plugin %s", made)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	recorded := piped(func(w io.Writer) error { return run.CopyEvents(ctx, w, 1) })
	defer recorded.Close()
	replayed := piped(func(w io.Writer) error { return h.ReplayWith(ctx, info.ID, o, w) })
	defer replayed.Close()
	differ, err := eventdiff.Write(s.app.IO.Out, recorded, replayed, func() string {
		return printable.String(fmt.Sprintf("--- recorded with %s %s\n+++ replayed with %s\n", info.Plugin, info.PluginVersion, made))
	})
	if err != nil {
		return err
	}
	if err := s.checked(info.ID); err != nil {
		return err
	}
	if differ {
		return exitError(1)
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
