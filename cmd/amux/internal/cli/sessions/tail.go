package sessions

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi/code"
)

// tailPause is how long tail waits before it looks at a session again.
const tailPause = 500 * time.Millisecond

// TailOptions are what amux sessions tail needs.
type TailOptions struct {
	Out     io.Writer
	Print   *app.Printer
	Host    func() (app.Host, error)
	Finder  *Finder
	Signals func() (<-chan os.Signal, func())

	Session string
	Agent   string
	Last    int
	JSON    bool
}

// NewCmdTail makes amux sessions tail.
func NewCmdTail(a *app.App) *cobra.Command {
	o := &TailOptions{Out: a.IO.Out, Print: a.Print, Host: a.Opener.Host, Finder: newFinder(a), Signals: a.Signals}
	cmd := &cobra.Command{
		Use:   "tail SESSION",
		Short: "Follow a session",
		Long: `Show the last messages of a session and then what is said in it, by whatever program
uses it, until Ctrl-C.`,
		Example: "  amux sessions tail 9b53\n  amux sessions tail 9b53 -n 20 --json",
		Args:    app.ExactArgs("a session"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Session = args[0]
			return tail(o)
		}),
	}
	addAgentFlag(cmd, a, &o.Agent)
	cmd.Flags().IntVarP(&o.Last, "last", "n", 5, "begin with the last `N` messages")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print every event as one line of JSON")
	return cmd
}

func tail(o *TailOptions) error {
	if o.Last < 0 {
		return app.Usagef("invalid --last \"%d\": expected a number, 0 or more", o.Last)
	}
	h, err := o.Host()
	if err != nil {
		return err
	}
	x, err := o.Finder.One(h, o.Agent, o.Session)
	if err != nil {
		return err
	}
	return follow(o, h, x)
}

// follow shows the last messages of a session and those that come, until a signal.
func follow(o *TailOptions, h app.Sessions, x host.Session) error {
	signals, stop := o.Signals()
	defer stop()
	renderer := newRenderer(o.Print)
	var failed error
	show := func(e host.Event) bool {
		if o.JSON {
			_, failed = o.Out.Write(append(e.Raw, '\n'))
			return failed == nil
		}
		renderer.Event(e.Type, e.Raw)
		failed = renderer.Err()
		return failed == nil
	}
	// Where the last messages begin is known only after all were read.
	begins := make([]uint64, 0, o.Last+1)
	seen := uint64(0)
	err := h.ReadSession(context.Background(), x.Agent, x.ID, false, func(e host.Event) bool {
		if seen = e.Seq; e.Type == code.EventUserMessage || e.Type == code.EventMessageStart {
			if begins = append(begins, e.Seq); len(begins) > o.Last {
				begins = begins[1:]
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	if len(begins) > 0 {
		seen = begins[0] - 1
	}
	changed := fileWatch(x.Path)
	for changed(); ; {
		err := h.ReadSession(context.Background(), x.Agent, x.ID, false, func(e host.Event) bool {
			if e.Seq <= seen {
				return true
			}
			seen = e.Seq
			return show(e)
		})
		if failed != nil {
			return app.IgnoreClosed(failed)
		}
		if err != nil {
			return err
		}
		for {
			select {
			case <-signals:
				return nil
			case <-time.After(tailPause):
			}
			if changed() {
				break
			}
		}
	}
}

// fileWatch returns a function that reports whether a file has changed since the last
// call. A session without a file of its own counts as changed.
func fileWatch(path string) func() bool {
	var size int64
	var modified time.Time
	return func() bool {
		info, err := os.Stat(path)
		if err != nil {
			return true
		}
		same := info.Size() == size && info.ModTime().Equal(modified)
		size, modified = info.Size(), info.ModTime()
		return !same
	}
}
