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

// psLimit is how many runs are listed without --all.
const psLimit = 100

// PsOptions are what amux ps needs.
type PsOptions struct {
	Print   *app.Printer
	Runs    Runs
	Config  *app.Config
	Project *app.Project
	Now     func() time.Time

	All  bool
	JSON bool
	Here bool
}

// NewCmdPs makes amux ps.
func NewCmdPs(a *app.App) *cobra.Command {
	o := &PsOptions{Print: a.Print, Runs: a.Runs, Config: a.Config, Project: a.Project, Now: time.Now}
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List runs, those that have not ended first",
		Long: `List the runs of all terminals: first those that have not ended, then the newest, at
most 100. The id in the first column is enough to name a run.`,
		Example: `  amux ps
  amux ps --project
  amux ps --all --json | jq -r '.[] | select(.state == "failed").run_id'`,
		Args: app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error { return ps(o) }),
	}
	cmd.Flags().BoolVar(&o.All, "all", false, "list all runs, not only 100")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&o.Here, "project", false, "list only the runs of this project")
	return cmd
}

func ps(o *PsOptions) error {
	runs, err := o.Runs.List()
	if err != nil {
		return err
	}
	if o.Here {
		dir, err := o.Config.Dir()
		if err != nil {
			return err
		}
		here := o.Project.Dir(dir)
		o.Project.WarnIgnored(dir)
		if here == "" {
			return app.Usagef("no project here").WithHint("a project has a folder .agent-mux or .git; or name it with --project-dir")
		}
		runs = slices.DeleteFunc(runs, func(r host.RunInfo) bool { return r.Project != filepath.ToSlash(here) })
	}
	if !o.All && len(runs) > psLimit {
		runs = runs[:psLimit]
	}
	for _, r := range runs {
		for _, d := range r.Damage {
			o.Print.Warnf("run %s: %s; see: amux inspect %[1]s", render.ShortID(r.ID), d)
		}
	}
	switch {
	case o.JSON:
		return o.Print.JSON(runs)
	case len(runs) == 0:
		o.Print.Notef("no runs")
		return nil
	}
	rows := [][]string{{"RUN", "NAME", "AGENT", "STATE", "AGE", "PROMPT"}}
	for _, r := range runs {
		rows = append(rows, []string{render.ShortID(r.ID), render.Dash(r.Name), r.Agent, strings.ReplaceAll(r.State, "_", " "),
			render.Age(o.Now().Sub(r.Created)), render.Excerpt(r.Prompt, 50)})
	}
	o.Print.Table(rows)
	return nil
}
