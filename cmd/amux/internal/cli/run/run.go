// Package run has amux run and amux attach: a run in the foreground of a terminal, or
// of a program that reads its events.
//
// A request is a run until it starts: agent, prompt, settings and flags become a
// host.RunSpec. What can be wrong with it is found before anything is started. Then a
// live run shows the events, an asker asks the user what the agent asks, and signals
// interrupt or stop the run. The result's code becomes the exit code.
package run

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/notify"
	"github.com/amux-dev/amux/cmd/amux/internal/telemetry"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Options are what amux run needs.
type Options struct {
	Process *app.Process
	Print   *app.Printer
	Config  *app.Config
	Opener  *app.Opener
	Plugins *app.Plugins
	Prompts *app.Prompts
	Runs    *app.Runs
	Server  *app.Server
	Project *app.Project
	Now     func() time.Time
	Confirm func(question string) bool
	Export  *telemetry.Exporters // of the runs in the foreground

	Mode
	Session
	Agent
	Context
	Each []string // agents, in place of one
	Approvals
	Box
	Limits
	Label

	name    string           // of the agent, for rerun
	servers []host.MCPServer // beside those of MCP
}

// NewOptions returns the options of a run, before flags are read.
func NewOptions(a *app.App) *Options {
	return &Options{
		Process: a.Process, Print: a.Print, Config: a.Config, Opener: a.Opener, Plugins: a.Plugins,
		Prompts: a.Prompts, Runs: a.Runs, Server: a.Server, Project: a.Project, Now: time.Now, Confirm: a.Confirm,
		Export: &telemetry.Exporters{Program: a.Process.Beside(app.ProgramName("amux-api")), Debugf: a.Print.Debugf},
	}
}

// NewCmd makes amux run.
func NewCmd(a *app.App) *cobra.Command {
	o := NewOptions(a)
	cmd := &cobra.Command{
		Use:   "run [AGENT] [PROMPT | -]",
		Short: "Run an agent with a prompt",
		Long: `Run an agent with a prompt, given as an argument or on stdin. The assistant's text goes
to stdout. Thinking, tools, questions and a last line with turns, tokens, cost and time
go to stderr. Without AGENT, amux runs the agent of config.toml, or the only one that is
installed and signed in. Ctrl-C once cancels the agent's turn, twice stops the run. No
process that the agent started outlives the run, not even a server it left running.

Text that is piped in beside a prompt follows the prompt after a blank line; together
they may have 8 MiB. amux ignores a pipe that stays empty for three seconds. In a loop
that reads lines from the same stdin, give amux < /dev/null.

With --json-schema the agent's last message must be one JSON document that matches the
schema, without prose and without a Markdown fence. Otherwise the run fails with
AGENT_FAILED (exit code 1), and the error names the place that does not match. amux
checks the schema before it starts anything, and fetches nothing that it refers to.`,
		Example: `  amux run claude "why does the build fail?"
  amux run demo "hello" > answer.txt
  git diff | amux run claude "review this"
  amux run -i claude
  amux run claude --worktree=login "fix the login" --approve auto
  amux run --each claude,codex,gemini "make the parser faster" --approve auto
  git diff | amux run claude - --json | jq -r 'select(.type == "text_delta").delta'
  amux run claude "list the TODOs" --quiet --json-schema todos.schema.json | jq .`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			err := o.Run(args)
			if o.JSON {
				reportJSON(o.Process.IO.Out, err)
			}
			return err
		}),
	}
	o.AddFlags(cmd)
	cmd.SetFlagErrorFunc(flagError(a))
	cmd.Flags().StringSliceVar(&o.Each, "each", nil, "run these `AGENTS`, separated by commas, each in a worktree of its own; then compare them")
	return cmd
}

// Run runs an agent. args are those of the command.
func (o *Options) Run(args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if len(o.Each) > 0 {
		return o.each(args)
	}
	if len(args) > 2 {
		err := app.Usagef("got %d arguments; quote the prompt", len(args))
		if last := args[len(args)-1]; o.Retry.given && strings.Trim(last, "0123456789") == "" {
			return err.WithHint("the number of attempts follows an equals sign: --retry=%s", last)
		}
		if o.Worktree.given && o.Worktree.name == "" {
			return err.WithHint("quote the prompt; the name of a worktree follows an equals sign: --worktree=%s", args[0])
		}
		return err.WithHint("amux run %s \"%s …\"", args[0], args[1])
	}
	set, err := o.Config.Settings()
	if err != nil {
		return err
	}
	r := &request{Options: o, settings: set}
	if r.spec, err = o.spec(); err != nil {
		return err
	}
	h, err := o.Opener.Host()
	if err != nil {
		return err
	}
	if err := r.prepare(context.Background(), h, args); err != nil {
		if alone := o.Process.Whole(); alone != nil && errors.Is(err, pluginapi.CodeAgentNotFound) {
			return alone
		}
		return err
	}
	if o.Detach {
		return r.detach(h)
	}
	defer o.Export.Close()
	r.spec.Trace = telemetry.Trace(set.Telemetry, o.Process.Env, r.spec)
	r.spec.OnPlan, r.spec.Prepare = r.onPlan(), notify.Before(r.settings.Hooks, r.Process.Env)
	return r.foreground(h)
}
