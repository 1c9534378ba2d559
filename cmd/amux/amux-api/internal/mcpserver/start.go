package mcpserver

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	command "github.com/amux-dev/amux/cmd/amux/internal/cli/mcp"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/run"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

type startIn struct {
	Agent        string  `json:"agent" jsonschema:"the agent, such as claude or codex; see agents_list"`
	Prompt       string  `json:"prompt" jsonschema:"the task"`
	Model        string  `json:"model,omitempty" jsonschema:"the model, as the agent names it"`
	Effort       string  `json:"effort,omitempty" jsonschema:"low, medium, high or max"`
	Cwd          string  `json:"cwd,omitempty" jsonschema:"the folder to work in; default: that of this server"`
	Worktree     bool    `json:"worktree,omitempty" jsonschema:"work in a new git worktree, on a branch of its own"`
	Name         string  `json:"name,omitempty" jsonschema:"a name for the run"`
	Conversation bool    `json:"conversation,omitempty" jsonschema:"take more prompts by run_send, until run_send ends it"`
	Approve      string  `json:"approve,omitempty" jsonschema:"who answers when the agent asks permission: ask (a person), auto, deny or rules"`
	MaxTurns     uint32  `json:"max_turns,omitempty" jsonschema:"end after this many turns"`
	MaxCost      float64 `json:"max_cost_usd,omitempty" jsonschema:"end when this many dollars are spent"`
	MaxTokens    int64   `json:"max_tokens,omitempty" jsonschema:"end when this many tokens are used"`
	TimeoutS     float64 `json:"timeout_seconds,omitempty" jsonschema:"end after this time"`
	Sandbox      bool    `json:"sandbox,omitempty" jsonschema:"keep the agent in a sandbox: it writes to its work folder alone"`
	Wait         bool    `json:"wait,omitempty" jsonschema:"answer when the run has ended or asks something, or after ten minutes, with what run_wait says; a client that knows tasks gets one"`
}

type startOut struct {
	RunID   string  `json:"run_id"`
	Approve string  `json:"approve"`
	Run     *runOut `json:"run,omitempty" jsonschema:"how far it is, with wait"`
}

func (s *server) start(ctx context.Context, progress func(float64, string), in startIn) (startOut, error) {
	if in.MaxCost < 0 || in.MaxTokens < 0 || in.TimeoutS < 0 || in.TimeoutS > maxSeconds {
		return startOut{}, app.Usagef("invalid limit: expected 0 or more, and a timeout of at most %d s", maxSeconds)
	}
	t := run.Task{
		Agent: in.Agent, Prompt: in.Prompt, Model: in.Model, Effort: in.Effort, Cwd: in.Cwd, Worktree: in.Worktree, Name: in.Name,
		Conversation: in.Conversation, Approve: in.Approve, Tags: []string{command.Tag},
		MaxTurns: in.MaxTurns, MaxCost: in.MaxCost, MaxTokens: in.MaxTokens, Timeout: time.Duration(in.TimeoutS * float64(time.Second)),
	}
	if t.Cwd == "" {
		t.Cwd = s.app.Cwd
	}
	if t.Cwd = filepath.Clean(t.Cwd); !filepath.IsAbs(t.Cwd) {
		return startOut{}, app.Usagef("invalid cwd %q: expected an absolute path", in.Cwd)
	}
	if s.caller != nil {
		if err := within(&t, s.caller.Spec.Permissions); err != nil {
			return startOut{}, err
		}
	}
	if t.Approve == "" {
		t.Approve = string(host.ApproveAsk)
	}
	if s.allowed != nil {
		if err := s.allowed(t); err != nil {
			return startOut{}, err
		}
	}
	if in.Sandbox {
		t.Sandbox = &host.Sandbox{}
	}
	id, err := run.Start(ctx, s.app, t)
	out := startOut{RunID: id, Approve: t.Approve}
	if err != nil || !in.Wait || ctx.Value(asTask{}) != nil {
		return out, err
	}
	waited, err := s.wait(ctx, progress, waitIn{RunIDs: []string{id}, TimeoutS: longestWait.Seconds()})
	if err == nil {
		out.Run = &waited.Runs[0]
	}
	return out, err
}

// maxSeconds is the longest time that a tool takes, a month.
const maxSeconds = 31 * 24 * 60 * 60

// modes are from the one that lets an agent do least to the one that lets it do most.
var modes = []host.ApproveMode{host.ApproveDeny, host.ApproveRules, host.ApproveAsk, host.ApproveAuto}

// within keeps a task within the permissions of the run that starts it.
func within(t *run.Task, caller host.Permissions) error {
	may := caller.Approve
	if may == "" {
		may = host.ApproveDeny
	}
	most, wanted := slices.Index(modes, may), host.ApproveMode(t.Approve)
	if wanted == "" {
		wanted = modes[min(max(most, 0), slices.Index(modes, host.ApproveAsk))]
	}
	n := slices.Index(modes, wanted)
	switch {
	case n < 0:
		return app.Usagef("invalid approve %q: expected ask, auto, deny or rules", t.Approve)
	case n > most:
		return pluginapi.Errorf(pluginapi.CodeValidation, "approve %s is more than this run may: its own is %s", wanted, may).
			WithHint("leave approve out, or use %s", may)
	}
	t.Approve = string(wanted)
	if wanted == host.ApproveRules {
		t.Allow = append(t.Allow, caller.AllowRules...)
	}
	t.Deny = append(t.Deny, caller.DenyRules...)
	return nil
}
