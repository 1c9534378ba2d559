package cursor

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
)

// Plan makes the command line. The prompt goes to stdin.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	o := req.GetOptions()
	plan := &pluginapi.Plan{Program: req.GetProgram(), SessionId: o.Resume}
	if byACP(o) {
		if o.Model != "" {
			plan.Args = append(plan.Args, "--model", o.Model)
		}
		plan.Args = append(plan.Args, "acp")
		plan.Stdin = pb.Stdin_STDIN_OPEN
		return plan, acp.Prepare(agentID, acp.Abilities{Images: true}, req, plan)
	}
	switch {
	case o.Approve != pb.Approve_APPROVE_AUTO:
		return nil, sdk.Cannot(agentID, "approvals by stream-json: it asks for nothing", "leave --driver out, or add --approve auto to let it act")
	case len(o.AllowRules)+len(o.DenyRules) > 0:
		return nil, sdk.Cannot(agentID, "rules by stream-json", "leave --driver out")
	case o.Conversation:
		return nil, sdk.Cannot(agentID, "more than one prompt a run by stream-json", "leave --driver out, or go on with --resume ID")
	}
	plan.Stdin, plan.InitialStdin = pb.Stdin_STDIN_PROMPT, []byte(o.Prompt)
	plan.Args = []string{"-p", "--output-format", "stream-json", "--stream-partial-output", "--force"}
	if o.Model != "" {
		plan.Args = append(plan.Args, "--model", o.Model)
	}
	switch {
	case o.Resume != "":
		plan.Args = append(plan.Args, "--resume", o.Resume)
	case o.ContinueLast:
		plan.Args = append(plan.Args, "--continue")
	}
	return plan, nil
}

// byACP reports whether a run needs what the lines have not: questions, more prompts,
// servers, images.
func byACP(o *pluginapi.RunOptions) bool {
	switch o.GetDriver() {
	case driverACP:
		return true
	case driverStream:
		return false
	}
	return o.GetApprove() != pb.Approve_APPROVE_AUTO || o.GetConversation() ||
		len(o.GetAttachments())+len(o.GetMcpServers())+len(o.GetAllowRules())+len(o.GetDenyRules()) > 0
}
