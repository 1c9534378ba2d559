// Package place has the commands about the places where runs can be: one command a file.
package place

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// Options are what the commands need.
type Options struct {
	Print *app.Printer
	Host  func() (app.Host, error)
	Runs  interface{ RecoverAll(h app.Host) }
	Abs   func(path string) string
}

// NewCmd makes amux place.
func NewCmd(a *app.App) *cobra.Command {
	o := &Options{Print: a.Print, Host: a.Opener.ForRuns, Runs: a.Runs, Abs: a.Process.Abs}
	subs := []*cobra.Command{newCmdList(o), newCmdCheck(o), newCmdClean(o), newCmdTest(o)}
	for _, sub := range subs {
		if sub.Name() == "check" || sub.Name() == "clean" {
			sub.ValidArgsFunction = o.complete
		}
	}
	return app.Group(&cobra.Command{
		Use:     "place",
		Aliases: []string{"places"},
		Short:   "Look after the places where runs can be",
		Long: `amux run --on PLACE runs an agent on another machine. The agent, its tools and its files
are there; what it says, asks and costs is here, as of any other run. A place is
[places.NAME] in config.toml, ssh:HOST for a machine that ssh reaches without a
question, docker:IMAGE for a container with the current folder, kubernetes:IMAGE for a
pod.

amux puts three programs there once, below ~/.cache/amux/far. Nothing listens there,
and nothing is left running when the run has ended.`,
		Example: "  amux place check ssh:build-box\n  amux run claude \"fix the tests\" --on ssh:build-box --cwd '~/app'\n  amux place clean ssh:build-box",
	}, subs...)
}

func (o *Options) complete(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	h, err := o.Host()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, p := range h.Places().List() {
		names = append(names, p.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
