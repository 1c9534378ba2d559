package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/pluginapi"
)

// ExitError ends a command with an exit code; everything has been printed already.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Usagef returns the error for a wrong command line.
func Usagef(format string, args ...any) *pluginapi.Error {
	return pluginapi.Errorf(pluginapi.CodeValidation, format, args...)
}

// Command wraps the function of a command, so that an error without a code counts as a
// mistake of amux, not of its user.
func Command(do func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := do(cmd, args)
		if err == nil {
			return nil
		}
		if _, ok := errors.AsType[ExitError](err); ok {
			return err
		}
		return pluginapi.AsError(err)
	}
}

// ExactArgs requires one argument for each name. A name is what the error calls the
// missing argument, such as "a run".
func ExactArgs(names ...string) cobra.PositionalArgs { return RangeArgs(len(names), names...) }

// RangeArgs requires the first least of the named arguments, and allows the others.
func RangeArgs(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Usagef("%s needs %s", cmd.CommandPath(), names[len(args)]).WithHint("usage: %s", cmd.UseLine())
		case len(args) > len(names):
			return Usagef("%s takes no argument %q", cmd.CommandPath(), args[len(names)]).WithHint("usage: %s", cmd.UseLine())
		}
		return nil
	}
}

// SomeArgs requires one argument or more.
func SomeArgs(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return ExactArgs(name)(cmd, args)
		}
		return nil
	}
}

// Arg returns an argument; empty if there are fewer.
func Arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// Group returns a command that only holds others.
func Group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return UnknownCommand(cmd, args[0])
		}
		return Usagef("%s needs a command: %s", cmd.CommandPath(), strings.Join(commandNames(cmd), ", "))
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

// UnknownCommand returns the error for a subcommand that does not exist.
func UnknownCommand(cmd *cobra.Command, name string) error {
	err := Usagef("%s has no command %q", cmd.CommandPath(), name)
	if way := here(cmd, name); way != "" {
		return err.WithHint("in amux that is %s", way)
	}
	if near := registry.Nearest(name, commandNames(cmd)); near != "" {
		return err.WithHint("did you mean %s %s?", cmd.CommandPath(), near)
	}
	return err.WithHint("all commands: %s --help", cmd.CommandPath())
}

// expected are the words for what a flag of a type takes.
var expected = map[string]string{
	"uint32": "a whole number, 0 or more", "uint64": "a whole number, 0 or more", "uint16": "a whole number from 0 to 65535", "int": "a whole number",
	"float64": "a number", "bool": "true or false",
}

// FlagError says what is wrong with a flag: which one, its value, the way out.
func FlagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		text := e.Unwrap().Error()
		if words := expected[e.GetFlag().Value.Type()]; words != "" {
			text = "expected " + words
		}
		return Usagef("invalid --%s %q: %s", e.GetFlag().Name, e.GetValue(), text).WithHint("see: %s --help", cmd.CommandPath())
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		wrong := e.GetSpecifiedName()
		name := "--" + wrong
		if len(wrong) == 1 {
			name = "-" + wrong
		}
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		unknown := Usagef("%s has no flag %s", cmd.CommandPath(), name)
		if way := here(cmd, wrong); way != "" {
			return unknown.WithHint("in amux that is %s", way)
		}
		if near := registry.Nearest(wrong, known); near != "" {
			return unknown.WithHint("did you mean --%s?", near)
		}
		return unknown.WithHint("all flags: %s --help", cmd.CommandPath())
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return Usagef("--%s needs a value", e.GetFlag().Name).WithHint("see: %s --help", cmd.CommandPath())
	}
	return Usagef("%s", fmt.Sprint(err)).WithHint("see: %s --help", cmd.CommandPath())
}
