package sessions

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
)

// filter chooses among sessions. Tags and cost are those of amux's runs of a session:
// the agents' stores have none.
type filter struct {
	since, model, cost string
	tags               []string

	after time.Time
	least float64
}

func (f *filter) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.since, "since", "", "only those used within this `TIME`: 12h, 7d, or from a date such as 2026-11-20")
	cmd.Flags().StringVar(&f.model, "model", "", "only those whose model's name contains `TEXT`")
	app.AddRepeated(cmd.Flags(), &f.tags, "tag", "", "only those with a run tagged `TAG` (repeatable: all must match)")
	cmd.Flags().StringVar(&f.cost, "cost", "", "only those whose recorded runs cost at least `USD`")
}

// parse reads the flags.
func (f *filter) parse(now time.Time) error {
	if f.since != "" {
		var err error
		if f.after, err = app.ParseWhen("since", f.since, now); err != nil {
			return err
		}
	}
	if f.cost != "" {
		least, err := strconv.ParseFloat(strings.TrimPrefix(f.cost, "$"), 64)
		if err != nil || least < 0 || math.IsNaN(least) || math.IsInf(least, 0) {
			return app.Usagef("invalid --cost %q: expected an amount in US dollars such as 0.50", f.cost)
		}
		f.least = least
	}
	return nil
}

// any reports whether the filter is set.
func (f *filter) any() bool {
	return f.since != "" || f.model != "" || f.cost != "" || len(f.tags) > 0
}

// apply keeps the sessions that match. One that lacks what the filter asks for does
// not match.
func (f *filter) apply(h app.Host, sessions []host.Session) ([]host.Session, error) {
	type spent struct {
		tags []string
		usd  float64
		paid bool
	}
	runs := map[[2]string]*spent{}
	if f.cost != "" || len(f.tags) > 0 {
		infos, err := app.AllRuns(context.Background(), h)
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			if info.SessionID == "" {
				continue
			}
			key := [2]string{info.Agent, info.SessionID}
			if runs[key] == nil {
				runs[key] = &spent{}
			}
			runs[key].tags = append(runs[key].tags, info.Tags...)
			if info.End != nil && info.End.Cost != nil {
				runs[key].usd += info.End.Cost.USD
				runs[key].paid = true
			}
		}
	}
	kept := []host.Session{} // [] in JSON
	for _, x := range sessions {
		run := runs[[2]string{x.Agent, x.ID}]
		switch {
		case f.since != "" && (x.Updated == nil || x.Updated.Before(f.after)):
		case f.model != "" && !strings.Contains(strings.ToLower(x.Model), strings.ToLower(f.model)):
		case f.cost != "" && (run == nil || !run.paid || run.usd < f.least):
		case len(f.tags) > 0 && (run == nil || slices.ContainsFunc(f.tags, func(tag string) bool { return !slices.Contains(run.tags, tag) })):
		default:
			kept = append(kept, x)
		}
	}
	return kept, nil
}
