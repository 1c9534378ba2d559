package agents

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
)

// InstallOptions are what amux agents install and update need.
type InstallOptions struct {
	IO    *iostreams.IO
	Print *app.Printer
	Host  func() (app.Host, error)

	Agent  string
	Method string
	DryRun bool
	Update bool // an installed CLI
}

// NewCmdInstall makes amux agents install.
func NewCmdInstall(a *app.App) *cobra.Command {
	o := &InstallOptions{IO: a.IO, Print: a.Print, Host: a.Opener.Host}
	cmd := &cobra.Command{
		Use:   "install AGENT",
		Short: "Install an agent's CLI",
		Long: `Install an agent's CLI in the version that its adapter is tested with. amux checks what
the installation requires, prints its command, runs it, and asks the CLI for its
version. --dry-run prints the command and runs nothing.`,
		Example:           "  amux agents install claude\n  amux agents install gemini --method npm --dry-run",
		Args:              app.ExactArgs("an agent"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(cmd *cobra.Command, args []string) error {
			o.Agent = args[0]
			return install(cmd.Context(), o)
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *InstallOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.Method, "method", "", "`WAY` to install, as amux agents info names it (default: the first one that works)")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "print the command and run nothing")
}

func install(ctx context.Context, o *InstallOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	info, err := h.Refresh(ctx, o.Agent)
	if err != nil {
		return err
	}
	present := info.Installed && info.Program != ""
	if o.Update && !present {
		return app.Usagef("agent %s is not installed", o.Agent).WithHint("amux agents install %s", o.Agent)
	}
	plan, err := h.Installation(ctx, o.Agent, o.Method)
	if err != nil {
		return err
	}
	if present && (!plan.Newer || !o.Update) {
		o.Print.Notef("%s is installed: version %s, %s", o.Agent, info.Version, info.Program)
		if plan.Newer {
			o.Print.Notef("hint: amux agents update %s installs version %s", o.Agent, plan.Version)
		}
		return nil
	}
	line := strings.Join(plan.Argv, " ")
	if o.DryRun {
		o.Print.Outf("%s\n", line)
		return nil
	}
	o.Print.Notef("running: %s", line)
	if plan.Note != "" {
		o.Print.Notef("%s", plan.Note)
	}
	if info, err = h.Install(ctx, plan, o.IO.In, o.IO.Err); err != nil {
		return err
	}
	o.Print.Notef("installed %s: version %s, %s", o.Agent, render.Dash(info.Version), render.String(info.Program))
	if plan.Version != "" && info.Version != "" && info.Version != plan.Version {
		o.Print.Warnf("expected version %s; another installation may come first in PATH", plan.Version)
	}
	return nil
}
