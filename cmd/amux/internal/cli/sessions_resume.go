package cli

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/pluginapi"
)

func newSessionsResume(s *session) *cobra.Command {
	return s.goOn("resume", "Go on with a session",
		`Go on with a session: amux run AGENT --resume SESSION in the session's folder. It takes
the options of amux run.`, false)
}

func newSessionsFork(s *session) *cobra.Command {
	return s.goOn("fork", "Go on with a copy of a session",
		`Go on with a copy of a session, which itself stays as it is: amux run AGENT --resume
SESSION --fork in the session's folder. It takes the options of amux run.`, true)
}

// goOn is a run that goes on with a session.
func (s *session) goOn(use, short, long string, fork bool) *cobra.Command {
	var agent string
	o := &runOptions{}
	cmd := &cobra.Command{
		Use: use + " SESSION [PROMPT | -]", Short: short, Long: long,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactly("a session")(cmd, args)
		},
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if o.resume != "" || o.cont || o.fork || o.noSession {
				return usage("the session is named by amux sessions %s itself", use).
					WithHint("leave out --resume, --continue, --fork and --no-session")
			}
			h, err := s.theHost()
			if err != nil {
				return err
			}
			x, err := s.findSession(h, agent, args[0])
			if err != nil {
				return err
			}
			if fork {
				a, err := h.Agent(cmd.Context(), x.Agent)
				if err != nil {
					return err
				}
				if !a.Description.GetCapabilities().GetFork() {
					return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot fork a session", x.Agent).
						WithHint("amux sessions resume goes on with the session itself")
				}
			}
			o.resume, o.fork = x.ID, fork
			if o.cwd == "" {
				o.cwd = x.Cwd
			}
			return s.run(o, append([]string{x.Agent}, args[1:]...))
		}),
	}
	o.addFlags(cmd)
	sessionFlag(cmd, s, &agent)
	return cmd
}
