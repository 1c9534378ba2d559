// Package app is one command line of amux at work: what all commands share.
//
// Each part has a job of its own. Process is the world outside, Printer the words of
// amux, Config the settings, Project the folder that the command line is about, Opener
// the host, Plugins the plugins, Runs the recorded runs, Server the user's amux serve,
// Prompts the prompt on stdin. A part does its work when it is first needed: help and
// version read no settings and open no host. A command takes the parts that it needs.
//
// Data goes to stdout, everything else to stderr, where each line that amux itself
// writes begins with "amux: ". Text from agents and files is stripped of control
// sequences. One goroutine uses an App.
package app

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// App is one command line at work.
type App struct {
	*Process
	Args    []string // the command line, without the program's name
	Flags   *Flags
	Print   *Printer
	Project *Project
	Config  *Config
	Server  *Server
	Opener  *Opener
	Plugins *Plugins
	Runs    *Runs
	Prompts *Prompts
}

// New returns a command line in a process. It reads and starts nothing.
func New(p *Process) *App {
	a := &App{Process: p, Flags: &Flags{}}
	a.Print = &Printer{io: p.IO, flags: a.Flags, jsonErrors: p.Getenv(ErrorsVar) == "json"}
	// It is about this process: an agent that runs amux reads text.
	p.Env = slices.DeleteFunc(slices.Clone(p.Env), func(v string) bool { return strings.HasPrefix(v, ErrorsVar+"=") })
	a.Project = &Project{process: p, flags: a.Flags, print: a.Print}
	a.Config = &Config{process: p, flags: a.Flags, print: a.Print, project: a.Project}
	a.Server = &Server{process: p, config: a.Config, project: a.Project}
	a.Opener = &Opener{process: p, flags: a.Flags, config: a.Config, project: a.Project, server: a.Server}
	a.Plugins = &Plugins{process: p, config: a.Config, opener: a.Opener}
	a.Runs = &Runs{process: p, opener: a.Opener, server: a.Server, print: a.Print}
	a.Prompts = &Prompts{io: p.IO, print: a.Print}
	return a
}

// Main runs a command line, given without the program's name, and returns the exit
// code. root makes the commands.
func Main(p *Process, root func(*App) *cobra.Command, args []string) int {
	out := &output{w: p.IO.Out}
	p.IO.Out = out
	a := New(p)
	a.Args = args
	defer a.Opener.Close()
	cmd := root(a)
	cmd.SetArgs(args)
	cmd.SetIn(p.IO.In)
	cmd.SetOut(p.IO.Out)
	cmd.SetErr(p.IO.Err)
	err := cmd.ExecuteContext(context.Background())
	if out.failed(err) {
		err = nil // reported by exitCode
	}
	return a.exitCode(a.report(err), out)
}

// report prints what went wrong, if anything, and returns the exit code.
func (a *App) report(err error) int {
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[ExitError](err); ok {
		return int(code)
	}
	e, ok := errors.AsType[*pluginapi.Error](err)
	if !ok {
		// Every error of a command is ours, so this one is cobra's: a wrong command line.
		e = Usagef("%s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	a.Print.Error(e, "", "")
	if e.Code == pluginapi.CodeBudgetExceeded {
		return budgetExit // nothing was started
	}
	return e.Code.Info().Exit
}

// budgetExit is the exit code of amux where a budget of its own is spent. A limit of the
// agent's own has that of the code.
const budgetExit = 16

// Failed returns the exit code of a run that has failed.
func Failed(result host.Result) ExitError {
	if result.End.Reason == host.ReasonBudget {
		return budgetExit
	}
	return ExitError(result.Err.Code.Info().Exit)
}

// Interruptible does something until it is done or a signal cancels its context.
func (a *App) Interruptible(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sigs, stop := a.Signals()
	defer stop()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	var caught os.Signal
	for {
		select {
		case err := <-done:
			if caught != nil && errors.Is(err, context.Canceled) {
				a.Print.Notef("interrupted")
				return ExitError(SignalCode(caught))
			}
			return err
		case sig := <-sigs:
			if IsSuspend(sig) {
				Suspend()
				continue
			}
			caught = sig
			cancel()
		}
	}
}

// Each does something for every name. It reports an error and goes on with the next
// name; the exit code is that of the first error.
func Each[T any](p *Printer, names []T, do func(name T) error) error {
	var failed error
	for _, name := range names {
		err := do(name)
		switch e := pluginapi.AsError(err); {
		case err == nil:
		case errors.Is(err, context.Canceled):
			return err
		case failed == nil && len(names) == 1:
			return err
		default:
			p.Error(e, "", "")
			if failed == nil {
				failed = ExitError(e.Code.Info().Exit)
			}
		}
	}
	return failed
}

// Each does something for every name.
func (a *App) Each(names []string, do func(name string) error) error {
	return Each(a.Print, names, do)
}

// Confirm asks a question that is answered with y or n.
func (a *App) Confirm(question string) bool {
	answer := strings.ToLower(a.IO.Ask(render.String(question) + " [y/N] "))
	return answer == "y" || answer == "yes"
}
