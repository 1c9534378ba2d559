package omp

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/plugins/others/internal/pirpc"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
)

// An argument longer than this goes into a file: Linux takes 128 KiB.
const maxArgument = 96 << 10

// Plan makes the command line. Values follow their flag in the same word. Prompts go
// to stdin.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	o := req.GetOptions()
	plan := &pluginapi.Plan{
		Program: req.GetProgram(), Stdin: pb.Stdin_STDIN_OPEN,
		// Titles are made by a request of the model of their own.
		Args: []string{"--mode=rpc", "--auto-approve", "--no-title"},
	}
	acpDriver := byACP(o)
	if acpDriver {
		if err := asking(o, plan); err != nil {
			return nil, err
		}
	}
	if req.GetCaller().GetOs() == "windows" {
		plan.Warnings = append(plan.Warnings, "omp on Windows is unproven: amux was not run with it there")
	}
	flag := func(name, value string) { plan.Args = append(plan.Args, name+"="+value) }
	switch {
	case o.Approve != pb.Approve_APPROVE_AUTO && !acpDriver:
		return nil, sdk.Cannot(agentID, "approvals with the driver rpc: there it asks for nothing before it acts", "add --approve auto to let it act, or take the driver auto")
	case o.Fork && o.Resume == "":
		return nil, sdk.Cannot(agentID, "a fork of a session that is not named", "add --resume ID")
	case len(o.AllowRules)+len(o.DenyRules) > 0 && !acpDriver:
		return nil, sdk.Cannot(agentID, "rules with the driver rpc", "use the driver acp, where amux judges each request")
	case acpDriver:
		plan.SessionId = o.Resume // the protocol goes on with it
	case o.Fork:
		flag("--fork", o.Resume)
	case o.Resume != "":
		flag("--resume", o.Resume)
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
	for _, dir := range o.AddDirs {
		flag("--add-dir", dir)
	}
	switch text := o.SystemPrompt; {
	case text == "":
	case o.SystemPromptMode == "replace" && len(text) > maxArgument:
		return nil, sdk.Cannot(agentID, "to replace its system prompt by more than 96 KiB", "append it instead")
	case o.SystemPromptMode == "replace":
		flag("--system-prompt", text)
	default:
		// A file, because the CLI takes a text that is the name of one for it.
		flag("--append-system-prompt", sdk.AddFile(req, plan, "system.md", []byte(text)))
	}
	if acpDriver {
		return plan, acp.Prepare(agentID, acp.Abilities{Images: true}, req, plan)
	}
	return plan, pirpc.Attach(agentID, o, plan)
}

// byACP reports whether the Agent Client Protocol drives it: by RPC, which tells
// more, it asks for nothing.
func byACP(o *pluginapi.RunOptions) bool {
	return o.GetDriver() == driverACP || o.GetDriver() != driverRPC && o.GetApprove() != pb.Approve_APPROVE_AUTO
}

// asking is the command line for the Agent Client Protocol, where the CLI asks
// about commands; told so, about everything that is more than reading.
func asking(o *pluginapi.RunOptions, plan *pluginapi.Plan) error {
	plan.Args = []string{"acp", "--no-title"}
	switch {
	case o.Fork:
		return sdk.Cannot(agentID, "a fork with the driver acp", "use the driver rpc, with --approve auto")
	case o.NoSession:
		return sdk.Cannot(agentID, "a session that is not kept with the driver acp", "use the driver rpc, with --approve auto")
	case o.Approve != pb.Approve_APPROVE_AUTO, len(o.AllowRules)+len(o.DenyRules) > 0:
		plan.Args = append(plan.Args, "--approval-mode=always-ask")
	}
	return nil
}
