package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
	"github.com/amux-dev/amux/sdk/attachment"
)

// Plan makes the command line. Values follow their flag in the same word. Prompts
// go to stdin.
func (adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	o := req.GetOptions()
	plan := &pluginapi.Plan{Program: req.GetProgram()}
	switch {
	}
	if !o.Fork {
		plan.SessionId = o.Resume
	}
	if err := systemPrompt(req, o, plan); err != nil {
		return nil, err
	}
	if !byACP(o) {
		return plan, stream(req, o, plan)
	}
	if o.Effort != "" {
		return nil, sdk.Cannot(agentID, "an effort by the Agent Client Protocol", "use --driver stream-json --approve auto, or set agent.reasoning_effort in its config.yaml")
	}
	if o.MaxTurns > 0 {
		return nil, sdk.Cannot(agentID, "a limit of requests by the Agent Client Protocol", "use --driver stream-json --approve auto, or set agent.max_turns in its config.yaml")
	}
	plan.Args = []string{"acp"}
	plan.Stdin = pb.Stdin_STDIN_OPEN
	return plan, acp.Prepare(agentID, acp.Abilities{Images: true}, req, plan)
}

// byACP reports whether a run needs what the lines have not: questions, more prompts,
// a fork, servers, images.
func byACP(o *pluginapi.RunOptions) bool {
	switch o.GetDriver() {
	case driverACP:
		return true
	case driverStream:
		return false
	}
	images := slices.ContainsFunc(o.GetAttachments(), func(a *pluginapi.Attachment) bool { return strings.HasPrefix(a.GetMimeType(), "image/") })
	return o.GetApprove() != pb.Approve_APPROVE_AUTO || o.GetConversation() || o.GetFork() || images ||
		len(o.GetMcpServers())+len(o.GetAllowRules())+len(o.GetDenyRules()) > 0
}

// maxVariable is less than the 128 KiB that Linux has for a variable.
const maxVariable = 96 << 10

// systemPrompt has the CLI take an addition out of its environment, behind one that the
// user has there. By ACP it is read when a session begins, and kept with it.
func systemPrompt(req *pluginapi.PlanRequest, o *pluginapi.RunOptions, plan *pluginapi.Plan) error {
	text, name := o.SystemPrompt, "HERMES_EPHEMERAL_SYSTEM_PROMPT"
	switch {
	case text == "":
		return nil
	case o.SystemPromptMode != "" && o.SystemPromptMode != "append":
		return sdk.Cannot(agentID, "system prompt mode "+strconv.Quote(o.SystemPromptMode), "it can append to its own system prompt")
	case byACP(o) && (o.Resume != "" || o.ContinueLast):
		return sdk.Cannot(agentID, "an addition to the system prompt of a session that goes on by the Agent Client Protocol", "use --driver stream-json --approve auto, or say it in the prompt")
	case byACP(o):
		name = "HERMES_ENVIRONMENT_HINT"
	}
	own, ok := o.Env[name]
	if !ok {
		own = req.GetCaller().GetEnv()[name]
	}
	if own != "" {
		text = own + "\n\n" + text
	}
	if len(text) > maxVariable {
		return sdk.Cannot(agentID, "a system prompt of more than 96 KiB", "it takes one as a variable only; an AGENTS.md in the project may be longer")
	}
	plan.EnvSet = map[string]string{name: text}
	return nil
}

// stream is one prompt, told as lines.
func stream(req *pluginapi.PlanRequest, o *pluginapi.RunOptions, plan *pluginapi.Plan) error {
	switch {
	case o.Approve != pb.Approve_APPROVE_AUTO:
		return sdk.Cannot(agentID, "approvals with the driver stream-json", "use the driver acp, or --approve auto")
	case len(o.AllowRules)+len(o.DenyRules) > 0:
		return sdk.Cannot(agentID, "rules with the driver stream-json", "use the driver acp, where amux judges each request")
	case o.Conversation:
		return sdk.Cannot(agentID, "more than one prompt with the driver stream-json", "use the driver acp")
	case o.Fork:
		return sdk.Cannot(agentID, "a fork with the driver stream-json", "use the driver acp")
	case len(o.McpServers) > 0:
		return sdk.Cannot(agentID, "MCP servers with the driver stream-json", "use the driver acp, or put them into its config.yaml")
	}
	files, err := attachment.Read(agentID, 0, o.Attachments)
	if err != nil {
		return err
	}
	var prompt strings.Builder
	for _, f := range files {
		prompt.WriteString(f.Text() + "\n\n")
	}
	prompt.WriteString(o.Prompt)
	plan.Stdin, plan.InitialStdin = pb.Stdin_STDIN_PROMPT, []byte(prompt.String())
	plan.Args = []string{"chat", "--query-file=-", "--format=stream-json", "--yolo"}
	flag := func(name, value string) { plan.Args = append(plan.Args, name+"="+value) }
	if o.Model != "" {
		flag("--model", o.Model)
	}
	if e := o.Effort; e != "" {
		if !slices.Contains(nativeEfforts, e) {
			return sdk.Cannot(agentID, "effort "+strconv.Quote(e), "it has "+strings.Join(nativeEfforts, ", "))
		}
		flag("--reasoning", e)
	}
	if o.MaxTurns > 0 {
		flag("--max-turns", strconv.FormatInt(int64(o.MaxTurns), 10))
	}
	session := o.Resume
	if o.ContinueLast {
		session = "latest"
		flag("--in", req.GetCaller().GetCwd())
	}
	if session != "" {
		flag("--resume", session)
		plan.Args = append(plan.Args, "--no-restore-cwd")
	}
	return nil
}
