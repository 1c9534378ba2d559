package records

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/compare"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// CompareOptions are what amux compare needs.
type CompareOptions struct {
	Print         *app.Printer
	Host          func() (app.Host, error)
	Runs          Runs
	Interruptible func(do func(ctx context.Context) error) error

	Refs      []string
	Check     string
	CheckTime app.DurationFlag
	Selection app.Selection
	JSON      bool
}

// checkTime is how long a check may take.
const checkTime = 10 * time.Minute

// NewCmdCompare makes amux compare.
func NewCmdCompare(a *app.App) *cobra.Command {
	o := &CompareOptions{
		Print: a.Print, Host: a.Opener.ForRuns, Runs: a.Runs, Interruptible: a.Interruptible, CheckTime: app.DurationFlag{D: checkTime},
	}
	cmd := &cobra.Command{
		Use:   "compare RUN…",
		Short: "Compare the results of runs",
		Long: `Show runs side by side: how each ended, how long it took, what it cost and how much it
changed. They may be of different agents, as amux run --each starts them.

With --check amux runs a command of yours in the worktree of each run, one after the
other, by sh -c, and shows its exit code. Whatever the command starts ends with it. Runs
that go on, and runs without a worktree of their own, are not checked.`,
		Example: `  amux compare 86CCFA DGXP98
  amux compare 86CCFA DGXP98 --check 'go test ./...'
  amux compare --tag parser --json | jq -r '.[] | select(.check.exit_code == 0).worktree'`,
		ValidArgsFunction: a.Runs.Complete,
		RunE: app.Command(func(cmd *cobra.Command, args []string) (err error) {
			if o.Refs, err = o.Runs.Choose(cmd, args, &o.Selection, func(host.RunInfo) bool { return true }); err != nil {
				return err
			}
			return o.Interruptible(func(ctx context.Context) error { return compareRuns(ctx, o) })
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Check, "check", "", "run this `COMMAND` in each worktree and show its exit code")
	f.Var(&o.CheckTime, "check-time", "end a check after this time (default 10m)")
	o.Selection.AddFlags(f)
	f.BoolVar(&o.JSON, "json", false, "print JSON, with the end of what each check printed")
	return cmd
}

func compareRuns(ctx context.Context, o *CompareOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	runs := make([]app.Recorded, len(o.Refs))
	for i, ref := range o.Refs {
		if runs[i], err = o.Runs.Open(ref); err != nil {
			return err
		}
	}
	rows := make([]compare.Row, len(runs))
	for i, run := range runs {
		rows[i] = compare.Of(run)
		if o.Check == "" {
			continue
		}
		check, err := h.Worktrees().Check(ctx, run.Info(), o.Check, o.CheckTime.D)
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		if rows[i].Check = check; check == nil {
			o.Print.Notef("run %s is not checked: it goes on, or has no worktree", render.ShortID(run.ID()))
		} else if check.ExitCode != 0 && !o.JSON {
			lines := strings.Split("\n"+strings.TrimSpace(check.Output), "\n")
			o.Print.Notef("check of %s: %s %s", render.ShortID(run.ID()), compare.Verdict(check), lines[len(lines)-1])
		}
	}
	if o.JSON {
		return o.Print.JSON(rows)
	}
	o.Print.Table(compare.Table(rows))
	return nil
}
