package sessions

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/run"
	"github.com/amux-dev/amux/pluginapi"
)

// ContinueOptions are what amux sessions resume and fork need: a run of the session's
// agent.
type ContinueOptions struct {
	Host   func() (app.Host, error)
	Finder *Finder
	Run    *run.Options

	Name    string // of the command
	Session string
	Agent   string
	Fork    bool
	Prompt  []string
}

// newCmdContinue completes a command that runs an agent with a session.
func newCmdContinue(a *app.App, fork bool, cmd *cobra.Command) *cobra.Command {
	o := &ContinueOptions{Host: a.Opener.Host, Finder: newFinder(a), Run: run.NewOptions(a), Name: cmd.Name(), Fork: fork}
	cmd.Args = app.RangeArgs(1, "a session", "a prompt")
	cmd.RunE = app.Command(func(_ *cobra.Command, args []string) error {
		o.Session, o.Prompt = args[0], args[1:]
		return continueSession(o)
	})
	o.Run.AddFlags(cmd)
	addAgentFlag(cmd, a, &o.Agent)
	return cmd
}

func continueSession(o *ContinueOptions) error {
	if o.Run.Resume != "" || o.Run.Continue || o.Run.Fork || o.Run.NoSession {
		return app.Usagef("amux sessions %s names the session itself", o.Name).
			WithHint("leave out --resume, --continue, --fork and --no-session")
	}
	h, err := o.Host()
	if err != nil {
		return err
	}
	x, err := o.Finder.One(h, o.Agent, o.Session)
	if err != nil {
		return err
	}
	if o.Fork {
		a, err := h.Agent(context.Background(), x.Agent)
		if err != nil {
			return err
		}
		if !a.Description.GetCapabilities().GetFork() {
			return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot fork a session", x.Agent).
				WithHint("resume the session itself: amux sessions resume")
		}
	}
	o.Run.Resume, o.Run.Fork = x.ID, o.Fork
	if o.Run.Cwd == "" {
		o.Run.Cwd = x.Cwd
	}
	return o.Run.Run(append([]string{x.Agent}, o.Prompt...))
}
