package app

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// NewRoot makes the root command without subcommands: the flags that all commands have,
// and the errors of a wrong command line.
func NewRoot(a *App) *cobra.Command {
	root := &cobra.Command{
		Use:   "amux",
		Short: "Run any coding agent under one contract",
		Long: `amux runs coding-agent CLIs (Claude Code and others) under one contract: one command
line, one stream of events, one set of promises about processes.`,
		Example: `  amux run demo "hello"
  amux run claude "why does the build fail?"
  amux ps`,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return UnknownCommand(cmd, args[0])
			}
			return cmd.Help() // where nothing better is offered
		},
	}
	a.Flags.Add(root.PersistentFlags())
	root.SetFlagErrorFunc(FlagError)
	root.SetUsageFunc(plainUsage(root.UsageFunc()))
	root.CompletionOptions.HiddenDefaultCmd = false
	return root
}

// boolValue is what pflag adds to the name of each flag that is on or off.
const boolValue = "[=true|false]"

// plainUsage prints the usage without it: nobody types it, and it hides the names.
func plainUsage(print func(*cobra.Command) error) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		out := cmd.OutOrStderr()
		var usage bytes.Buffer
		cmd.SetOut(&usage)
		defer cmd.SetOut(out)
		if err := print(cmd); err != nil {
			return err
		}
		_, err := io.WriteString(out, strings.ReplaceAll(usage.String(), boolValue, strings.Repeat(" ", len(boolValue))))
		return err
	}
}
