package app

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// IsLive reports whether a run has not ended.
func IsLive(r host.RunInfo) bool { return r.End == nil }

// HasEnded reports whether a run has ended.
func HasEnded(r host.RunInfo) bool { return r.End != nil }

// Choose returns the runs that a command is about: those that are named; else those that
// are selected; else the one that the person at the terminal picks. What is selected or
// picked fits too.
func (r *Runs) Choose(cmd *cobra.Command, named []string, s *Selection, fits func(host.RunInfo) bool) ([]string, error) {
	if len(named) > 0 {
		if s.Given() {
			return nil, Usagef("both runs and a selection of runs are named").WithHint("name the runs, or leave them out and select with --agent, --tag, --filter")
		}
		return named, nil
	}
	if !s.Given() && !r.process.Attended() {
		return nil, ExactArgs("a run")(cmd, nil)
	}
	runs, err := r.Select(s)
	if err != nil {
		return nil, err
	}
	runs = slices.DeleteFunc(runs, func(info host.RunInfo) bool { return !fits(info) })
	switch {
	case len(runs) == 0 && s.Given():
		r.print.Notef("no run matches")
		return nil, ExitError(0)
	case len(runs) == 0:
		return nil, Usagef("there is no such run to choose from").WithHint("all runs: amux ps --all")
	case !s.Given():
		picked, err := r.pick(runs)
		return []string{picked}, err
	}
	ids := make([]string, len(runs))
	for i, info := range runs {
		ids[i] = info.ID
	}
	return ids, nil
}

// Of makes the function of a command about one run, its first argument. Where it is
// missing, the person at the terminal picks one of the runs that fit; nil: all do.
func (r *Runs) Of(fits func(host.RunInfo) bool, do func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	if fits == nil {
		fits = func(host.RunInfo) bool { return true }
	}
	return Command(func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			var err error
			if args, err = r.Choose(cmd, nil, &Selection{}, fits); err != nil {
				return err
			}
		}
		return do(cmd, args)
	})
}

// Select returns the runs that are selected: those that have not ended first, then the
// newest.
func (r *Runs) Select(s *Selection) ([]host.RunInfo, error) {
	fits, err := s.Compile(r.process)
	if err != nil {
		return nil, err
	}
	runs, err := r.List()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(runs, func(info host.RunInfo) bool { return !fits(info) }), nil
}

// SelectLive returns the selected runs that have not ended, the newest first. It costs
// nothing for those that have.
func (r *Runs) SelectLive(s *Selection) ([]host.RunInfo, error) {
	fits, err := s.Compile(r.process)
	if err != nil {
		return nil, err
	}
	h, err := r.opener.ForRuns()
	if err != nil {
		return nil, err
	}
	r.RecoverAll(h)
	runs, err := h.Live(context.Background())
	if runs == nil {
		runs = []host.RunInfo{} // [] in JSON
	}
	runs = slices.DeleteFunc(runs, func(info host.RunInfo) bool { return HasEnded(info) || !fits(info) })
	slices.SortStableFunc(runs, func(a, b host.RunInfo) int { return b.Created.Compare(a.Created) })
	return runs, err
}

// SelectNewest returns the selected runs with the newest ids, live or ended, of those that also
// fit: at most n, the newest first. It reads no more records than it takes to find them.
func (r *Runs) SelectNewest(s *Selection, n int, also func(host.RunInfo) bool) ([]host.RunInfo, error) {
	fits, err := s.Compile(r.process)
	if err != nil {
		return nil, err
	}
	h, err := r.opener.ForRuns()
	if err != nil {
		return nil, err
	}
	r.RecoverAll(h)
	newest := []host.RunInfo{} // [] in JSON
	if n == 0 {
		return newest, nil
	}
	for info, err := range h.RunsBefore(context.Background(), "", false) {
		if err != nil {
			return nil, err
		}
		if !fits(info) || !also(info) {
			continue
		}
		if newest = append(newest, info); len(newest) == n {
			break
		}
	}
	slices.SortStableFunc(newest, func(a, b host.RunInfo) int { return b.Created.Compare(a.Created) })
	return newest, nil
}

// Any reports whether a run is recorded, whether it has ended or not.
func (r *Runs) Any() bool {
	h, err := r.opener.ForRuns()
	return err == nil && h.AnyRun()
}

// mostPicked is how many runs a person is offered.
const mostPicked = 20

// pick has the person at the terminal choose one of these runs.
func (r *Runs) pick(runs []host.RunInfo) (string, error) {
	if more := len(runs) - mostPicked; more > 0 {
		runs = runs[:mostPicked]
		r.print.Notef("%s more: amux ps --all", render.Number(int64(more)))
	}
	var rows [][]string
	named := slices.ContainsFunc(runs, func(run host.RunInfo) bool { return run.Name != "" })
	for i, run := range runs {
		row := []string{strconv.Itoa(i+1) + ")", render.ShortID(run.ID), run.Agent, strings.ReplaceAll(run.State, "_", " "), render.Age(time.Since(run.Created)), render.Excerpt(run.Prompt, 34)}
		if named {
			row = slices.Insert(row, 2, render.Dash(render.Excerpt(run.Name, 12)))
		}
		rows = append(rows, row)
	}
	table(r.process.IO.Err, rows)
	text := r.process.IO.Ask("run: ")
	if text == "" {
		return "", Usagef("no run was chosen").WithHint("choose a number from 1 to %d", len(runs))
	}
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > len(runs) {
			return "", Usagef("there is no run %d in the list", n).WithHint("choose a number from 1 to %d", len(runs))
		}
		return runs[n-1].ID, nil
	}
	return text, nil // a name, or an id
}
