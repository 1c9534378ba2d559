package sessions

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// NewCmdResume makes amux sessions resume.
func NewCmdResume(a *app.App) *cobra.Command {
	return newCmdContinue(a, false, &cobra.Command{
		Use:   "resume SESSION [PROMPT | -]",
		Short: "Resume a session",
		Long: `Resume a session: amux run AGENT --resume SESSION in the session's folder. It takes the
options of amux run.`,
		Example: "  amux sessions resume 9b53 \"and the tests\"\n  amux sessions resume 9b53 -i",
	})
}
