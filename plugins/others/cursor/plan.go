package cursor

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Plan makes the command line. The prompt goes to stdin.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	o := req.GetOptions()
	if o == nil {
		o = &pluginapi.RunOptions{}
	}
	plan := &pluginapi.Plan{
		Program: req.GetProgram(), Stdin: pb.Stdin_STDIN_PROMPT, InitialStdin: []byte(o.Prompt),
		Args: []string{"-p", "--output-format", "stream-json", "--force"}, SessionId: o.Resume,
	}
	if plan.Program == "" {
		plan.Program = "cursor-agent"
	}
	switch {
	case o.Approve != pb.Approve_APPROVE_AUTO:
		return nil, cannot("approvals: without a terminal it asks for nothing", "add --approve auto to let it act")
	case len(o.AllowRules)+len(o.DenyRules) > 0:
		return nil, cannot("rules", "its permissions are those of its own settings")
	case o.Conversation:
		return nil, cannot("more than one prompt a run", "go on with --resume ID")
	}
	if o.Model != "" {
		plan.Args = append(plan.Args, "--model", o.Model)
	}
	if o.Resume != "" {
		plan.Args = append(plan.Args, "--resume", o.Resume)
	}
	return plan, nil
}

// cannot is the refusal of an option: it names the agent, the option, and what
// can be had instead.
func cannot(option, instead string) error {
	return pluginapi.Errorf(pluginapi.CodeCapability, "cursor cannot do %s", option).WithHint("%s", instead)
}
