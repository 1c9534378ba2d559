package control

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
)

// ApproveOptions are what amux approve needs.
type ApproveOptions struct {
	Runs  Runs
	Print *app.Printer

	Requests  []request
	Selection app.Selection
	Input     string
}

// NewCmdApprove makes amux approve.
func NewCmdApprove(a *app.App) *cobra.Command {
	o := &ApproveOptions{Runs: a.Runs, Print: a.Print}
	cmd := &cobra.Command{
		Use:   "approve [RUN [ID] | RUN…]",
		Short: "Approve a pending request",
		Long: `Approve what a run's agent asks permission for. The first answer wins, wherever it comes
from.` + requestHelp + finishedNeeded,
		Example: `  amux approve 86CCFA
  amux approve nightly req-2
  amux approve --tag nightly
  amux approve 86CCFA --input '{"command": "make test"}'`,
		ValidArgsFunction: a.Runs.CompleteLive,
		RunE: app.Command(func(cmd *cobra.Command, args []string) (err error) {
			if o.Requests, err = requests(o.Runs, cmd, args, &o.Selection, isApproval); err != nil {
				return err
			}
			return app.Each(a.Print, o.Requests, o.approve)
		}),
	}
	cmd.Flags().StringVar(&o.Input, "input", "", "replace the tool's input with this `JSON`, where the agent allows that")
	o.Selection.AddFlags(cmd.Flags())
	return cmd
}

func (o *ApproveOptions) approve(q request) error {
	run, err := o.Runs.Open(q.run)
	if err != nil {
		return err
	}
	var input json.RawMessage
	if o.Input != "" {
		input = json.RawMessage(o.Input)
	}
	if err := run.Approve(context.Background(), q.id, input); err != nil {
		return err
	}
	q.note(o.Print, "approved")
	return nil
}

func isApproval(q host.Question) bool { return q.Approval }
