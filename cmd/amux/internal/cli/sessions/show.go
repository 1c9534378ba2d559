package sessions

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// ShowOptions are what amux sessions show needs.
type ShowOptions struct {
	Out    io.Writer
	Print  *app.Printer
	Host   func() (app.Host, error)
	Finder *Finder

	Session     string
	Agent       string
	AllBranches bool
	JSON        bool
}

// NewCmdShow makes amux sessions show.
func NewCmdShow(a *app.App) *cobra.Command {
	o := &ShowOptions{Out: a.IO.Out, Print: a.Print, Host: a.Opener.Host, Finder: newFinder(a)}
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show a session like a run",
		Long: `Show a session like a run: the assistant's text on stdout, the rest on stderr; or every
event as one line of JSON with --json. A session that was rewound or edited has
branches: amux shows the active one, or all with --all-branches. SESSION is an id, or
at least four characters from the start or end of it.`,
		Example: "  amux sessions show 9b53\n  amux sessions show 9b53 --agent claude --json | jq -r .type",
		Args:    app.ExactArgs("a session"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Session = args[0]
			return show(o)
		}),
	}
	addAgentFlag(cmd, a, &o.Agent)
	cmd.Flags().BoolVar(&o.AllBranches, "all-branches", false, "show what was rewound or edited away as well")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print every event as one line of JSON")
	return cmd
}

func show(o *ShowOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	x, err := o.Finder.One(h, o.Agent, o.Session)
	if err != nil {
		return err
	}
	if o.JSON {
		return copyEvents(o.Out, h, x, o.AllBranches)
	}
	renderer := newRenderer(o.Print)
	return h.ReadSession(context.Background(), x.Agent, x.ID, o.AllBranches, func(e host.Event) bool {
		renderer.Event(e.Type, e.Raw)
		return renderer.Err() == nil
	})
}

func newRenderer(p *app.Printer) *render.Renderer {
	options := p.RenderOptions()
	options.Prompts = true
	return render.New(options)
}

// copyEvents prints a session's events as they are.
func copyEvents(out io.Writer, h app.Sessions, x host.Session, branches bool) error {
	var failed error
	err := h.ReadSession(context.Background(), x.Agent, x.ID, branches, func(e host.Event) bool {
		_, failed = out.Write(append(e.Raw, '\n'))
		return failed == nil
	})
	if failed != nil {
		return app.IgnoreClosed(failed)
	}
	return err
}
