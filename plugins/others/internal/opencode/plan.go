package opencode

import (
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
)

const configVariable = "OPENCODE_CONFIG_CONTENT"

// Plan makes the command line. Values follow their flag in the same word. Prompts
// go to stdin: as an argument the CLI would put them into quotation marks.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	opts := req.GetOptions()
	plan := &pluginapi.Plan{Program: req.GetProgram(), EnvSet: map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1"}}
	switch {
	case len(opts.AllowRules)+len(opts.DenyRules) > 0 && opts.Driver == driverRun:
		return nil, sdk.Cannot(agentID, "rules with the driver run", "use the driver acp, where amux judges each request")
	}
	if !opts.Fork {
		plan.SessionId = opts.Resume
	}
	if err := configure(req, opts, plan); err != nil {
		return nil, err
	}
	if opts.Driver == driverRun {
		return plan, run(opts, plan)
	}
	plan.Args = []string{"acp"}
	plan.Stdin = pb.Stdin_STDIN_OPEN
	return plan, acp.Prepare(agentID, acp.Abilities{Images: true}, req, plan)
}

// configure has the CLI ask, and gives it the system prompt, by settings in its
// environment, which win over its files.
func configure(req *pluginapi.PlanRequest, opts *pluginapi.RunOptions, plan *pluginapi.Plan) error {
	own := req.GetCaller().GetEnv()[configVariable] != "" || opts.Env[configVariable] != ""
	if own {
		if opts.SystemPrompt != "" {
			return sdk.Cannot(agentID, "a system prompt beside "+configVariable, "put it into \"instructions\" there")
		}
		return nil
	}
	config := map[string]any{}
	switch {
	case opts.Driver != driverRun:
		config["permission"] = map[string]string{"bash": "ask", "edit": "ask", "webfetch": "ask"}
	case opts.Approve == pb.Approve_APPROVE_DENY || opts.Approve == pb.Approve_APPROVE_UNKNOWN:
		config["permission"] = map[string]string{"bash": "deny", "edit": "deny", "webfetch": "deny"}
	}
	if opts.SystemPrompt != "" {
		config["instructions"] = []string{sdk.AddFile(req, plan, "system.md", []byte(opts.SystemPrompt))}
	}
	if len(config) == 0 {
		return nil
	}
	data, err := json.Marshal(config)
	plan.EnvSet[configVariable] = string(data)
	return err
}

// run is one prompt, told as lines.
func run(o *pluginapi.RunOptions, plan *pluginapi.Plan) error {
	plan.Args = []string{"run", "--format=json", "--thinking"}
	switch o.Approve {
	case pb.Approve_APPROVE_AUTO:
		plan.Args = append(plan.Args, "--auto")
	case pb.Approve_APPROVE_DENY, pb.Approve_APPROVE_UNKNOWN:
	default:
		return sdk.Cannot(agentID, "asking with the driver run", "use the driver acp, or --approve auto or deny")
	}
	switch {
	case o.Conversation:
		return sdk.Cannot(agentID, "more than one prompt with the driver run", "use the driver acp")
	case len(o.McpServers) > 0:
		return sdk.Cannot(agentID, "MCP servers with the driver run", "use the driver acp, or put them into its settings")
	case len(o.Attachments) > 0:
		return sdk.Cannot(agentID, "attachments with the driver run", "use the driver acp")
	}
	if o.Model != "" {
		plan.Args = append(plan.Args, "--model="+o.Model)
	}
	switch {
	case o.Resume != "":
		plan.Args = append(plan.Args, "--session="+o.Resume)
	case o.ContinueLast:
		plan.Args = append(plan.Args, "--continue")
	}
	if o.Fork {
		plan.Args = append(plan.Args, "--fork")
	}
	plan.Stdin = pb.Stdin_STDIN_PROMPT
	plan.InitialStdin = []byte(o.Prompt)
	return nil
}
