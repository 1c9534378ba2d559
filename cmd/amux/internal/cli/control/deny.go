package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
)

// DenyOptions are what amux deny needs.
type DenyOptions struct {
	Runs  Runs
	Print *app.Printer

	Requests  []request
	Selection app.Selection
	Reason    string
}

// NewCmdDeny makes amux deny.
func NewCmdDeny(a *app.App) *cobra.Command {
	o := &DenyOptions{Runs: a.Runs, Print: a.Print}
	cmd := &cobra.Command{
		Use:   "deny [RUN [ID] | RUN…]",
		Short: "Deny a pending request",
		Long:  `Deny what a run's agent asks permission for, or leave its question unanswered.` + requestHelp + finishedNeeded,
		Example: `  amux deny 86CCFA
  amux deny nightly req-2 --reason "use the staging server"`,
		ValidArgsFunction: a.Runs.CompleteLive,
		RunE: app.Command(func(cmd *cobra.Command, args []string) (err error) {
			if o.Requests, err = requests(o.Runs, cmd, args, &o.Selection, func(host.Question) bool { return true }); err != nil {
				return err
			}
			return app.Each(a.Print, o.Requests, o.deny)
		}),
	}
	cmd.Flags().StringVar(&o.Reason, "reason", "", "`TEXT` that tells the agent why")
	o.Selection.AddFlags(cmd.Flags())
	return cmd
}

func (o *DenyOptions) deny(q request) error {
	run, err := o.Runs.Open(q.run)
	if err != nil {
		return err
	}
	if err := run.Deny(context.Background(), q.id, o.Reason); err != nil {
		return err
	}
	q.note(o.Print, "denied")
	return nil
}
