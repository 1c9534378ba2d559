package pi

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/plugins/others/internal/pirpc"
	"github.com/amux-dev/amux/sdk"
)

// An argument longer than this goes into a file: Linux takes 128 KiB.
const maxArgument = 96 << 10

// Plan makes the command line. Prompts go to stdin.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	o := req.GetOptions()
	plan := &pluginapi.Plan{
		Program: req.GetProgram(), Stdin: pb.Stdin_STDIN_OPEN,
		Args:   []string{"--mode", "rpc"},
		EnvSet: map[string]string{"PI_TELEMETRY": "0"},
	}
	flag := func(name, value string) { plan.Args = append(plan.Args, name, value) }
	switch {
	case o.Approve != pb.Approve_APPROVE_AUTO:
		return nil, sdk.Cannot(agentID, "approvals: it asks for nothing before it acts", "add --approve auto to let it act")
	case o.Fork && o.Resume == "":
		return nil, sdk.Cannot(agentID, "a fork of a session that is not named", "add --resume ID")
	case len(o.AllowRules)+len(o.DenyRules) > 0:
		return nil, sdk.Cannot(agentID, "rules", "it asks for nothing before it acts")
	case o.Fork:
		flag("--fork", o.Resume)
	case o.Resume != "":
		flag("--session", o.Resume)
		plan.SessionId = o.Resume
	case o.ContinueLast:
		plan.Args = append(plan.Args, "--continue")
	}
	if o.NoSession {
		plan.Args = append(plan.Args, "--no-session")
	}
	if o.Model != "" {
		flag("--model", o.Model)
	}
	if e := o.Effort; e != "" {
		if !slices.Contains(nativeEfforts, e) {
			return nil, sdk.Cannot(agentID, "effort "+strconv.Quote(e), "it has "+strings.Join(nativeEfforts, ", "))
		}
		flag("--thinking", e)
	}
	if err := systemPrompt(req, o, plan); err != nil {
		return nil, err
	}
	return plan, pirpc.Attach(agentID, o, plan)
}

func systemPrompt(req *pluginapi.PlanRequest, o *pluginapi.RunOptions, plan *pluginapi.Plan) error {
	text := o.SystemPrompt
	switch {
	case text == "":
	case o.SystemPromptMode == "replace":
		if len(text) > maxArgument {
			return sdk.Cannot(agentID, "to replace its system prompt by more than 96 KiB", "append it instead")
		}
		plan.Args = append(plan.Args, "--system-prompt", text)
	default:
		// A file, because the CLI takes a text that is the name of one for it.
		plan.Args = append(plan.Args, "--append-system-prompt", sdk.AddFile(req, plan, "system.md", []byte(text)))
	}
	return nil
}
