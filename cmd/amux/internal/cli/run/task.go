package run

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Task is what a program may say of a run that amux serve is to host. Fields mean what
// the flags of amux run do; what is left out is decided as amux run decides it.
type Task struct {
	Agent, Prompt         string // no agent: as amux run without AGENT
	Model, Effort, System string
	Driver                string // empty: the first that can do it
	Cwd                   string // absolute; empty: the folder of the process
	Name                  string
	Tags                  []string
	Resume                string // session of the agent
	NoSession             bool
	Conversation          bool // takes more prompts, until End
	Worktree              bool // a new one
	Sandbox               *host.Sandbox
	AddDirs, Files        []string
	Env                   []string // NAME=VALUE
	MCP                   []host.MCPServer
	Approve               string // empty: ask
	Allow, Deny           []string
	MaxTurns              uint32
	MaxCost               float64
	MaxTokens             int64
	Timeout               time.Duration
}

// Start starts a run in amux serve and returns its id. It reads the settings and the
// project of the task's folder, as a command in that folder does, and refuses what that
// would refuse before anything is started. The caller, or somebody else, answers what the
// agent asks. Start prints nothing, and may be called by several goroutines at once. Its
// errors are *pluginapi.Error.
func Start(ctx context.Context, a *app.App, t Task) (string, error) {
	p := *a.Process
	p.IO = &iostreams.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard} // nobody is at a terminal
	if t.Cwd != "" {
		p.Cwd = t.Cwd
	}
	p.Env = slices.Clone(p.Env)
	in := app.New(&p)
	*in.Flags = *a.Flags
	defer in.Opener.Close()
	o := NewOptions(in)
	o.Detach, o.Interactive = true, t.Conversation
	o.Model, o.Effort, o.System, o.Driver = t.Model, t.Effort, t.System, t.Driver
	o.Name, o.Tags, o.Resume, o.NoSession = t.Name, t.Tags, t.Resume, t.NoSession
	o.Worktree.given = t.Worktree
	if box := t.Sandbox; box != nil {
		o.Sandbox.on, o.SandboxNet, o.SandboxRead, o.SandboxWrite, o.SandboxSecrets = true, box.Network, box.Read, box.Write, box.Secrets
	}
	o.AddDirs, o.Files, o.Env, o.servers = t.AddDirs, t.Files, t.Env, t.MCP
	o.Allow, o.Deny = t.Allow, t.Deny
	o.MaxTurns, o.MaxCost, o.MaxTokens = t.MaxTurns, t.MaxCost, t.MaxTokens
	o.Timeout = app.DurationFlag{D: t.Timeout, Given: t.Timeout > 0}
	id, err := o.hand(ctx, t)
	if err != nil {
		return "", pluginapi.AsError(err)
	}
	return id, nil
}

// hand prepares the run of a task and hands it to amux serve.
func (o *Options) hand(ctx context.Context, t Task) (string, error) {
	if t.Approve != "" {
		if err := app.OneOf(&o.Approve, "ask", "auto", "deny", "rules").Set(t.Approve); err != nil {
			return "", app.Usagef("invalid approve %q: %v", t.Approve, err)
		}
	}
	if err := o.check(); err != nil {
		return "", err
	}
	if strings.TrimSpace(t.Prompt) == "" && !t.Conversation {
		return "", app.Usagef("no prompt")
	}
	set, err := o.Config.Settings()
	if err != nil {
		return "", err
	}
	r := &request{Options: o, settings: set, prompt: &t.Prompt, answered: true}
	if r.spec, err = o.spec(); err != nil {
		return "", err
	}
	h, err := o.Opener.Host()
	if err != nil {
		return "", err
	}
	var args []string
	if t.Agent != "" {
		if !agentRule.MatchString(t.Agent) {
			return "", app.Usagef("invalid agent %q", t.Agent).WithHint("all agents: amux agents list")
		}
		args = []string{t.Agent, t.Prompt}
	}
	if err := r.prepare(ctx, h, args); err != nil {
		return "", err
	}
	return r.handOver(ctx, h)
}
