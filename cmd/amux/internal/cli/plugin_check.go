package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/conformance"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/pluginapi"
)

func newPluginTest(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test [DIR | PLUGIN]",
		Short: "Check a plugin against the contract, in whatever language it is written",
		Long: `Check a plugin against the contract: a folder with a manifest and an executable, or
one that is installed. It is started as a run would start it and spoken to over the
wire; a folder with a Go program is built first. The exit code is 1 if a check fails.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly("a folder or plugin")(cmd, args)
			}
			return nil
		},
		RunE: command(func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			var results []conformance.Result
			err := s.interruptible(func(ctx context.Context) error {
				target, clean, err := s.testTarget(ctx, dir)
				if err != nil {
					return err
				}
				defer clean()
				conformance.Run(ctx, target, func(r conformance.Result) {
					results = append(results, r)
					if !asJSON {
						s.printCheck(r)
					}
				})
				return ctx.Err()
			})
			if err != nil {
				return err
			}
			if asJSON {
				if err := s.printJSON(results); err != nil {
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
				s.errf("%d of %d checks failed", failed, len(results))
				return exitError(1)
			}
			s.errf("all %d checks passed", len(results))
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (s *session) printCheck(r conformance.Result) {
	mark, more, problem := "✓", "", ""
	switch {
	case r.Skipped != "":
		mark, more = "-", ": skipped, "+r.Skipped
	case !r.OK:
		mark, problem = "✗", r.Problem
	}
	s.outf("%s %s %s%s\n", mark, r.ID, r.Title, more)
	if problem != "" {
		s.outf("     %s\n", problem)
	}
}

// testTarget finds what to test: a folder, built if it holds a Go program, or an
// installed plugin.
func (s *session) testTarget(ctx context.Context, what string) (conformance.Target, func(), error) {
	none := func() {}
	var target conformance.Target
	path := s.abs(what)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		target.Dir = path
	} else {
		r, err := s.registry(false)
		if err != nil {
			return target, none, err
		}
		plugins := r.List()
		i := slices.IndexFunc(plugins, func(p registry.Plugin) bool { return p.Name == what })
		if i < 0 {
			return target, none, s.notInstalled(what, plugins)
		}
		if plugins[i].Err != nil {
			return target, none, plugins[i].Err
		}
		target.Dir, target.Executable = plugins[i].Dir, plugins[i].Executable
	}
	w := &works{s: s, dir: target.Dir}
	if target.Executable == "" {
		m, _, err := w.manifest()
		if err != nil {
			return target, none, err
		}
		target.Executable = filepath.Join(target.Dir, install.ExecutableName(m.Name, install.Platform()))
		if w.isGo() {
			if target.Executable, err = w.build(ctx, m, install.Platform()); err != nil {
				w.close()
				return target, none, err
			}
		}
	}
	// A socket's path has 108 bytes, so not the folder for temporary files.
	err := os.MkdirAll(s.runtimeDir(), 0o700)
	socket := ""
	if err == nil {
		socket, err = os.MkdirTemp(s.runtimeDir(), "test-*")
	}
	if err != nil {
		w.close()
		return target, none, pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
	}
	target.SocketDir = socket
	if target.Supervision, err = host.Supervision(true); err != nil {
		return target, none, err
	}
	for _, variable := range s.app.Env {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains([]string{"PATH", "HOME", "TMPDIR", "LANG", "SYSTEMROOT", "TEMP", "TMP"}, strings.ToUpper(name)) {
			target.Env = append(target.Env, variable)
		}
	}
	return target, func() {
		w.close()
		_ = os.RemoveAll(socket)
	}, nil
}
