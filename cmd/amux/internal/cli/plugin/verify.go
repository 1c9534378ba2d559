package plugin

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/pluginapi"
)

// VerifyOptions are what amux plugin verify needs.
type VerifyOptions struct {
	Print   *app.Printer
	Plugins *app.Plugins

	Plugin string // empty: all
	JSON   bool
}

// NewCmdVerify makes amux plugin verify.
func NewCmdVerify(a *app.App) *cobra.Command {
	o := &VerifyOptions{Print: a.Print, Plugins: a.Plugins}
	var all bool
	cmd := &cobra.Command{
		Use:   "verify [PLUGIN | --all]",
		Short: "Verify a plugin's files and signature",
		Long: `Hash a plugin's files again and compare them with what was installed: the receipt, the
lock, the signature and the keys that you trust now. This starts nothing. The exit code
is 1 if a file was changed, is missing, or was added.`,
		Example: "  amux plugin verify acme\n  amux plugin verify --all --json",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && !all:
				return app.Usagef("amux plugin verify needs a plugin, or --all").WithHint("usage: %s", cmd.UseLine())
			case len(args) > 0 && all:
				return app.Usagef("--all cannot be combined with the plugin %q", args[0])
			case all:
				return nil
			}
			return app.ExactArgs("a plugin")(cmd, args)
		},
		ValidArgsFunction: a.Plugins.Complete,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Plugin = app.Arg(args, 0)
			return verify(o)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "verify every plugin")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

// verifyJSON is the result for one plugin.
type verifyJSON struct {
	Plugin   string            `json:"plugin"`
	Version  string            `json:"version,omitempty"`
	OK       bool              `json:"ok"`
	Trust    string            `json:"trust,omitempty"`
	Problems []install.Problem `json:"problems"`
}

func verify(o *VerifyOptions) error {
	in, err := o.Plugins.Installer("")
	if err != nil {
		return err
	}
	r, err := o.Plugins.Registry(true)
	if err != nil {
		return err
	}
	lock, err := install.ReadLock(in.LockFile())
	if err != nil {
		return err
	}
	plugins := r.List()
	list := []verifyJSON{}
	for _, p := range plugins {
		if o.Plugin == "" || p.Name == o.Plugin {
			list = append(list, verifyPlugin(in, r, lock, p))
		}
	}
	if len(list) == 0 && o.Plugin != "" {
		return app.NotInstalled(o.Plugin, plugins)
	}
	if o.JSON {
		err = o.Print.JSON(list)
	} else {
		printVerified(o.Print, list)
	}
	if err != nil {
		return err
	}
	for _, v := range list {
		if !v.OK {
			return app.ExitError(1)
		}
	}
	return nil
}

// verifyPlugin checks what a run would start, and what the user's lock names.
func verifyPlugin(in *install.Installer, r *registry.Registry, lock *install.Lock, p registry.Plugin) verifyJSON {
	v := verifyJSON{Plugin: p.Name, Version: p.Version, Trust: p.Trust, Problems: []install.Problem{}}
	if entry := lock.Get(p.Name); entry != nil && p.Origin == registry.OriginUser {
		_, problems := in.Verify(*entry)
		v.Problems = append(v.Problems, problems...)
	}
	if len(v.Problems) == 0 {
		err := p.Err
		if err == nil {
			_, err = r.Verify(p)
		}
		if e := pluginapi.AsError(err); e != nil {
			v.Problems = append(v.Problems, install.Problem{What: e.Error()})
		}
	}
	v.OK = len(v.Problems) == 0
	return v
}

func printVerified(p *app.Printer, list []verifyJSON) {
	for _, v := range list {
		name := strings.TrimSpace(v.Plugin + " " + v.Version)
		if v.OK {
			p.Outf("✓ %s: %s\n", name, v.Trust)
		}
		for _, problem := range v.Problems {
			p.Outf("✗ %s: %s\n", name, problem.String())
		}
	}
}
