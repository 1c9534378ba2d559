package qwen

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/attachment"
	"github.com/amux-dev/amux/sdk/mcp"
)

// An argument longer than this is refused: Linux takes 128 KiB.
const maxArgument = 96 << 10

// Plan makes the command line. Values follow their flag in the same word: several
// of the CLI's flags take any number of words. Prompts go to stdin.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	opts := req.GetOptions()
	p := &planner{req: req, opts: opts, plan: &pluginapi.Plan{
		Program: req.GetProgram(),
		Args: []string{
			"--input-format=stream-json", "--output-format=stream-json", "--include-partial-messages",
			// Whatever the approve mode, requests come to the host, which judges. Without
			// this the mode is "auto", in which a model judges.
			"--approval-mode=default",
		},
		Stdin: pb.Stdin_STDIN_OPEN,
	}}
	for _, step := range []func() error{p.surroundings, p.session, p.model, p.mcp, p.rules, p.prompt} {
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
	if p.opts.JsonSchema != "" {
		return sdk.Cannot(agentID, "a JSON schema", "its structured output is for runs without a conversation, which cannot ask")
	}
	for _, dir := range p.opts.AddDirs {
		// The CLI splits the value at commas.
		if strings.Contains(dir, ",") {
			return sdk.Cannot(agentID, "the directory "+strconv.Quote(dir), "its name must have no comma")
		}
		p.flag("--add-dir", dir)
	}
	if n := p.opts.MaxTurns; n > 0 {
		p.flag("--max-session-turns", strconv.FormatUint(uint64(n), 10))
	}
	return nil
}

func (p *planner) session() error {
	o := p.opts
	switch {
	case o.Resume != "":
		p.flag("--resume", o.Resume)
	case o.ContinueLast:
		p.plan.Args = append(p.plan.Args, "--continue")
	case p.req.GetSessionId() != "" && p.req.GetAttempt() <= 1:
		// The CLI refuses an id that it has seen.
		p.plan.SessionId = p.req.GetSessionId()
		p.flag("--session-id", p.plan.SessionId)
	}
	switch {
	case o.Fork:
		p.plan.Args = append(p.plan.Args, "--fork-session")
	case o.Resume != "":
		p.plan.SessionId = o.Resume
	}
	if o.NoSession {
		p.plan.Args = append(p.plan.Args, "--chat-recording=false")
	}
	return nil
}

func (p *planner) model() error {
	if p.opts.Model != "" {
		p.flag("--model", p.opts.Model)
	}
	if e := p.opts.Effort; e != "" && !slices.Contains(nativeEfforts, e) {
		return sdk.Cannot(agentID, "effort "+strconv.Quote(e), "it has "+strings.Join(nativeEfforts, ", "))
	}
	text := p.opts.SystemPrompt
	if len(text) > maxArgument {
		return sdk.Cannot(agentID, "a system prompt of more than 96 KiB", "it takes one on its command line only; a QWEN.md in the project may be longer")
	}
	switch {
	case text == "":
	case p.opts.SystemPromptMode == "replace":
		p.flag("--system-prompt", text)
	default:
		p.flag("--append-system-prompt", text)
	}
	return nil
}

// mcpServer is one entry of the CLI's mcpServers.
type mcpServer struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`     // server-sent events
	HTTPURL string            `json:"httpUrl,omitempty"` // streamable HTTP
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
		switch transports[i] {
		case mcp.Stdio:
			servers[s.Name] = mcpServer{Command: s.Command, Args: s.Args, Env: s.Env}
		case mcp.HTTP:
			servers[s.Name] = mcpServer{HTTPURL: s.Url, Headers: s.Headers}
		case mcp.SSE:
			servers[s.Name] = mcpServer{URL: s.Url, Headers: s.Headers}
		}
	}
	content, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return err
	}
	p.flag("--mcp-config", sdk.AddFile(p.req, p.plan, "mcp.json", content))
	return nil
}

func (p *planner) rules() error {
	// The CLI asks about all that it would not do anyway, and the host applies the
	// allow rules: the CLI's own reading of them may allow more.
	for _, rule := range p.opts.DenyRules {
		p.flag("--exclude-tools", rule)
	}
	return nil
}

// planState is what Plan hands to the conversation.
type planState struct {
	// Files are the attachments, as text that goes before the first prompt.
	Files []string `json:"files,omitempty"`
}

// prompt leaves attachments in the plan's state.
func (p *planner) prompt() error {
	files, err := attachment.Read(agentID, 0, p.opts.Attachments)
	if err != nil || len(files) == 0 {
		return err
	}
	var state planState
	for _, f := range files {
		state.Files = append(state.Files, f.Text())
	}
	p.plan.State, err = json.Marshal(state)
	return err
}
