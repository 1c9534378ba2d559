package sessions

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// hits is how many places of one session search prints.
const hits = 3

// SearchOptions are what amux sessions search needs.
type SearchOptions struct {
	Out    io.Writer
	Print  *app.Printer
	Host   func() (app.Host, error)
	Finder *Finder
	Now    func() time.Time

	Text   string
	Agent  string
	All    bool // folders
	JSON   bool
	Filter filter
}

// NewCmdSearch makes amux sessions search.
func NewCmdSearch(a *app.App) *cobra.Command {
	o := &SearchOptions{Out: a.IO.Out, Print: a.Print, Host: a.Opener.Host, Finder: newFinder(a), Now: time.Now}
	cmd := &cobra.Command{
		Use:   "search TEXT",
		Short: "Search what was said in sessions",
		Long: `Search what people and agents said in the sessions of this folder, or of all folders
with --all. Upper and lower case are the same. The exit code is 1 if nothing is found.`,
		Example: `  amux sessions search "rate limit"
  amux sessions search TODO --all --since 7d --json`,
		Args: app.ExactArgs("a text"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Text = args[0]
			return search(o)
		}),
	}
	addAgentFlag(cmd, a, &o.Agent)
	o.Filter.addFlags(cmd)
	cmd.Flags().BoolVarP(&o.All, "all", "a", false, "search the sessions of all folders")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print each place as one line of JSON")
	return cmd
}

func search(o *SearchOptions) error {
	if strings.TrimSpace(o.Text) == "" {
		return app.Usagef("the text to search for is empty")
	}
	if err := o.Filter.parse(o.Now()); err != nil {
		return err
	}
	h, err := o.Host()
	if err != nil {
		return err
	}
	sessions, err := o.Finder.All(h, o.Agent, o.All, 0)
	if err != nil {
		return err
	}
	if o.Filter.any() {
		if sessions, err = o.Filter.apply(h, sessions); err != nil {
			return err
		}
	}
	return searchIn(o, h, sessions)
}

// hit is a place in a session in --json.
type hit struct {
	Agent   string `json:"agent"`
	ID      string `json:"session_id"`
	Seq     uint64 `json:"seq"`
	Role    string `json:"role"`
	Excerpt string `json:"excerpt"`
}

func searchIn(o *SearchOptions, h app.Sessions, sessions []host.Session) error {
	pattern := regexp.MustCompile(`(?i)` + regexp.QuoteMeta(o.Text))
	kept := newSieve(o.Text).keep(sessions)
	any := false
	for i, x := range sessions {
		if !kept[i] {
			continue
		}
		var found []hit
		err := h.ReadSession(context.Background(), x.Agent, x.ID, false, func(e host.Event) bool {
			if m, ok := messageOf(e); ok {
				if at := pattern.FindStringIndex(m.text); at != nil {
					found = append(found, hit{x.Agent, x.ID, e.Seq, m.role, excerpt(m.text, at)})
				}
			}
			return o.JSON || len(found) < hits
		})
		if err != nil {
			o.Print.Warnf("session %s of %s: %v", x.ID, x.Agent, err)
		}
		any = any || len(found) > 0
		for i, place := range found {
			if o.JSON {
				line, err := json.Marshal(place)
				if err != nil {
					return err
				}
				fmt.Fprintf(o.Out, "%s\n", line)
				continue
			}
			if i == 0 {
				o.Print.Outf("%s  %s  %s\n", x.ID, x.Agent, render.Excerpt(x.Title, 60))
			}
			o.Print.Outf("  %s: %s\n", place.Role, place.Excerpt)
		}
	}
	if !any {
		o.Print.Notef("%q was not found in %s", o.Text, render.Plural(len(sessions), "session"))
		return app.ExitError(1)
	}
	return nil
}

// excerpt is a text around a place, in one line.
func excerpt(text string, at []int) string {
	const around = 40
	from, to := max(0, at[0]-around), min(len(text), at[1]+around)
	out := strings.Join(strings.Fields(strings.ToValidUTF8(text[from:to], "")), " ")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}
