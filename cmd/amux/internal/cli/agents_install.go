package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// installer installs agents' CLIs.
type installer interface {
	Installation(ctx context.Context, name, kind string) (host.Installation, error)
	Install(ctx context.Context, i host.Installation, in io.Reader, out io.Writer) (host.AgentInfo, error)
	Refresh(ctx context.Context, name string) (host.AgentInfo, error)
}

// installOptions are the flags of install and update.
type installOptions struct {
	method string
	dryRun bool
}

func newAgentsInstall(s *session) *cobra.Command {
	o := &installOptions{}
	cmd := &cobra.Command{
		Use:   "install AGENT",
		Short: "Install an agent's CLI, in the version that its adapter is tested with",
		Long: `Install an agent's CLI, in the version that its adapter is tested with. What the way
of installing needs is looked for first; then the command is shown and run, and then
the CLI is asked for its version. --dry-run shows the command and runs nothing.`,
		Args:              exactly("an agent"),
		ValidArgsFunction: s.completeAgent,
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return s.install(cmd.Context(), o, args[0], false)
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func newAgentsUpdate(s *session) *cobra.Command {
	o := &installOptions{}
	cmd := &cobra.Command{
		Use:   "update AGENT",
		Short: "Bring an agent's CLI to the version that its adapter is tested with",
		Long: `Bring an agent's CLI to the version that its adapter is tested with: an older one is
made newer, a newer one is left alone. --dry-run shows the command and runs nothing;
--method is for a CLI that was not installed by the first way.`,
		Args:              exactly("an agent"),
		ValidArgsFunction: s.completeAgent,
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return s.install(cmd.Context(), o, args[0], true)
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *installOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.method, "method", "", "the `WAY` to install, as amux agents info names it (default: the first that works)")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the command and run nothing")
}

func (s *session) install(ctx context.Context, o *installOptions, agent string, update bool) error {
	h, err := s.theHost()
	if err != nil {
		return err
	}
	info, err := h.Refresh(ctx, agent)
	if err != nil {
		return err
	}
	there := info.Installed && info.Program != ""
	if update && !there {
		return usage("agent %s is not installed", agent).WithHint("amux agents install %s", agent)
	}
	plan, err := h.Installation(ctx, agent, o.method)
	if err != nil {
		return err
	}
	if there && !plan.Newer {
		s.errf("%s is there: version %s, %s", agent, info.Version, info.Program)
		return nil
	}
	if there && !update {
		s.errf("%s is there: version %s, %s", agent, info.Version, info.Program)
		s.errf("hint: amux agents update %s brings it to %s", agent, plan.Version)
		return nil
	}
	line := strings.Join(plan.Argv, " ")
	if o.dryRun {
		s.outf("%s\n", line)
		return nil
	}
	s.errf("runs: %s", line)
	if plan.Note != "" {
		s.errf("%s", plan.Note)
	}
	if info, err = h.Install(ctx, plan, s.app.IO.In, s.app.IO.Err); err != nil {
		return err
	}
	s.errf("%s is installed: version %s, %s", agent, dash(info.Version), render.String(info.Program))
	if plan.Version != "" && info.Version != "" && info.Version != plan.Version {
		s.warnf("version %s was to be installed; an older one may come first in PATH", plan.Version)
	}
	return nil
}
