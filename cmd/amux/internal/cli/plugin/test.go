package plugin

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/conformance"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/pluginapi"
)

// TestOptions are what amux plugin test needs.
type TestOptions struct {
	Process       *app.Process
	Print         *app.Printer
	Plugins       *app.Plugins
	Interruptible func(func(ctx context.Context) error) error
	Workspace     *workspace

	Target string // a folder or a plugin
	JSON   bool
}

// NewCmdTest makes amux plugin test.
func NewCmdTest(a *app.App) *cobra.Command {
	o := &TestOptions{Process: a.Process, Print: a.Print, Plugins: a.Plugins, Interruptible: a.Interruptible}
	cmd := &cobra.Command{
		Use:   "test [DIR | PLUGIN]",
		Short: "Test a plugin against the contract",
		Long: `Test a plugin, in whatever language it is written, against the contract: a folder with a
manifest and an executable, or an installed plugin. amux starts it as a run would and
talks to it over the wire; it builds a folder with a Go program first. The exit code is
1 if a check fails.`,
		Example: "  amux plugin test\n  amux plugin test ./amux-plugin-acme --json\n  amux plugin test acme",
		Args:    app.RangeArgs(0, "a folder or plugin"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Target = "."
			if len(args) == 1 {
				o.Target = args[0]
			}
			o.Workspace = newWorkspace(a, o.Target)
			defer o.Workspace.close()
			return test(o)
		}),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func test(o *TestOptions) error {
	var results []conformance.Result
	err := o.Interruptible(func(ctx context.Context) error {
		target, err := testTarget(ctx, o)
		if err != nil {
			return err
		}
		defer os.RemoveAll(target.SocketDir)
		conformance.Run(ctx, target, func(r conformance.Result) {
			results = append(results, r)
			if !o.JSON {
				printCheck(o.Print, r)
			}
		})
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if o.JSON {
		if err := o.Print.JSON(results); err != nil {
			return err
		}
	}
	failed := 0
	for _, r := range results {
		if !r.OK && r.Skipped == "" {
			failed++
		}
	}
	if failed > 0 {
		o.Print.Notef("%d of %d checks failed", failed, len(results))
		return app.ExitError(1)
	}
	o.Print.Notef("all %d checks passed", len(results))
	return nil
}

func printCheck(p *app.Printer, r conformance.Result) {
	mark, more, problem := "✓", "", ""
	switch {
	case r.Skipped != "":
		mark, more = "-", ": skipped, "+r.Skipped
	case !r.OK:
		mark, problem = "✗", r.Problem
	}
	p.Outf("%s %s %s%s\n", mark, r.ID, r.Title, more)
	if problem != "" {
		p.Outf("     %s\n", problem)
	}
}

// testTarget finds what to test: a folder, built if it holds a Go program, or an
// installed plugin. The caller removes its SocketDir.
func testTarget(ctx context.Context, o *TestOptions) (target conformance.Target, err error) {
	w := o.Workspace
	if info, err := os.Stat(w.dir); err == nil && info.IsDir() {
		target.Dir = w.dir
	} else {
		r, err := o.Plugins.Registry(false)
		if err != nil {
			return target, err
		}
		plugins := r.List()
		i := slices.IndexFunc(plugins, func(p registry.Plugin) bool { return p.Name == o.Target })
		if i < 0 {
			return target, app.NotInstalled(o.Target, plugins)
		}
		if plugins[i].Err != nil {
			return target, plugins[i].Err
		}
		target.Dir, target.Executable = plugins[i].Dir, plugins[i].Executable
	}
	if target.Executable == "" {
		m, _, err := w.manifest()
		if err != nil {
			return target, err
		}
		target.Executable = filepath.Join(target.Dir, install.ExecutableName(m.Name, install.Platform()))
		if w.isGo() {
			if target.Executable, err = w.build(ctx, m, install.Platform()); err != nil {
				return target, err
			}
		}
	}
	if target.Supervision, err = host.Supervision(true); err != nil {
		return target, err
	}
	for _, variable := range o.Process.Env {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains([]string{"PATH", "HOME", "TMPDIR", "LANG", "SYSTEMROOT", "TEMP", "TMP"}, strings.ToUpper(name)) {
			target.Env = append(target.Env, variable)
		}
	}
	// A socket's path has at most 108 bytes, so not the folder for temporary files.
	dir := o.Process.RuntimeDir()
	if err = os.MkdirAll(dir, 0o700); err == nil {
		target.SocketDir, err = os.MkdirTemp(dir, "test-*")
	}
	if err != nil {
		return target, pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
	}
	return target, nil
}
