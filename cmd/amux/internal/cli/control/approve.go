package control

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// ApproveOptions are what amux approve needs.
type ApproveOptions struct {
	Runs Runs

	Run   string
	ID    string // empty: the only pending request
	Input string
}

// NewCmdApprove makes amux approve.
func NewCmdApprove(a *app.App) *cobra.Command {
	o := &ApproveOptions{Runs: a.Runs}
	cmd := &cobra.Command{
		Use:   "approve RUN [ID]",
		Short: "Approve a pending request",
		Long: `Approve what a run's agent asks permission for. Without ID this is the only pending
request. The first answer wins, wherever it comes from.` + finishedNeeded,
		Example: `  amux approve 86CCFA
  amux approve nightly req-2
  amux approve 86CCFA --input '{"command": "make test"}'`,
		Args:              app.RangeArgs(1, "a run", "an id"),
		ValidArgsFunction: a.Runs.CompleteActive,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Run, o.ID = args[0], app.Arg(args, 1)
			return approve(o)
		}),
	}
	cmd.Flags().StringVar(&o.Input, "input", "", "replace the tool's input with this `JSON`, where the agent allows that")
	return cmd
}

func approve(o *ApproveOptions) error {
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	var input json.RawMessage
	if o.Input != "" {
		input = json.RawMessage(o.Input)
	}
	return run.Approve(context.Background(), o.ID, input)
}
