// Package doctor has amux doctor.
package doctor

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/internal/schema"
	"github.com/amux-dev/amux/pluginapi"
)

// finding is one thing that doctor looked at.
type finding struct {
	Check   string `json:"check"`
	Status  string `json:"status"` // ok, note, fail
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// Options are what amux doctor needs.
type Options struct {
	Print   *app.Printer
	Config  *app.Config
	Opener  *app.Opener
	Plugins *app.Plugins

	JSON bool
}

// NewCmd makes amux doctor.
func NewCmd(a *app.App) *cobra.Command {
	o := &Options{Print: a.Print, Config: a.Config, Opener: a.Opener, Plugins: a.Plugins}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and suggest fixes",
		Long: `Check the settings, folders, programs, plugins, agents and runs of amux, and suggest how
to fix what is wrong. This starts no agent and no plugin. The exit code is 1 if something
must be fixed.`,
		Example: "  amux doctor\n  amux doctor --json | jq '.[] | select(.status == \"fail\")'",
		Args:    app.ExactArgs(),
		RunE:    app.Command(func(*cobra.Command, []string) error { return doctor(o) }),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func doctor(o *Options) error {
	findings, err := examine(o)
	if err != nil {
		return err
	}
	if o.JSON {
		err = o.Print.JSON(findings)
	} else {
		printFindings(o.Print, findings)
	}
	if err != nil {
		return err
	}
	for _, f := range findings {
		if f.Status == "fail" {
			return app.ExitError(1)
		}
	}
	return nil
}

func printFindings(p *app.Printer, findings []finding) {
	marks := map[string]string{"ok": "✓", "note": "-", "fail": "✗"}
	for _, f := range findings {
		p.Outf("%s %s: %s\n", marks[f.Status], f.Check, f.Message)
		if f.Fix != "" {
			p.Outf("    %s\n", f.Fix)
		}
	}
}

// examine makes all findings.
func examine(o *Options) ([]finding, error) {
	var findings []finding
	set, err := o.Config.User()
	if err == nil {
		_, err = o.Config.Settings()
	} else {
		set = app.Cautious // the rest can be checked all the same
	}
	if e := pluginapi.AsError(err); e != nil {
		findings = append(findings, finding{"settings", "fail", e.Error(), e.Hint})
	}
	opts, err := o.Opener.OptionsFor(set)
	if err != nil {
		return nil, err
	}
	h, err := o.Opener.HostFor(opts)
	if err != nil {
		return nil, err
	}
	findings = append(findings,
		checkFolder("configuration folder", opts.ConfigDir, "choose another one with --config-dir or AGENT_MUX_CONFIG_DIR"),
		checkFolder("runtime folder", opts.RuntimeDir, "set XDG_RUNTIME_DIR to a folder of your own"),
		checkOwn("amux-shim", opts.ShimPath),
		checkOwn(pluginapi.Bridge, filepath.Join(filepath.Dir(opts.ShimPath), app.ProgramName(pluginapi.Bridge))),
		checkOwn(schema.Name, filepath.Join(filepath.Dir(opts.ShimPath), app.ProgramName(schema.Name))),
	)
	findings = append(findings, checkPlugins(o, opts.BundledDir)...)
	agents, err := h.Agents(context.Background())
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		if a.Err == nil {
			findings = append(findings, checkAgent(a))
		}
	}
	runs, err := h.Runs(context.Background())
	if err != nil {
		return nil, err
	}
	findings = append(findings, checkFormats(runs, agents)...)
	return append(findings, checkRuns(opts.ConfigDir)...), nil
}
