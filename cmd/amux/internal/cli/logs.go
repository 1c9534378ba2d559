package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/pluginapi"
)

// logsOptions are the flags of logs.
type logsOptions struct {
	json, follow bool
	lines        int
}

func newLogs(s *session) *cobra.Command {
	o := &logsOptions{}
	cmd := &cobra.Command{
		Use:   "logs RUN",
		Short: "Show what a run did, or does",
		Long: `Show what a run did, as it was shown then, or every event with --json. With -f what
is to come is shown as well, until the run ends. -n shows what the agent itself
printed last, on stdout and stderr, byte for byte. RUN is its id, its name, or at
least four characters of the start or end of its id.`,
		Args:              exactly("a run"),
		ValidArgsFunction: s.completeRuns(false),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			raw := cmd.Flags().Changed("lines")
			switch {
			case raw && o.lines < 0:
				return usage("--lines %d: want a number of lines", o.lines)
			case raw && (o.follow || o.json):
				return usage("-n shows what the agent printed, not events").WithHint("leave out --follow and --json")
			}
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			if raw {
				err = s.tail(run, o.lines)
			} else {
				err = s.logs(run, o)
			}
			if err != nil {
				return err
			}
			return s.checked(run.ID())
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print every event as one line of JSON")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until the run ends")
	cmd.Flags().IntVarP(&o.lines, "lines", "n", 0, "the last `N` lines that the agent printed")
	return cmd
}

// logs shows the events there are, or those that come as well.
func (s *session) logs(run Recorded, o *logsOptions) error {
	info := run.Info()
	streams := s.app.IO
	renderer := render.New(render.Options{Out: streams.Out, Err: streams.Err, Color: streams.Color, Width: streams.Width,
		Live: streams.OutTTY, Shared: streams.OutTTY && streams.ErrTTY, Prompts: true, Debug: s.debug})
	last := &lastLine{w: streams.Out}
	out := &counter{w: last}
	seen := uint64(0)
	var try patience
	for {
		var err error
		switch {
		case o.json && (o.follow || info.End != nil):
			err = run.CopyEvents(context.Background(), out, seen+1)
			seen = out.lines
		case info.Events == 0 && !o.follow:
		default:
			for event, failed := range run.Events(seen + 1) {
				if err = failed; err != nil {
					break
				}
				if seen = event.Seq; o.json {
					if _, err = out.Write(append(event.Raw, '\n')); err != nil {
						break
					}
				} else if renderer.Event(event.Type, event.Raw); renderer.Err() != nil {
					return nil // its reader has seen enough
				}
				if !o.follow && seen >= info.Events {
					break
				}
			}
		}
		if err == nil && !o.json {
			renderer.Flush() // what it waits for may come much later
		}
		if !errors.Is(err, pluginapi.CodeHostGone) || !try.again(run.Info(), seen) {
			if o.follow && err == nil && run.Info().Code == pluginapi.CodeHostGone {
				s.warnf("the process that hosted run %s has died; what it had not told is from the run's journal", run.ID())
			}
			err = unended(run, err)
			if o.json && o.follow && err != nil && last.err == nil && !last.ended() {
				s.printError(run.ID(), pluginapi.AsError(err)) // as run --json does
			}
			return ignoreClosed(err)
		}
		// The rest is made from the journal, without a gap and without a repeat.
		if run, err = s.recorded(run.ID()); err != nil {
			return err
		}
	}
}

// counter counts the lines that were written.
type counter struct {
	w     io.Writer
	lines uint64
}

func (c *counter) Write(data []byte) (int, error) {
	n, err := c.w.Write(data)
	c.lines += uint64(bytes.Count(data[:n], []byte{'\n'}))
	return n, err
}

// tail shows the agent's own last lines: byte for byte, but not to a terminal,
// which they could command.
func (s *session) tail(run Recorded, n int) error {
	if !s.app.IO.OutTTY {
		return ignoreClosed(run.Tail(n, s.app.IO.Out))
	}
	var text bytes.Buffer
	if err := run.Tail(n, &text); err != nil {
		return err
	}
	_, err := io.WriteString(s.app.IO.Out, ensureNewline(render.String(text.String())))
	return ignoreClosed(err)
}

// ignoreClosed takes a reader of stdout that has gone for no error.
func ignoreClosed(err error) error {
	if errors.Is(err, fs.ErrClosed) || isBrokenPipe(err) {
		return nil
	}
	return err
}
