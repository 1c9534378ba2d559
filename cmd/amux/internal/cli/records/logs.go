package records

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/ndjson"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// LogsOptions are what amux logs needs.
type LogsOptions struct {
	Out      io.Writer
	Terminal bool // Out is one
	Print    *app.Printer
	Runs     Runs

	Run    string
	JSON   bool
	Follow bool
	From   uint64 // number of the first event; 0: the first
	Raw    bool   // the agent's own last lines
	Lines  int
}

// NewCmdLogs makes amux logs.
func NewCmdLogs(a *app.App) *cobra.Command {
	o := &LogsOptions{Out: a.IO.Out, Terminal: a.IO.OutTTY, Print: a.Print, Runs: a.Runs}
	cmd := &cobra.Command{
		Use: "logs [RUN]", Aliases: []string{"log"},
		Short: "Show what a run did",
		Long: `Show what a run did, as amux showed it then, or every event with --json. With -f amux
goes on until the run ends. --from begins at an event, so that a reader which has seen
some can go on. -n shows the last lines that the agent itself printed, on stdout and
stderr, byte for byte. RUN is an id, a name, or at least four characters from the start
or end of an id.`,
		Example: `  amux logs 86CCFA
  amux logs -f nightly
  amux logs 86CCFA --json | jq -r 'select(.type == "tool_call_ready").tool_name'
  amux logs -f --json --from 120 86CCFA
  amux logs 86CCFA -n 20`,
		Args:              app.RangeArgs(0, "a run"),
		ValidArgsFunction: a.Runs.Complete,
		RunE: a.Runs.Of(nil, func(cmd *cobra.Command, args []string) error {
			o.Run, o.Raw = args[0], cmd.Flags().Changed("lines")
			return logs(o)
		}),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print every event as one line of JSON")
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on until the run ends")
	cmd.Flags().Uint64Var(&o.From, "from", 0, "begin at the event with this `SEQ`")
	cmd.Flags().IntVarP(&o.Lines, "lines", "n", 0, "show the last `N` lines that the agent printed")
	app.Also(cmd, "lines", "tail")
	return cmd
}

func logs(o *LogsOptions) error {
	switch {
	case o.Raw && o.Lines < 0:
		return app.Usagef("invalid --lines \"%d\": expected a number, 0 or more", o.Lines)
	case o.Raw && (o.Follow || o.JSON || o.From > 0):
		return app.Usagef("--lines shows the agent's output, not events").WithHint("leave out --follow, --json and --from")
	}
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	if o.Raw {
		if err := tail(o, run); err != nil {
			return err
		}
		// What was shown is at the end of the record, and so is what was looked at.
		return o.Runs.WarnDamaged(host.Integrity{Damage: run.Info().Damage}, run.ID())
	}
	if err := show(o, run); err != nil {
		return err
	}
	return o.Runs.Check(run.ID())
}

// show shows the events that there are, and with --follow those that come. If the host
// dies, the rest comes from the recovered record.
func show(o *LogsOptions, run app.Recorded) error {
	info := run.Info()
	options := o.Print.RenderOptions()
	options.Prompts = true
	renderer := render.New(options)
	last := &ndjson.LastLine{W: o.Out}
	skipped := max(o.From, 1) - 1
	out := &counter{w: last, lines: skipped}
	seen := skipped // the last event that was shown
	var patience app.Patience
	for {
		var err error
		switch {
		case o.JSON && (o.Follow || info.End != nil):
			err = run.CopyEvents(context.Background(), out, seen+1)
			seen = out.lines
		case info.Events <= skipped && !o.Follow:
		default:
			for event, failed := range run.Events(context.Background(), seen+1) {
				if err = failed; err != nil {
					break
				}
				if seen = event.Seq; o.JSON {
					if _, err = out.Write(append(event.Raw, '\n')); err != nil {
						break
					}
				} else if renderer.Event(event.Type, event.Raw); renderer.Err() != nil {
					return nil // its reader has seen enough
				}
				if !o.Follow && seen >= info.Events {
					break
				}
			}
		}
		if err == nil && !o.JSON {
			renderer.Flush() // what it waits for may come much later
		}
		if !errors.Is(err, pluginapi.CodeHostGone) || !patience.Again(run.Info(), seen) {
			if o.Follow && err == nil && run.Info().Code == pluginapi.CodeHostGone {
				o.Print.Warnf("the process that hosted run %s died; its last events were rebuilt from the journal", run.ID())
			}
			err = app.Unended(run, err)
			if o.JSON && err != nil && last.Err == nil && !last.Ended() {
				ndjson.WriteError(o.Out, run.ID(), pluginapi.AsError(err)) // as run --json does
			}
			return app.IgnoreClosed(err)
		}
		// The rest is rebuilt from the journal, without a gap and without a repeat.
		if run, err = o.Runs.Open(run.ID()); err != nil {
			return err
		}
	}
}

// counter counts the lines that were written, and those before them.
type counter struct {
	w     io.Writer
	lines uint64
}

func (c *counter) Write(data []byte) (int, error) {
	n, err := c.w.Write(data)
	c.lines += uint64(bytes.Count(data[:n], []byte{'\n'}))
	return n, err
}

// tail shows the agent's own last lines: byte for byte, but to a terminal without control
// sequences.
func tail(o *LogsOptions, run app.Recorded) error {
	if !o.Terminal {
		return app.IgnoreClosed(run.Tail(o.Lines, o.Out))
	}
	var text bytes.Buffer
	if err := run.Tail(o.Lines, &text); err != nil {
		return err
	}
	_, err := io.WriteString(o.Out, render.WholeLine(render.String(text.String())))
	return app.IgnoreClosed(err)
}
