package sessions

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// NewCmdFork makes amux sessions fork.
func NewCmdFork(a *app.App) *cobra.Command {
	return newCmdContinue(a, true, &cobra.Command{
		Use:   "fork SESSION [PROMPT | -]",
		Short: "Resume a copy of a session",
		Long: `Resume a copy of a session, which itself stays as it is: amux run AGENT --resume SESSION
--fork in the session's folder. It takes the options of amux run.`,
		Example: "  amux sessions fork 9b53 \"try it with a map instead\"\n  amux sessions fork 9b53 -i",
	})
}
