package run

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
)

// NewCmdRerun makes amux rerun.
func NewCmdRerun(a *app.App) *cobra.Command {
	o := NewOptions(a)
	var agent string
	cmd := &cobra.Command{
		Use:   "rerun [RUN [PROMPT]]",
		Short: "Run again what a run was told to do",
		Long: `Start a new run as an earlier one was started: the same agent, prompt, folder and
flags. The flags that are given here take the place of those; PROMPT takes the place of
the prompt. A run with a worktree of its own gets a new one, unless it had a name.
Settings and environment are those of now: values of --env, and the
environment and headers of tool servers, are not recorded.

Whether a run answers permission requests by itself is taken over; who answers where it
asked is decided as amux run does. The new run stays in this terminal: add -d.`,
		Example: `  amux rerun 86CCFA
  amux rerun 86CCFA --model opus "fix the tests, and say why they failed"
  amux rerun nightly --agent codex -d`,
		Args:              app.RangeArgs(0, "a run", "a prompt"),
		ValidArgsFunction: a.Runs.Complete,
		RunE: a.Runs.Of(nil, func(cmd *cobra.Command, args []string) error {
			run, err := o.Runs.Open(args[0])
			if err == nil {
				spec := run.Info().Spec
				prompt := spec.Prompt
				if len(args) > 1 {
					prompt = args[1]
				}
				if err = o.repeat(spec, agent, cmd.Flags().Changed); err == nil {
					err = o.Run([]string{o.name, prompt})
				}
			}
			if o.JSON {
				reportJSON(o.Process.IO.Out, err)
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "run this `AGENT` instead, with a model of its own")
	o.AddFlags(cmd)
	cmd.SetFlagErrorFunc(flagError(a))
	return cmd
}

// repeat takes what an earlier run was told from its spec, where no flag says otherwise.
func (o *Options) repeat(spec host.RunSpec, agent string, given func(flag string) bool) error {
	o.name = spec.Agent
	if agent != "" && agent != spec.Agent {
		if spec.Resume != "" || spec.Continue {
			return app.Usagef("the run resumed a session of agent %s, which agent %s cannot", spec.Agent, agent).
				WithHint("leave out --agent; or start a new run: amux run %s", agent)
		}
		o.name, spec.Model, spec.Effort, spec.Driver = agent, "", "", ""
	}
	take(given, "model", &o.Model, spec.Model)
	take(given, "effort", &o.Effort, spec.Effort)
	take(given, "system", &o.System, spec.SystemPrompt)
	take(given, "driver", &o.Driver, spec.Driver)
	take(given, "json-schema", &o.Schema, spec.JSONSchema)
	take(given, "pty", &o.PTY, spec.PTY)
	take(given, "on", &o.On, spec.On)
	if tree := spec.Worktree; tree != nil {
		take(given, "cwd", &o.Cwd, tree.From)
		named := worktreeFlag{given: true}
		if !tree.Made {
			named.name = tree.Name
		}
		take(given, "worktree", &o.Worktree, named)
	} else {
		take(given, "cwd", &o.Cwd, spec.Cwd)
	}
	take(given, "add-dir", &o.AddDirs, spec.AddDirs)
	take(given, "file", &o.Files, spec.Files)
	take(given, "mcp", &o.servers, spec.MCPServers)
	take(given, "allow", &o.Allow, spec.AllowRules)
	take(given, "deny", &o.Deny, spec.DenyRules)
	take(given, "max-turns", &o.MaxTurns, uint32(max(0, spec.MaxTurns)))
	take(given, "max-cost", &o.MaxCost, cmp.Or(spec.MaxCost, spec.MaxBudget))
	take(given, "max-tokens", &o.MaxTokens, spec.MaxTokens)
	take(given, "timeout", &o.Timeout, app.DurationFlag{D: spec.Timeout, Given: spec.Timeout > 0})
	take(given, "idle-timeout", &o.IdleTimeout, app.DurationFlag{D: max(0, spec.IdleTimeout), Given: spec.IdleTimeout != 0})
	take(given, "grace", &o.Grace, app.DurationFlag{D: spec.Grace, Given: spec.Grace > 0})
	take(given, "name", &o.Name, spec.Name)
	take(given, "no-changes", &o.NoChanges, !spec.Changes)
	if box := spec.Sandbox; box != nil {
		take(given, "sandbox", &o.Sandbox, sandboxFlag{on: true})
		take(given, "sandbox-net", &o.SandboxNet, box.Network)
		take(given, "sandbox-secret", &o.SandboxSecrets, box.Secrets)
		take(given, "sandbox-read", &o.SandboxRead, box.Read)
		take(given, "sandbox-write", &o.SandboxWrite, box.Write)
	}
	take(given, "no-record", &o.NoRecord, spec.NoRecord)
	take(given, "tag", &o.Tags, spec.Tags)
	if o.System != "" {
		take(given, "system-mode", &o.SystemMode, spec.SystemMode)
	}
	if spec.Retry != nil {
		take(given, "retry", &o.Retry, retryFlag{attempts: uint32(max(0, spec.Retry.MaxAttempts)), given: true})
	}
	if !given("resume") && !given("continue") && !given("no-session") {
		o.Resume, o.Continue, o.NoSession = spec.Resume, spec.Continue, spec.NoSession
		take(given, "fork", &o.Fork, spec.Fork)
	}
	if !o.JSON && !o.Quiet && o.Input == "" && !o.Detach {
		take(given, "interactive", &o.Interactive, spec.Conversation)
	}
	asked := spec.Approve == host.ApproveAsk || spec.Approve == host.ApproveDeny && spec.Unattended || spec.Approve == host.ApproveRules && len(o.Allow)+len(o.Deny) == 0
	if !asked {
		take(given, "approve", &o.Approve, string(spec.Approve))
	}
	return nil
}

// take sets a flag that was not given.
func take[T any](given func(flag string) bool, flag string, to *T, value T) {
	if !given(flag) {
		*to = value
	}
}

// withTags returns the tags of the settings and of the flags, each once.
func withTags(settings, flags []string) []string {
	all := slices.Clone(settings)
	for _, tag := range flags {
		if !slices.Contains(all, tag) {
			all = append(all, tag)
		}
	}
	return all
}
