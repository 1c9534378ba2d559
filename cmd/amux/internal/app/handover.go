package app

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// HandedOver makes the command that stands in amux for one that only amux-api has, with
// all below it. use and what follows are those of that command.
func (a *App) HandedOver(use, short string, aliases ...string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Aliases: aliases, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		RunE: Command(func(*cobra.Command, []string) error { return a.HandOver() }),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			_ = a.HandOver() // a shell that completes has nobody to tell
			return nil, cobra.ShellCompDirectiveError
		},
	}
}

// HelpHandedOver has amux-api print the help of a command that only it has.
func (a *App) HelpHandedOver(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return
	}
	print := help.Run
	help.RunE = Command(func(cmd *cobra.Command, args []string) error {
		if of, _, err := root.Find(args); err == nil && of.DisableFlagParsing {
			return a.HandOver()
		}
		print(cmd, args)
		return nil
	})
}

// HandOver has amux-api do this command line: it links what would make every other
// command start later. On Unix it returns only if that fails.
func (a *App) HandOver() error {
	program := a.Beside(ProgramName("amux-api"))
	env := a.Env
	if a.Print.jsonErrors { // New has taken it out
		env = append(env[:len(env):len(env)], ErrorsVar+"=json")
	}
	err := a.Become(program, a.Args, env)
	if _, ok := errors.AsType[ExitError](err); ok || err == nil {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := host.CheckSystem(); err != nil {
			return err // where programs are is not known without /proc
		}
		return pluginapi.Errorf(pluginapi.CodeInternal, "%s is missing", program).
			WithHint("it belongs beside amux: install amux whole, with its package or by make install")
	}
	return pluginapi.Errorf(pluginapi.CodeSpawn, "start %s: %w", program, err)
}
