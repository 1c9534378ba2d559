package sessions

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// ListOptions are what amux sessions list needs.
type ListOptions struct {
	Print  *app.Printer
	Host   func() (app.Host, error)
	Finder *Finder
	Now    func() time.Time

	Agent  string // empty: all
	All    bool   // folders
	Limit  int
	JSON   bool
	Filter filter
}

// NewCmdList makes amux sessions list.
func NewCmdList(a *app.App) *cobra.Command {
	o := &ListOptions{Print: a.Print, Host: a.Opener.Host, Finder: newFinder(a), Now: time.Now}
	cmd := &cobra.Command{
		Use: "list [AGENT]", Aliases: []string{"ls"},
		Short: "List sessions, the newest first",
		Long: `List the sessions of this folder, or of all folders with --all, the newest first: those
of one agent, or of every installed agent whose store amux can read.`,
		Example: `  amux sessions list
  amux sessions list claude --all --since 7d
  amux sessions list --tag nightly --cost 0.50 --json`,
		Args:              app.RangeArgs(0, "an agent"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Agent = app.Arg(args, 0)
			return list(o)
		}),
	}
	f := cmd.Flags()
	o.Filter.addFlags(cmd)
	f.BoolVarP(&o.All, "all", "a", false, "list the sessions of all folders")
	f.IntVarP(&o.Limit, "limit", "n", 50, "list at most `N` of each agent; 0: all")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func list(o *ListOptions) error {
	if o.Limit < 0 {
		return app.Usagef("invalid --limit \"%d\": expected a number, 0 or more", o.Limit)
	}
	if err := o.Filter.parse(o.Now()); err != nil {
		return err
	}
	h, err := o.Host()
	if err != nil {
		return err
	}
	most := o.Limit
	if o.Filter.any() {
		most = 0 // of those that match
	}
	sessions, err := o.Finder.All(h, o.Agent, o.All, most)
	if err == nil && o.Filter.any() {
		sessions, err = o.Filter.apply(h, sessions)
		sessions = newestOfEach(sessions, o.Limit)
	}
	switch {
	case err != nil:
		return err
	case o.JSON:
		return o.Print.JSON(sessions)
	case len(sessions) == 0 && o.Filter.any():
		o.Print.Notef("no session matches")
		return nil
	case len(sessions) == 0 && o.All:
		o.Print.Notef("no sessions")
		return nil
	case len(sessions) == 0:
		o.Print.Notef("no sessions of this folder; --all lists those of all folders")
		return nil
	}
	rows := [][]string{{"SESSION", "AGENT", "AGE", "FOLDER", "TITLE"}}
	for _, x := range sessions {
		old := "-"
		if x.Updated != nil {
			old = render.Age(o.Now().Sub(*x.Updated))
		}
		rows = append(rows, []string{render.String(x.ID), x.Agent, old, render.Dash(x.Cwd), render.Excerpt(x.Title, 60)})
	}
	o.Print.Table(rows)
	return nil
}

// newestOfEach keeps at most limit sessions of each agent; 0: all.
func newestOfEach(sessions []host.Session, limit int) []host.Session {
	if limit == 0 {
		return sessions
	}
	count := map[string]int{}
	return slices.DeleteFunc(sessions, func(x host.Session) bool {
		count[x.Agent]++
		return count[x.Agent] > limit
	})
}
