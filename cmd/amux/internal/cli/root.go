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
	root.AddCommand(
		run.NewCmd(a),
		run.NewCmdRerun(a),
		agents.NewCmd(a, rest.Agents),
		config.NewCmd(a),
		rest.Plugin(a),
		sessions.NewCmd(a),
		records.NewCmdPs(a),
		rest.Top(a),
		records.NewCmdHistory(a),
		records.NewCmdCost(a),
		records.NewCmdLogs(a),
		run.NewCmdAttach(a),
		inbox.NewCmd(a),
		records.NewCmdWait(a),
		records.NewCmdScreen(a),
		control.NewCmdSend(a),
		control.NewCmdApprove(a),
		control.NewCmdDeny(a),
		control.NewCmdAnswer(a),
		control.NewCmdInterrupt(a),
		control.NewCmdPause(a),
		control.NewCmdResume(a),
		control.NewCmdStop(a),
		control.NewCmdKill(a),
		records.NewCmdRm(a),
		records.NewCmdClean(a),
		records.NewCmdInspect(a),
		records.NewCmdDiff(a),
		records.NewCmdUndo(a),
		records.NewCmdCompare(a),
		rest.Place(a),
		worktree.NewCmd(a, records.NewCmdWorktreeDiff(a)),
		records.NewCmdReplay(a),
		serve.NewCmd(a, rest.HTTP),
		mcp.NewCmd(a, rest.MCP),
		acp.NewCmd(a, rest.ACP),
		doctor.NewCmd(a),
		version.NewCmd(a),
	)
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
