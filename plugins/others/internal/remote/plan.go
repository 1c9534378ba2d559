package remote

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/pattern"
)

var agentRule = pattern.New(`^[a-z][a-z0-9-]{0,39}$`)

type planner struct {
	req  *pluginapi.PlanRequest
	opts *pluginapi.RunOptions
	plan *pluginapi.Plan
	// elsewhere: the command is the user's own, so nothing of here may be there.
	elsewhere bool
	words     []string // of amux
}

func (p *planner) flag(name, value string) { p.words = append(p.words, name+"="+value) }

// Plan makes the command line. Prompts go to stdin.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	p := &planner{req: req, opts: req.GetOptions(), elsewhere: req.GetLaunch() != nil}
	p.plan = &pluginapi.Plan{Program: req.GetProgram(), Stdin: pb.Stdin_STDIN_OPEN, EnvUnset: []string{agentEnv}}
	if p.elsewhere {
		argv := req.Launch.Argv
		if len(argv) == 0 {
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: its command is no list", agentID).
				WithHint(`write it in config.toml as command = ["ssh", "-T", "HOST", "amux"]`)
		}
		p.plan.Program, p.plan.Args = argv[0], slices.Clone(argv[1:])
	}
	agent := req.GetCaller().GetEnv()[agentEnv]
	if agent == "" {
		agent = defaultAgent
	}
	if !agentRule.MatchString(agent) {
		return nil, pluginapi.Errorf(pluginapi.CodeValidation, "%s: %s=%s is no name of an agent", agentID, agentEnv, strconv.Quote(agent))
	}
	// The limits of time are this run's, and no other ends before it.
	p.words = []string{"run", "--json", "--input=ndjson", "--monitor-stdin", "--idle-timeout=0s"}
	p.approve()
	for _, step := range []func() error{p.session, p.model, p.tools, p.files} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	p.words = append(p.words, agent)
	if !p.opts.Conversation {
		p.words = append(p.words, "-")
	}
	if p.elsewhere && throughShell(p.plan.Program) {
		for i, word := range p.words {
			p.words[i] = quote(word)
		}
	}
	p.plan.Args = append(p.plan.Args, p.words...)
	return p.plan, nil
}

// approve has the other amux ask, and this one judge; also by rules. One whose
// answer is known does not wait for it, and agents that cannot ask need to know.
func (p *planner) approve() {
	mode := "ask"
	if granted(p.opts) {
		mode = "auto"
	}
	p.flag("--approve", mode)
}

func granted(o *pluginapi.RunOptions) bool {
	return o.GetApprove() == pb.Approve_APPROVE_AUTO && len(o.GetDenyRules()) == 0
}

func (p *planner) session() error {
	o := p.opts
	switch {
	case o.Resume != "":
		p.flag("--resume", o.Resume)
	case o.ContinueLast:
		p.words = append(p.words, "--continue")
	}
	if o.Fork {
		p.words = append(p.words, "--fork")
	}
	if o.NoSession {
		p.words = append(p.words, "--no-session")
	}
	return nil
}

func (p *planner) model() error {
	o := p.opts
	for _, option := range []struct{ flag, value string }{
		{"--model", o.Model}, {"--effort", o.Effort}, {"--system", o.SystemPrompt}, {"--json-schema", o.JsonSchema},
	} {
		if option.value != "" {
			p.flag(option.flag, option.value)
		}
	}
	if o.SystemPrompt != "" && o.SystemPromptMode != "" {
		p.flag("--system-mode", o.SystemPromptMode)
	}
	if o.MaxTurns > 0 {
		p.flag("--max-turns", strconv.FormatUint(uint64(o.MaxTurns), 10))
	}
	if o.MaxBudgetUsd > 0 {
		p.flag("--max-budget", strconv.FormatFloat(o.MaxBudgetUsd, 'g', -1, 64))
	}
	return nil
}

// server is one MCP server in the file that agents share.
type server struct {
	Type    string            `json:"type"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

func (p *planner) tools() error {
	list := p.opts.McpServers
	if len(list) == 0 {
		return nil
	}
	if p.elsewhere {
		return sdk.Cannot(agentID, "MCP servers with a command of your own", "name them in the settings of the agent there")
	}
	transports, err := mcp.Check(agentID, list)
	if err != nil {
		return err
	}
	servers := map[string]server{}
	for i, s := range list {
		servers[s.Name] = server{transports[i], s.Command, s.Args, s.Env, s.Url, s.Headers}
	}
	content, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeInternal, "%s: mcp servers: %w", agentID, err)
	}
	p.flag("--mcp", sdk.AddFile(p.req, p.plan, "mcp.json", content))
	return nil
}

func (p *planner) files() error {
	for _, dir := range p.opts.AddDirs {
		p.flag("--add-dir", dir)
	}
	for _, a := range p.opts.Attachments {
		if p.elsewhere {
			return sdk.Cannot(agentID, "files with a command of your own", "name a file that is there in the prompt")
		}
		p.flag("--file", a.Path)
	}
	if p.elsewhere {
		for _, name := range slices.Sorted(maps.Keys(p.opts.Env)) {
			if name != agentEnv {
				return sdk.Cannot(agentID, "the variable "+name+" with a command of your own", "set it there")
			}
		}
	}
	return nil
}

// throughShell reports whether a program hands its words to a shell elsewhere, as one
// line.
func throughShell(program string) bool {
	name := program[strings.LastIndexAny(program, `/\`)+1:]
	return strings.TrimSuffix(name, ".exe") == "ssh"
}

var plainWord = pattern.New(`^[a-zA-Z0-9_@%+=:,./-]+$`)

// quote makes one word of a POSIX shell.
func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
