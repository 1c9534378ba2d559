package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

func newSessionsShow(s *session) *cobra.Command {
	var agent string
	var asJSON, branches bool
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show a session as if it were a run",
		Long: `Show a session as if it were a run: the assistant's text on stdout, the rest on
stderr, or every event as one line of JSON with --json. A session that was rewound or
edited has branches; the active one is shown, or all with --all-branches. SESSION is
its id, or at least four characters of the start or end of it.`,
		Args: exactly("a session"),
		RunE: command(func(_ *cobra.Command, args []string) error {
			h, err := s.theHost()
			if err != nil {
				return err
			}
			x, err := s.findSession(h, agent, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return s.copySession(h, x, branches)
			}
			renderer := s.sessionRenderer()
			return h.ReadSession(context.Background(), x.Agent, x.ID, branches, func(e host.Event) bool {
				renderer.Event(e.Type, e.Raw)
				return renderer.Err() == nil
			})
		}),
	}
	sessionFlag(cmd, s, &agent)
	cmd.Flags().BoolVar(&branches, "all-branches", false, "also what was rewound or edited away")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print every event as one line of JSON")
	return cmd
}

func (s *session) sessionRenderer() *render.Renderer {
	streams := s.app.IO
	return render.New(render.Options{Out: streams.Out, Err: streams.Err, Color: streams.Color, Width: streams.Width,
		Live: streams.OutTTY, Shared: streams.OutTTY && streams.ErrTTY, Prompts: true, Debug: s.debug})
}

// copySession prints a session's events.
func (s *session) copySession(h Host, x host.Session, branches bool) error {
	var failed error
	err := h.ReadSession(context.Background(), x.Agent, x.ID, branches, func(e host.Event) bool {
		_, failed = s.app.IO.Out.Write(append(e.Raw, '\n'))
		return failed == nil
	})
	if failed != nil {
		return ignoreClosed(failed)
	}
	return err
}
