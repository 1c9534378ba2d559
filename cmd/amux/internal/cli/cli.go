// Package cli is the amux command: one command a file.
//
// Data goes to stdout, everything else to stderr, where what amux itself says
// begins with "amux: ". A command finds out all that can be wrong with what was
// asked before it starts anything. Nothing here knows an agent: what differs
// between them is asked of the host.
//
// How `amux run claude "hi"` goes: main hands the process's streams, environment
// and signals to App.Main; cobra parses; run.go resolves settings, agent, prompt
// and approve mode into a host.RunSpec; the host starts it; live.go passes events
// to the renderer, answers to the run, and signals as interrupt and stop; the
// result's code becomes the exit code.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi"
)

// App is the process that the commands run in. Nothing here reads it behind the
// back of main.
type App struct {
	IO         *iostreams.IO
	Env        []string // NAME=VALUE
	Home       string   // empty if there is none
	Cwd        string
	Executable string
	Version    string
	// BundledHashes are those of the bundled plugins, by name.
	BundledHashes map[string]string
	// Signals starts to catch signals, until the function it returns is called.
	Signals func() (<-chan os.Signal, func())
	// Resized starts to tell when the terminal has got another size, until the
	// function it returns is called.
	Resized func() (<-chan os.Signal, func())
	// Started is called when the process has the one run that it is for; nil if
	// nobody wants to know.
	Started func()
	// NewHost makes the host when a command first needs one.
	NewHost func(host.Options) (Host, error)
}

// Host is what the commands ask of a host.Host.
type Host interface {
	runner
	lister
	archive
	installer
	recorder
	canceler
	deleter
	cleaner
	adopter
	Close(ctx context.Context) error
}

// Main runs a command line, without the program's name, and returns the exit code.
func (a *App) Main(args []string) int {
	out := &output{w: a.IO.Out}
	a.IO.Out = out
	s := &session{app: a}
	defer s.close()
	root := newRoot(s)
	root.SetArgs(args)
	root.SetIn(a.IO.In)
	root.SetOut(a.IO.Out)
	root.SetErr(a.IO.Err)
	err := root.ExecuteContext(context.Background())
	if out.failed(err) {
		err = nil // said below
	}
	return s.exit(s.fail(err), out)
}

// exitError ends a command with a code when everything was said already.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// fail says what went wrong, if anything, and returns the exit code.
func (s *session) fail(err error) int {
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	e, ok := errors.AsType[*pluginapi.Error](err)
	if !ok {
		// What is not ours comes from cobra: the command line is wrong.
		e = usage("%s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	s.say(e, "", "")
	return e.Code.Info().Exit
}

// say prints an error and the way out. Hints speak of RUN and AGENT; where these
// are known they are put in.
func (s *session) say(e *pluginapi.Error, runID, agent string) {
	hint := e.Hint
	if hint == "" {
		hint = e.Code.Info().Hint
	}
	if runID != "" {
		hint = strings.ReplaceAll(hint, "RUN", render.ShortID(runID))
	}
	if agent != "" {
		hint = strings.ReplaceAll(hint, "AGENT", agent)
	}
	s.errf("error: %s", e.Error())
	if hint != "" {
		s.errf("hint: %s", hint)
	}
}

// errf prints a line of amux's own on stderr. What agents and files say may be in
// it, so it is stripped of control sequences.
func (s *session) errf(format string, args ...any) {
	text := render.String(fmt.Sprintf(format, args...))
	fmt.Fprintf(s.app.IO.Err, "amux: %s\n", strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      "))
}

// outf prints lines on stdout, for people. What others have written may be in them.
func (s *session) outf(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = printable.Line(text)
		}
	}
	fmt.Fprintf(s.app.IO.Out, format, args...)
}

func (s *session) warnf(format string, args ...any) { s.errf("warning: "+format, args...) }

// warnLater keeps a warning until the run has started.
func (s *session) warnLater(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// usage is the error for a wrong command line.
func usage(format string, args ...any) *pluginapi.Error {
	return pluginapi.Errorf(pluginapi.CodeValidation, format, args...)
}

// command wraps the function of a command so that an error which is none of ours
// counts as a mistake of amux, not of its user.
func command(do func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := do(cmd, args)
		if err == nil {
			return nil
		}
		if _, ok := errors.AsType[exitError](err); ok {
			return err
		}
		return pluginapi.AsError(err)
	}
}

// exactly demands the arguments that names lists.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage("%s needs %s", cmd.CommandPath(), names[len(args)]).WithHint("usage: %s", cmd.UseLine())
		case len(args) > len(names):
			return usage("%s takes no argument %q", cmd.CommandPath(), args[len(names)]).WithHint("usage: %s", cmd.UseLine())
		}
		return nil
	}
}

// table writes rows in columns. What others have written may be in any cell, so each is
// one line without control sequences.
func table(w io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			cell = printable.Line(cell)
			row[i] = cell
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], render.Columns(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-render.Columns(cell)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}
