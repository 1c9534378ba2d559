// Package mcp has amux mcp: the command line of the MCP server, which amux-api has.
package mcp

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Tag marks the runs that were started through MCP.
const Tag = "mcp"

// Options are what amux mcp needs.
type Options struct {
	Grant  []string // runs, or all
	Answer bool
}

// Face serves MCP on the streams of the process, until stdin ends.
type Face func(a *app.App, o *Options) error

// NewCmd makes amux mcp. Without a face it hands the command line over to amux-api.
func NewCmd(a *app.App, face Face) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve MCP, so that agents can run agents",
		Long: `Serve the Model Context Protocol on stdin and stdout. Its tools start runs, wait for them,
read what they did, send prompts, show changes and stop them. The runs are detached: they
go on when the client ends.

A client inside a run sees and controls only the runs below it: those that it has started,
and those that they have started. A client outside runs sees the runs that were started
through MCP. --grant adds a run with all below it, or all runs; --answer lets the client
answer what agents ask. Inside a run both are refused, because an agent could type them:
there [mcp] in config.toml decides.

To give the servers of an agent's own settings another one, see: amux agents mcp --help`,
		Example: `  amux agents mcp add claude amux -- amux mcp
  amux run claude --mcp amux="amux mcp" "let codex review my last commit"
  amux mcp --grant all --answer`,
		Args: app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error {
			if a.Inside() != "" && (len(o.Grant) > 0 || o.Answer) {
				return app.Usagef("--grant and --answer cannot be used inside a run: an agent could type them").
					WithHint("set grant and answer in [mcp] of config.toml, outside the run")
			}
			if face == nil {
				return a.HandOver()
			}
			return face(a, o)
		}),
	}
	app.AddRepeated(cmd.Flags(), &o.Grant, "grant", "", "let the client see and control this `RUN` and all below it, or all; repeatable")
	cmd.Flags().BoolVar(&o.Answer, "answer", false, "let the client approve, deny and answer what agents ask")
	return cmd
}

// Scope is what the client may see and control, with what the user's settings grant.
// resolve finds the id of a run that a grant names.
func Scope(inside string, grant []string, resolve func(ref string) (host.RunInfo, error)) (app.Scope, error) {
	s := app.Scope{Limited: true}
	if inside != "" {
		s.Below = []string{inside}
	} else {
		s.Tag = Tag
	}
	for _, ref := range grant {
		if ref == "all" {
			return app.Scope{}, nil
		}
		info, err := resolve(ref)
		if err != nil {
			e := pluginapi.AsError(err)
			return app.Scope{}, app.Usagef("invalid grant %q: %s", ref, e.Msg).WithHint("expected all, or a run: amux ps -a")
		}
		s.Below, s.Runs = append(s.Below, info.ID), append(s.Runs, info.ID)
	}
	return s, nil
}
