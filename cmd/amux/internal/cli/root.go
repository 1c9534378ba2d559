// Package cli is the command line of amux: the root command. The commands are in the
// packages below, by noun: one command a file, each with an Options struct of what it
// needs, so that it can be read and tested alone. What they share is package app.
//
// How `amux run claude "hi"` goes: main hands the process's streams, environment and
// signals to Main; cobra parses; package run turns settings, agent, prompt and flags
// into a host.RunSpec; the host starts it; events go to the renderer, answers to the
// run, signals become interrupt and stop; the result's code becomes the exit code.
package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/acp"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/agents"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/config"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/control"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/doctor"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/inbox"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/mcp"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/records"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/run"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/serve"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/sessions"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/version"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/worktree"
)

// Rest is what only amux-api links, because with it every command would start later and
// hold more memory. A command whose part of it is nil hands its command line over to
// amux-api.
type Rest struct {
	ACP  acp.Face
	HTTP serve.Face
	MCP  mcp.Face
	// The others make commands; Agents those of amux agents.
	Place, Plugin, Top func(*app.App) *cobra.Command
	Agents             func(*app.App) []*cobra.Command
}

// Main runs a command line, given without the program's name, and returns the exit
// code.
func Main(p *app.Process, rest Rest, args []string) int {
	return app.Main(p, func(a *app.App) *cobra.Command { return NewCmd(a, rest) }, args)
}

// handOver fills in commands that hand their command line over to amux-api.
func (r *Rest) handOver() {
	r.Place = func(a *app.App) *cobra.Command {
		return a.HandedOver("place", "Look after the places where runs can be", "places")
	}
	r.Plugin = func(a *app.App) *cobra.Command {
		return a.HandedOver("plugin", "Install, check, remove and write plugins", "plugins")
	}
	r.Top = func(a *app.App) *cobra.Command { return a.HandedOver("top", "Watch all runs at once") }
}

// NewCmd makes amux, with all its commands.
func NewCmd(a *app.App, rest Rest) *cobra.Command {
	whole := rest.Plugin != nil
	if !whole {
		rest.handOver()
	}
	root := app.NewRoot(a)
	// Not cobra's own flag: its text is a template, with which the linker keeps each method of
	// each type, since a template could name it.
	showVersion := root.Flags().BoolP("version", "v", false, "version for amux")
	commands := []command{
		{"run", run.NewCmd},
		{"rerun", run.NewCmdRerun},
		{"agents", func(a *app.App) *cobra.Command { return agents.NewCmd(a, rest.Agents) }},
		{"config", config.NewCmd},
		{"plugin", rest.Plugin},
		{"sessions", sessions.NewCmd},
		{"ps", records.NewCmdPs},
		{"top", rest.Top},
		{"history", records.NewCmdHistory},
		{"cost", records.NewCmdCost},
		{"logs", records.NewCmdLogs},
		{"attach", run.NewCmdAttach},
		{"inbox", inbox.NewCmd},
		{"wait", records.NewCmdWait},
		{"screen", records.NewCmdScreen},
		{"send", control.NewCmdSend},
		{"approve", control.NewCmdApprove},
		{"deny", control.NewCmdDeny},
		{"answer", control.NewCmdAnswer},
		{"interrupt", control.NewCmdInterrupt},
		{"pause", control.NewCmdPause},
		{"resume", control.NewCmdResume},
		{"stop", control.NewCmdStop},
		{"kill", control.NewCmdKill},
		{"rm", records.NewCmdRm},
		{"clean", records.NewCmdClean},
		{"inspect", records.NewCmdInspect},
		{"diff", records.NewCmdDiff},
		{"undo", records.NewCmdUndo},
		{"compare", records.NewCmdCompare},
		{"place", rest.Place},
		{"worktree", func(a *app.App) *cobra.Command { return worktree.NewCmd(a, records.NewCmdWorktreeDiff(a)) }},
		{"replay", records.NewCmdReplay},
		{"serve", func(a *app.App) *cobra.Command { return serve.NewCmd(a, rest.HTTP) }},
		{"mcp", func(a *app.App) *cobra.Command { return mcp.NewCmd(a, rest.MCP) }},
		{"acp", func(a *app.App) *cobra.Command { return acp.NewCmd(a, rest.ACP) }},
		{"doctor", doctor.NewCmd},
		{"version", version.NewCmd},
	}
	for _, c := range asked(commands, a.Args) {
		root.AddCommand(c.make(a))
	}
	if !whole {
		a.HelpHandedOver(root)
	}
	unknown := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case *showVersion:
			_, err := io.WriteString(a.IO.Out, version.Line(a.Process))
			return err
		case len(args) > 0:
			return unknown(cmd, args)
		}
		return welcome(a, cmd)
	}
	// Only a shell that completes a command line asks for it, and it takes a look at all flags.
	if len(a.Args) > 0 && strings.HasPrefix(a.Args[0], cobra.ShellCompRequestCmd) {
		completeFlags(a, root)
	}
	return root
}

// command is the name of a command of amux, and what makes it with its flags.
type command struct {
	name string
	make func(*app.App) *cobra.Command
}

// asked are the commands that a command line needs: the one that it begins with, or else all. To
// make all takes half a millisecond of each start.
func asked(commands []command, args []string) []command {
	for i, c := range commands {
		if len(args) > 0 && args[0] == c.name {
			return commands[i : i+1]
		}
	}
	return commands
}

// completeFlags has the shell complete the values of flags that name something.
func completeFlags(a *app.App, cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		complete := a.CompleteFlag(f)
		if _, has := cmd.GetFlagCompletionFunc(f.Name); complete == nil || has {
			return
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails for a flag that has one
	})
	for _, sub := range cmd.Commands() {
		completeFlags(a, sub)
	}
}
