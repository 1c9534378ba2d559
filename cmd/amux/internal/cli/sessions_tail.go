package cli

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host"
)

// tailPause is how long tail waits before it looks at a session again.
const tailPause = 500 * time.Millisecond

func newSessionsTail(s *session) *cobra.Command {
	var agent string
	var asJSON bool
	var last int
	cmd := &cobra.Command{
		Use:   "tail SESSION",
		Short: "Show what is said in a session from now on",
		Long: `Show the last messages of a session and then what is said in it, by whatever program
it is used, until Ctrl-C. The agent's store is only read.`,
		Args: exactly("a session"),
		RunE: command(func(_ *cobra.Command, args []string) error {
			if last < 0 {
				return usage("--last %d: want a number of messages", last)
			}
			h, err := s.theHost()
			if err != nil {
				return err
			}
			x, err := s.findSession(h, agent, args[0])
			if err != nil {
				return err
			}
			return s.tailSession(h, x, last, asJSON)
		}),
	}
	sessionFlag(cmd, s, &agent)
	cmd.Flags().IntVarP(&last, "last", "n", 5, "begin with the last `N` messages")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print every event as one line of JSON")
	return cmd
}

func (s *session) tailSession(h Host, x host.Session, last int, asJSON bool) error {
	signals, stop := s.app.Signals()
	defer stop()
	renderer := s.sessionRenderer()
	var failed error
	show := func(e host.Event) bool {
		if asJSON {
			_, failed = s.app.IO.Out.Write(append(e.Raw, '\n'))
			return failed == nil
		}
		renderer.Event(e.Type, e.Raw)
		failed = renderer.Err()
		return failed == nil
	}
	// Where the last messages begin is known when all were seen.
	begins := make([]uint64, 0, last+1)
	seen := uint64(0)
	err := h.ReadSession(context.Background(), x.Agent, x.ID, false, func(e host.Event) bool {
		if seen = e.Seq; e.Type == "user_message" || e.Type == "message_start" {
			if begins = append(begins, e.Seq); len(begins) > last {
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
			return ignoreClosed(failed)
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

// fileWatch reports by each call whether a file is another than at the call before.
// A session that is in no file of its own always may be.
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
