package records

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// PsOptions are what amux ps needs.
type PsOptions struct {
	Print   *app.Printer
	Process *app.Process
	Runs    Runs
	Config  *app.Config
	Project *app.Project
	Now     func() time.Time
	Width   int

	Selection app.Selection
	All       bool
	Last      int // -1: all
	Quiet     bool
	JSON      bool
	Format    string
	Here      bool
}

// NewCmdPs makes amux ps.
func NewCmdPs(a *app.App) *cobra.Command {
	o := &PsOptions{Print: a.Print, Process: a.Process, Runs: a.Runs, Config: a.Config, Project: a.Project, Now: time.Now, Width: a.IO.Width}
	cmd := &cobra.Command{
		Use:     "ps",
		Aliases: []string{"ls"},
		Short:   "List runs",
		Long: `List the live runs of all terminals: those that have not ended. -a lists the ended ones
too, newest first, -n the newest of all. The id in the first column is enough to name a
run.

Filters with different keys must all fit; of several with the same key, one. The states
are queued, starting, running, waiting, paused, completed, failed, canceled, timed_out
and lost; live and ended stand for several, and a filter by state lists ended runs too.`,
		Example: `  amux ps
  amux ps -a --tag nightly --filter state=failed
  amux ps -n 5 --format '{{.ID}} {{.State}} {{.Prompt}}'
  amux stop $(amux ps -q --agent codex)
  amux ps --all --json | jq -r '.[] | select(.state == "failed").run_id'`,
		Args: app.ExactArgs(),
		RunE: app.Command(func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("last") {
				o.Last = -1
			}
			if elsewhere(a.Process, o.Format) {
				return a.HandOver()
			}
			return ps(o)
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&o.All, "all", "a", false, "list ended runs too")
	f.IntVarP(&o.Last, "last", "n", 0, "list the newest `N` runs, live or ended")
	o.Selection.AddFlags(f)
	f.BoolVar(&o.Here, "project", false, "only the runs of this project")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print only the ids")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	f.StringVar(&o.Format, "format", "", "print each run by this Go `TEMPLATE`, such as '{{.ID}} {{.State}}'; the fields are those of host.RunInfo")
	return cmd
}

func ps(o *PsOptions) error {
	format, err := parseRunFormat(o.Process, o.Format)
	if err != nil {
		return err
	}
	switch {
	case o.Last < -1:
		return app.Usagef("invalid --last \"%d\": expected a number, 0 or more", o.Last)
	case o.JSON && (o.Quiet || o.Format != "") || o.Quiet && o.Format != "":
		return app.Usagef("--quiet, --json and --format cannot be combined")
	}
	here := ""
	if o.Here {
		dir, err := o.Config.Dir()
		if err != nil {
			return err
		}
		here = o.Project.Dir(dir)
		o.Project.WarnIgnored(dir)
		if here == "" {
			return app.Usagef("no project here").WithHint("a project has a folder .agent-mux or .git; or name it with --project-dir")
		}
		here = filepath.ToSlash(here)
	}
	isHere := func(r host.RunInfo) bool { return !o.Here || r.Project == here }
	live := o.Last < 0 && !o.All && !o.Selection.State()
	var runs []host.RunInfo
	switch {
	case o.Last >= 0:
		runs, err = o.Runs.SelectNewest(&o.Selection, o.Last, isHere)
	case live:
		runs, err = o.Runs.SelectLive(&o.Selection)
	default:
		runs, err = o.Runs.Select(&o.Selection)
	}
	if err != nil {
		return err
	}
	runs = slices.DeleteFunc(runs, func(r host.RunInfo) bool { return !isHere(r) })
	warnDamaged(o.Print, runs)
	switch {
	case o.JSON:
		return o.Print.JSON(withQuestions(o.Runs, runs))
	case o.Quiet:
		for _, r := range runs {
			o.Print.Outf("%s\n", r.ID)
		}
		return nil
	case format != nil:
		return printRunFormat(o.Print, format, runs...)
	case len(runs) > 0:
		o.Print.Table(columns(runs, o.Width, o.Now()))
	case live && (o.Here || o.Selection.Given()):
		o.Print.Notef("no live runs that match; also those that have ended: amux ps -a")
	case live && o.Runs.Any():
		o.Print.Notef("no live runs; those that have ended: amux ps -a")
	default:
		o.Print.Notef("no runs")
	}
	return nil
}

// maxWarned is how many damaged runs are named, so that the list stays readable on a disk
// that has lost many.
const maxWarned = 5

func warnDamaged(p *app.Printer, runs []host.RunInfo) {
	damaged := 0
	for _, r := range runs {
		if len(r.Damage) == 0 {
			continue
		}
		if damaged++; damaged > maxWarned {
			continue
		}
		for _, d := range r.Damage {
			p.Warnf("run %s: %s; see: amux inspect %[1]s", render.ShortID(r.ID), d)
		}
	}
	if more := damaged - maxWarned; more > 0 {
		p.Warnf("%s more with damaged records; amux ps --json names them", render.Plural(more, "run"))
	}
}

// runJSON is a run and what it asks.
type runJSON struct {
	host.RunInfo
	Questions []host.Question `json:"questions"` // that wait for people
}

func withQuestions(runs Runs, list []host.RunInfo) []runJSON {
	all := make([]runJSON, len(list))
	for i, info := range list {
		all[i] = runJSON{info, runs.Questions(info)}
	}
	return all
}

// Columns of amux ps appear where the terminal is wide enough for them and for a prompt
// that can be recognized.
const (
	ageWidth  = 50  // with the age
	nameWidth = 80  // with the name
	costWidth = 100 // with cost and folder
	minPrompt = 16
)

// columns makes a table of runs that fits width.
func columns(runs []host.RunInfo, width int, now time.Time) [][]string {
	named := width >= nameWidth && slices.ContainsFunc(runs, func(r host.RunInfo) bool { return r.Name != "" })
	costs := width >= costWidth && slices.ContainsFunc(runs, func(r host.RunInfo) bool { return r.End != nil && r.End.Cost != nil })
	rows := [][]string{{"RUN", "AGENT", "STATE"}}
	if width >= ageWidth {
		rows[0] = append(rows[0], "AGE")
	}
	if named {
		rows[0] = slices.Insert(rows[0], 1, "NAME")
	}
	if costs {
		rows[0] = append(rows[0], "COST")
	}
	for _, r := range runs {
		row := []string{render.ShortID(r.ID), r.Agent, strings.ReplaceAll(r.State, "_", " ")}
		if width >= ageWidth {
			row = append(row, render.Age(now.Sub(r.Created)))
		}
		if named {
			row = slices.Insert(row, 1, render.Dash(render.Excerpt(r.Name, 20)))
		}
		if costs {
			cost := "-"
			if r.End != nil && r.End.Cost != nil {
				cost = render.Money(r.End.Cost.USD)
			}
			row = append(row, cost)
		}
		rows = append(rows, row)
	}
	rows[0] = append(rows[0], "PROMPT")
	for i := range runs {
		rows[i+1] = append(rows[i+1], "")
	}
	fillLast(rows, width, func(i, width int) string { return render.Excerpt(runs[i].Prompt, width) })
	return rows
}

// fillLast gives the last column of a table with a head what is left of width, and at
// least what a prompt takes that can be recognized. text is that of row i.
func fillLast(rows [][]string, width int, text func(i, width int) string) {
	last := len(rows[0]) - 1
	for i := range last {
		widest := 0
		for _, row := range rows {
			widest = max(widest, render.Columns(row[i]))
		}
		width -= widest + 2
	}
	for i, row := range rows[1:] {
		row[last] = text(i, max(width, minPrompt))
	}
}
