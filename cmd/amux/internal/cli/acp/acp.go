// Package acp has amux acp: the command line of the ACP agent, which amux-api has.
package acp

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// Tag marks the runs that were started through ACP.
const Tag = "acp"

// Options are what amux acp needs.
type Options struct {
	Agent   string // empty: that of config.toml
	Model   string
	Driver  string // empty: the agent's first that can do it
	Approve string // empty: ask
}

// Face serves ACP on the streams of the process, until stdin ends.
type Face func(a *app.App, o *Options) error

// NewCmd makes amux acp. Without a face it hands the command line over to amux-api.
func NewCmd(a *app.App, face Face) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Let an editor drive any agent, by the Agent Client Protocol",
		Long: `Serve the Agent Client Protocol (version 1) on stdin and stdout, so that an editor which
knows it, such as Zed, drives any agent of amux.

Each session is a detached run: it goes on when the editor ends, and can be watched,
answered and stopped from elsewhere (amux ps, amux attach). The session's id is that of
the run. An editor that loads it sees all that happened, and is asked what is still open;
of several answers the first one counts.`,
		Example: `  amux acp --agent claude
  amux acp --agent codex --model gpt-5.5`,
		Args: app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error {
			if a.Inside() != "" {
				return app.InsideRun()
			}
			if face == nil {
				return a.HandOver()
			}
			return face(a, o)
		}),
	}
	cmd.Flags().StringVar(&o.Agent, "agent", "", "the `AGENT` of new sessions (default: that of config.toml)")
	cmd.Flags().StringVar(&o.Model, "model", "", "their `MODEL`")
	cmd.Flags().StringVar(&o.Driver, "driver", "", "their `DRIVER`, where the agent has several")
	cmd.Flags().Var(app.OneOf(&o.Approve, "ask", "auto", "deny", "rules"), "approve", "who answers when the agent asks permission: ask (default), auto, deny or rules")
	return cmd
}
