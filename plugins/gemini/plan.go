package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
)

// Plan makes the command line. Values follow their flag in the same word. Prompts
// go to stdin.
func (adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	opts := req.GetOptions()
	p := &planner{req: req, opts: opts, plan: &pluginapi.Plan{
		Program: req.GetProgram(),
		EnvSet: map[string]string{
			// The launcher starts itself again as a child and loses signals; with this
			// it is the agent.
			"GEMINI_CLI_NO_RELAUNCH": "true",
			// In a folder that is not trusted the CLI refuses to run headless.
			"GEMINI_CLI_TRUST_WORKSPACE": "true",
		},
	}}
	driver := p.acp
	if opts.Driver == driverStream {
		driver = p.stream
	}
	for _, step := range []func() error{p.common, driver} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p.plan, nil
}

type planner struct {
	req  *pluginapi.PlanRequest
	opts *pluginapi.RunOptions
	plan *pluginapi.Plan
}

func (p *planner) flag(name, value string) { p.plan.Args = append(p.plan.Args, name+"="+value) }

// common is what both drivers have.
func (p *planner) common() error {
	if p.opts.Model != "" {
		p.flag("--model", p.opts.Model)
	}
	if p.opts.Effort != "" {
		return sdk.Cannot(agentID, "an effort", "its thinking is set by modelConfigs in its settings only")
	}
	for _, dir := range p.opts.AddDirs {
		// The CLI splits the value at commas.
		if strings.Contains(dir, ",") {
			return sdk.Cannot(agentID, "the directory "+strconv.Quote(dir), "its name must have no comma")
		}
		p.flag("--include-directories", dir)
	}
	if len(p.opts.AllowRules)+len(p.opts.DenyRules) > 0 && p.opts.Driver == driverStream {
		return sdk.Cannot(agentID, "rules with the driver stream-json", "use the driver acp, where amux judges each request")
	}
	if p.opts.SystemPrompt != "" {
		p.plan.EnvSet["GEMINI_SYSTEM_MD"] = sdk.AddFile(p.req, p.plan, "system.md", []byte(p.opts.SystemPrompt))
	}
	return nil
}

func (p *planner) acp() error {
	// Requests come to the host, which judges.
	p.plan.Args = append(p.plan.Args, "--acp", "--approval-mode=default")
	p.plan.Stdin = pb.Stdin_STDIN_OPEN
	p.plan.SessionId = p.opts.Resume
	return acp.Prepare(agentID, acp.Abilities{Images: true, Audio: true}, p.req, p.plan)
}

// stream is one prompt, told as lines.
func (p *planner) stream() error {
	o := p.opts
	mode := "yolo"
	switch o.Approve {
	case pb.Approve_APPROVE_AUTO:
	case pb.Approve_APPROVE_DENY, pb.Approve_APPROVE_UNKNOWN:
		mode = "default" // it refuses what it would ask about
	default:
		return sdk.Cannot(agentID, "asking with the driver stream-json", "use the driver acp, or --approve auto or deny")
	}
	switch {
	case o.Conversation:
		return sdk.Cannot(agentID, "more than one prompt with the driver stream-json", "use the driver acp")
	case len(o.McpServers) > 0:
		return sdk.Cannot(agentID, "MCP servers with the driver stream-json", "use the driver acp, or put them into its settings")
	case len(o.Attachments) > 0:
		return sdk.Cannot(agentID, "attachments with the driver stream-json", "use the driver acp")
	}
	p.plan.Args = append(p.plan.Args, "--output-format=stream-json", "--skip-trust", "--approval-mode="+mode)
	switch {
	case o.Resume != "":
		p.flag("--resume", o.Resume)
		p.plan.SessionId = o.Resume
	case p.req.GetSessionId() != "" && p.req.GetAttempt() <= 1:
		p.flag("--session-id", p.req.GetSessionId())
		p.plan.SessionId = p.req.GetSessionId()
	}
	p.plan.Stdin = pb.Stdin_STDIN_PROMPT
	p.plan.InitialStdin = []byte(o.Prompt)
	return nil
}
