// Package doctor has amux doctor.
package doctor

import (
	"context"
	"path/filepath"
	"runtime"

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

	mend func() error // does what Fix says; nil where a person has to
}

// Options are what amux doctor needs.
type Options struct {
	Print   *app.Printer
	Config  *app.Config
	Opener  *app.Opener
	Plugins *app.Plugins

	Confirm func(question string) bool
	Recover func(h app.Records, run string)
	InTTY   bool

	JSON bool
	Fix  bool
	Yes  bool
}

// NewCmd makes amux doctor.
func NewCmd(a *app.App) *cobra.Command {
	o := &Options{Print: a.Print, Config: a.Config, Opener: a.Opener, Plugins: a.Plugins, Confirm: a.Confirm, Recover: a.Runs.Recover, InTTY: a.IO.InTTY}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and suggest fixes",
		Long: `Check the settings, folders, programs, plugins, agents and runs of amux, and suggest how
to fix what is wrong. This starts no agent and no plugin. The exit code is 1 if something
must be fixed. --fix asks about each fix that amux can make itself, makes it, and checks
again; --fix --yes makes them all.`,
		Example: "  amux doctor\n  amux doctor --fix\n  amux doctor --json | jq '.[] | select(.status == \"fail\")'",
		Args:    app.ExactArgs(),
		RunE:    app.Command(func(*cobra.Command, []string) error { return doctor(o) }),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&o.Fix, "fix", false, "offer to fix what amux can fix itself")
	cmd.Flags().BoolVar(&o.Yes, "yes", false, "with --fix: do not ask")
	return cmd
}

func doctor(o *Options) error {
	switch {
	case o.Yes && !o.Fix:
		return app.Usagef("--yes needs --fix")
	case o.Fix && !o.Yes && (!o.InTTY || o.JSON):
		return app.Usagef("--fix asks, and there is nobody to answer").WithHint("add --yes to make every fix that amux can make")
	}
	findings, err := examine(o)
	if err != nil {
		return err
	}
	if o.Fix {
		mended, err := mend(o, findings)
		if err != nil {
			return err
		}
		if mended {
			if findings, err = examine(o); err != nil {
				return err
			}
		}
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

// mend makes the fixes that are wanted, and reports whether it made any.
func mend(o *Options, findings []finding) (mended bool, err error) {
	for _, f := range findings {
		if f.Status != "fail" || f.mend == nil || !o.Yes && !o.Confirm(f.Check+": "+f.Message+". Fix it ("+f.Fix+")?") {
			continue
		}
		if err := f.mend(); err != nil {
			return mended, pluginapi.Errorf(pluginapi.CodeInternal, "%s: %w", f.Fix, err).WithHint("do it yourself, as the owner of that file")
		}
		o.Print.Notef("done: %s", f.Fix)
		mended = true
	}
	return mended, nil
}

func printFindings(p *app.Printer, findings []finding) {
	marks := map[string]string{"ok": "✓", "note": "-", "fail": "✗"}
	for _, f := range findings {
		p.Item(marks[f.Status]+" ", f.Check+": "+f.Message)
		if f.Fix != "" {
			p.Item("    ", f.Fix)
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
		findings = append(findings, finding{Check: "settings", Status: "fail", Message: e.Error(), Fix: e.Hint})
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
	if runtime.GOOS != "windows" {
		for _, name := range []string{"amux-relay", "amux-far"} {
			findings = append(findings, checkOwn(name, filepath.Join(filepath.Dir(opts.ShimPath), name)))
		}
		findings = append(findings, checkSandbox(opts, set.Sandbox.Always))
	}
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
	runs, err := app.AllRuns(context.Background(), h)
	if err != nil {
		return nil, err
	}
	findings = append(findings, checkFormats(runs, agents)...)
	return append(findings, checkRuns(opts.ConfigDir, func(run string) { o.Recover(h, run) })...), nil
}
