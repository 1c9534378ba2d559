package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amux-dev/amux/host/registry"
)

func newRoot(s *session) *cobra.Command {
	root := &cobra.Command{
		Use:   "amux",
		Short: "Run any coding agent under one contract",
		Long: `amux runs coding-agent CLIs (Claude Code and others) under one contract: one
command line, one stream of events, one set of promises about processes.

Try it with nothing installed:  amux run demo "hello"`,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.StringVar(&s.configFlag, "config-dir", "", "folder of settings, plugins and runs (default ~/.agent-mux)")
	flags.StringVar(&s.projectFlag, "project-dir", "", "the project (default: nearest folder with .agent-mux or .git)")
	flags.StringArrayVar(&s.pluginFlags, "plugin", nil, "use this build of a plugin, as `NAME=PATH`")
	flags.StringVar(&s.verifyFlag, "verify", "", "`always` hashes a plugin anew before it starts, whatever was checked before")
	flags.BoolVar(&s.debug, "debug", false, "say on stderr what amux does")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newRun(s),
		newAgents(s),
		newPlugin(s),
		newSessions(s),
		newPs(s),
		newLogs(s),
		newAttach(s),
		newWait(s),
		newScreen(s),
		newSend(s),
		newApprove(s),
		newDeny(s),
		newAnswer(s),
		newInterrupt(s),
		newPause(s),
		newResume(s),
		newStop(s),
		newKill(s),
		newRemove(s),
		newClean(s),
		newInspect(s),
		newReplay(s),
		newServe(s),
		newDoctor(s),
		newVersion(s),
	)
	root.CompletionOptions.HiddenDefaultCmd = false
	return root
}

// group is a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return usage("%s needs a command: %s", cmd.CommandPath(), strings.Join(commandNames(cmd), ", "))
		},
	}
	cmd.AddCommand(subs...)
	return cmd
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

func unknownCommand(cmd *cobra.Command, name string) error {
	err := usage("%s has no command %q", cmd.CommandPath(), name)
	if near := registry.Nearest(name, commandNames(cmd)); near != "" {
		return err.WithHint("did you mean %s %s?", cmd.CommandPath(), near)
	}
	return err.WithHint("all commands: %s --help", cmd.CommandPath())
}

// words for what a flag takes.
var words = map[string]string{
	"uint32": "a whole number, 0 or more", "float64": "a number", "bool": "true or false",
}

// flagError says what is wrong with a flag: which, where, the way out.
func flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		text := e.Unwrap().Error()
		if expected := words[e.GetFlag().Value.Type()]; expected != "" {
			text = "want " + expected
		}
		return usage("--%s %s: %s", e.GetFlag().Name, e.GetValue(), text).WithHint("see: %s --help", cmd.CommandPath())
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		wrong := e.GetSpecifiedName()
		name := "--" + wrong
		if len(wrong) == 1 {
			name = "-" + wrong
		}
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		unknown := usage("%s has no flag %s", cmd.CommandPath(), name)
		if near := registry.Nearest(wrong, known); near != "" {
			return unknown.WithHint("did you mean --%s?", near)
		}
		return unknown.WithHint("all flags: %s --help", cmd.CommandPath())
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usage("--%s needs a value", e.GetFlag().Name).WithHint("see: %s --help", cmd.CommandPath())
	}
	return usage("%s", fmt.Sprint(err)).WithHint("see: %s --help", cmd.CommandPath())
}
