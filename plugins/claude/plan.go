package main

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/mcp"
)

// An argument longer than this goes into a file: Linux takes 128 KiB.
const maxArgument = 96 << 10

// Plan makes the command line. Values follow their flag in the same word
// ("--flag=value"): several of the CLI's flags take any number of words and would
// swallow what comes next. Prompts never appear here; they go to stdin.
func (adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	opts := req.GetOptions()
	p := &planner{req: req, opts: opts, plan: &pluginapi.Plan{
		Program: req.GetProgram(),
		Args: []string{
			"-p", "--output-format=stream-json", "--verbose", "--input-format=stream-json",
			"--include-partial-messages",
			// Whatever the approve mode, requests come to the host, which judges.
			"--permission-prompt-tool=stdio",
		},
		Stdin: pb.Stdin_STDIN_OPEN,
	}}
	for _, step := range []func() error{
		p.surroundings, p.session, p.model, p.systemPrompt, p.mcp, p.limits, p.rules, p.prompt,
	} {
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

func (p *planner) surroundings() error {
	switch p.opts.Approve {
	case pb.Approve_APPROVE_UNKNOWN, pb.Approve_APPROVE_ASK, pb.Approve_APPROVE_AUTO,
		pb.Approve_APPROVE_DENY, pb.Approve_APPROVE_RULES:
	default:
		return sdk.Cannot(agentID, "approve mode "+p.opts.Approve.String(), "use ask, auto, deny or rules")
	}
	// An update in the middle of a run would replace the program under it.
	_, own := p.opts.Env["DISABLE_AUTOUPDATER"]
	if _, set := p.req.GetCaller().GetEnv()["DISABLE_AUTOUPDATER"]; !set && !own {
		p.plan.EnvSet = map[string]string{"DISABLE_AUTOUPDATER": "1"}
	}
	for _, dir := range p.opts.AddDirs {
		p.flag("--add-dir", dir)
	}
	return nil
}

func (p *planner) session() error {
	o := p.opts
	switch {
	case o.Resume != "":
		p.flag("--resume", o.Resume)
		p.plan.SessionId = o.Resume
	case o.ContinueLast:
		p.plan.Args = append(p.plan.Args, "--continue")
	}
	if o.Fork {
		p.plan.Args = append(p.plan.Args, "--fork-session")
	}
	// The CLI takes an id for a session that it begins, not for one it goes on
	// with.
	if o.Fork || o.Resume == "" && !o.ContinueLast {
		p.plan.SessionId = p.newSessionID()
		if p.plan.SessionId != "" {
			p.flag("--session-id", p.plan.SessionId)
		}
	}
	if o.NoSession {
		p.plan.Args = append(p.plan.Args, "--no-session-persistence")
	}
	return nil
}

// newSessionID is the host's fresh id. The CLI refuses an id twice, so that a
// further attempt has one of its own.
func (p *planner) newSessionID() string {
	id := p.req.GetSessionId()
	if id != "" && p.req.GetAttempt() > 1 {
		return sdk.UUID(id, "attempt", strconv.Itoa(int(p.req.GetAttempt())))
	}
	return id
}

func (p *planner) model() error {
	if p.opts.Model != "" {
		p.flag("--model", p.opts.Model)
	}
	if e := p.opts.Effort; e != "" {
		if !slices.Contains(nativeEfforts, e) {
			return sdk.Cannot(agentID, "effort "+strconv.Quote(e), "it has "+strings.Join(nativeEfforts, ", "))
		}
		p.flag("--effort", e)
	}
	return nil
}

func (p *planner) systemPrompt() error {
	text := p.opts.SystemPrompt
	flag := "--append-system-prompt"
	if p.opts.SystemPromptMode == "replace" {
		flag = "--system-prompt"
	}
	if text == "" {
		return nil
	}
	if len(text) <= maxArgument {
		p.flag(flag, text)
		return nil
	}
	p.flag(flag+"-file", sdk.AddFile(p.req, p.plan, "system-prompt.txt", []byte(text)))
	return nil
}

// mcpServer is one entry of the CLI's mcpServers.
type mcpServer struct {
	Type    string            `json:"type"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// mcp puts the servers into a file of their own, because env and headers hold
// secrets.
func (p *planner) mcp() error {
	if len(p.opts.McpServers) == 0 {
		return nil
	}
	transports, err := mcp.Check(agentID, p.opts.McpServers)
	if err != nil {
		return err
	}
	servers := make(map[string]mcpServer, len(p.opts.McpServers))
	for i, s := range p.opts.McpServers {
		entry := mcpServer{Type: transports[i]}
		if entry.Type == mcp.Stdio {
			entry.Command, entry.Args, entry.Env = s.Command, s.Args, s.Env
		} else {
			entry.URL, entry.Headers = s.Url, s.Headers
		}
		servers[s.Name] = entry
	}
	content, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return err
	}
	p.flag("--mcp-config", sdk.AddFile(p.req, p.plan, "mcp.json", content))
	p.plan.Args = append(p.plan.Args, "--strict-mcp-config")
	return nil
}

func (p *planner) limits() error {
	if schema := p.opts.JsonSchema; schema != "" {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(schema), &object); err != nil {
			return pluginapi.Errorf(pluginapi.CodeValidation, "claude: the JSON schema is no JSON object: %v", err)
		}
		if len(schema) > maxArgument {
			return sdk.Cannot(agentID, "a JSON schema of more than 96 KiB", "it takes schemas on its command line only")
		}
		p.flag("--json-schema", schema)
	}
	if n := p.opts.MaxTurns; n > 0 {
		p.flag("--max-turns", strconv.FormatUint(uint64(n), 10))
	}
	switch usd := p.opts.MaxBudgetUsd; {
	case usd > 0 && usd < 1e12:
		p.flag("--max-budget-usd", strconv.FormatFloat(usd, 'f', -1, 64))
	case usd != 0:
		return pluginapi.Errorf(pluginapi.CodeValidation, "claude: %v is no budget", usd)
	}
	return nil
}

func (p *planner) rules() error {
	// The CLI asks about all that it would not do anyway, and the host applies the
	// allow rules: the CLI's own reading of them may allow more.
	for _, rule := range p.opts.DenyRules {
		p.flag("--disallowedTools", rule)
	}
	return nil
}

// prompt leaves in the plan's state what the conversation needs for its prompts.
func (p *planner) prompt() error {
	blocks, err := attachmentBlocks(p.opts.Attachments)
	if err != nil {
		return err
	}
	state, err := json.Marshal(planState{
		Salt:   p.req.GetRunId() + "/" + p.req.GetSessionId(),
		Blocks: blocks,
	})
	if err != nil {
		return err
	}
	p.plan.State = state
	return nil
}
