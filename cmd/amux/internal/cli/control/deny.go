package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// DenyOptions are what amux deny needs.
type DenyOptions struct {
	Runs Runs

	Run    string
	ID     string // empty: the only pending request
	Reason string
}

// NewCmdDeny makes amux deny.
func NewCmdDeny(a *app.App) *cobra.Command {
	o := &DenyOptions{Runs: a.Runs}
	cmd := &cobra.Command{
		Use:   "deny RUN [ID]",
		Short: "Deny a pending request",
		Long: `Deny what a run's agent asks permission for, or leave its question unanswered. Without
ID this is the only pending request.` + finishedNeeded,
		Example: `  amux deny 86CCFA
  amux deny nightly req-2 --reason "use the staging server"`,
		Args:              app.RangeArgs(1, "a run", "an id"),
		ValidArgsFunction: a.Runs.CompleteActive,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Run, o.ID = args[0], app.Arg(args, 1)
			return deny(o)
		}),
	}
	cmd.Flags().StringVar(&o.Reason, "reason", "", "`TEXT` that tells the agent why")
	return cmd
}

func deny(o *DenyOptions) error {
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	return run.Deny(context.Background(), o.ID, o.Reason)
}
