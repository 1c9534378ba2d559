package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/pattern"
)

// An argument longer than this is refused where it cannot go another way: Linux
// takes 128 KiB.
const maxArgument = 96 << 10

// Plan makes the command line. With app-server nearly every option is part of
// the conversation, so that it goes into the state; nothing of the user's is on
// the command line.
func (adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	opts := req.GetOptions()
	p := &planner{req: req, opts: opts, plan: &pluginapi.Plan{Program: req.GetProgram()}}
	p.state.Salt = req.GetRunId() + "/" + req.GetSessionId()
	steps := []func() error{p.surroundings, p.session, p.effort, p.schema, p.mcp, p.attachments, p.appServer}
	if opts.Driver == driverExec {
		steps[len(steps)-1] = p.exec
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	state, err := json.Marshal(&p.state)
	if err != nil {
		return nil, err
	}
	p.plan.State = state
	return p.plan, nil
}

// planState is what Plan hands to the conversation.
type planState struct {
	// Salt makes the ids of this run's prompts its own.
	Salt string `json:"salt"`
	// Thread are the parameters of the thread that is begun, resumed or forked.
	Thread threadParams `json:"thread"`
	// Schema is that of the answer; of every turn.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Input are the attachments, for the first prompt.
	Input []json.RawMessage `json:"input,omitempty"`
}

// threadParams are those of thread/start; resume and fork take the same, but for
// Ephemeral.
type threadParams struct {
	ThreadID              string         `json:"threadId,omitempty"`
	Cwd                   string         `json:"cwd,omitempty"`
	Model                 string         `json:"model,omitempty"`
	Approval              string         `json:"approvalPolicy,omitempty"`
	Reviewer              string         `json:"approvalsReviewer,omitempty"`
	Sandbox               string         `json:"sandbox,omitempty"`
	BaseInstructions      string         `json:"baseInstructions,omitempty"`
	DeveloperInstructions string         `json:"developerInstructions,omitempty"`
	Config                map[string]any `json:"config,omitempty"`
	Ephemeral             bool           `json:"ephemeral,omitempty"`
	ExcludeTurns          bool           `json:"excludeTurns,omitempty"`
}

type planner struct {
	req   *pluginapi.PlanRequest
	opts  *pluginapi.RunOptions
	plan  *pluginapi.Plan
	state planState
}

func (p *planner) surroundings() error {
	if p.opts.MaxBudgetUsd != 0 {
		return sdk.Cannot(agentID, "a budget in money", "it does not say what it costs; limit --max-turns or --timeout")
	}
	if p.opts.SystemPromptMode == "replace" {
		p.state.Thread.BaseInstructions = p.opts.SystemPrompt
	} else {
		p.state.Thread.DeveloperInstructions = p.opts.SystemPrompt
	}
	if len(p.opts.DenyRules) > 0 {
		p.plan.Warnings = append(p.plan.Warnings,
			"codex does not ask before commands that it knows only to read (ls, cat, grep …): no deny rule reaches those")
	}
	p.state.Thread.Model = p.opts.Model
	return nil
}

// threadID is what the CLI calls a UUID.
var threadID = pattern.New(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (p *planner) session() error {
	o := p.opts
	switch {
	case o.NoSession && !o.Fork && (o.Resume != "" || o.ContinueLast):
		return sdk.Cannot(agentID, "going on with a session without writing to it", "fork it, or leave out --no-session")
	case o.Resume != "" && !threadID.MatchString(o.Resume):
		return pluginapi.Errorf(pluginapi.CodeSessionNotFound, "codex has no session %q", o.Resume).
			WithHint("its session ids are UUIDs: amux sessions list codex")
	}
	p.state.Thread.ThreadID = o.Resume
	p.state.Thread.Ephemeral = o.NoSession
	if o.Resume != "" && !o.Fork {
		p.plan.SessionId = o.Resume
	}
	return nil
}

// effort checks the word. Which of the words a model has is known when the CLI
// has told its models.
func (p *planner) effort() error {
	if e := p.opts.Effort; e != "" && !slices.Contains(nativeEfforts, e) {
		return sdk.Cannot(agentID, "effort "+strconv.Quote(e), "it has "+strings.Join(nativeEfforts, ", ")+", by model")
	}
	return nil
}

func (p *planner) schema() error {
	if p.opts.JsonSchema == "" {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(p.opts.JsonSchema), &object); err != nil {
		return pluginapi.Errorf(pluginapi.CodeValidation, "codex: the JSON schema is no JSON object: %v", err)
	}
	schema, err := strictSchema([]byte(p.opts.JsonSchema))
	if err != nil {
		return err
	}
	p.state.Schema = schema
	return nil
}

// strictSchema adds to every object of a schema what the Responses API demands of
// one: additionalProperties false. A schema that says otherwise stays.
func strictSchema(schema []byte) (json.RawMessage, error) {
	decoder := json.NewDecoder(strings.NewReader(string(schema)))
	decoder.UseNumber()
	var root any
	if err := decoder.Decode(&root); err != nil {
		return nil, err
	}
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			_, has := node["additionalProperties"]
			if _, properties := node["properties"].(map[string]any); properties && node["type"] == "object" && !has {
				node["additionalProperties"] = false
			}
			for _, inner := range node {
				walk(inner)
			}
		case []any:
			for _, inner := range node {
				walk(inner)
			}
		}
	}
	walk(root)
	return json.Marshal(root)
}

// environmentName is what the CLI and every shell take.
var environmentName = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// mcpName is what the CLI takes as a server's name.
var mcpName = pattern.New(`^[A-Za-z0-9_-]+$`)

// mcp adds servers to those of the user's configuration. Values of env and
// headers may be secrets: they go into the CLI's environment, the configuration
// names the variables only, and the agent's shell does not get them.
func (p *planner) mcp() error {
	if len(p.opts.McpServers) == 0 {
		return nil
	}
	servers := map[string]any{}
	var secret []string
	keep := func(name, value string) {
		if p.plan.EnvSet == nil {
			p.plan.EnvSet = map[string]string{}
		}
		p.plan.EnvSet[name] = value
		secret = append(secret, name)
	}
	for i, s := range p.opts.McpServers {
		invalid := func(what string) error {
			return pluginapi.Errorf(pluginapi.CodeValidation, "codex: mcp server %q %s", s.Name, what)
		}
		switch _, twice := servers[s.Name]; {
		case s.Name == "":
			return invalid("has no name")
		case !mcpName.MatchString(s.Name):
			return sdk.Cannot(agentID, "an mcp server named "+strconv.Quote(s.Name), "use letters, digits, - and _")
		case twice:
			return invalid("is named twice")
		}
		transport := s.Transport
		if transport == "" {
			transport = "stdio"
			if s.Command == "" && s.Url != "" {
				transport = "http"
			}
		}
		entry := map[string]any{}
		switch transport {
		case "stdio":
			if s.Command == "" {
				return invalid("has no command")
			}
			entry["command"] = s.Command
			if len(s.Args) > 0 {
				entry["args"] = s.Args
			}
			names := sortedKeys(s.Env)
			for _, name := range names {
				switch value, other := p.plan.EnvSet[name]; {
				case !environmentName.MatchString(name):
					return invalid("has a variable " + strconv.Quote(name) + ", which is no name of one")
				case other && value != s.Env[name]:
					return sdk.Cannot(agentID, "two mcp servers with different values of "+name, "configure one of them in codex's own config.toml")
				case !other:
					keep(name, s.Env[name])
				}
			}
			// Of its own environment the CLI gives a server nothing unasked; what the
			// user has added for this run is for it too.
			for _, name := range sortedKeys(p.opts.Env) {
				if !slices.Contains(names, name) && environmentName.MatchString(name) {
					names = append(names, name)
				}
			}
			if len(names) > 0 {
				entry["env_vars"] = names
			}
		case "http":
			if s.Url == "" {
				return invalid("has no url")
			}
			entry["url"] = s.Url
			headers := map[string]string{}
			for n, header := range sortedKeys(s.Headers) {
				name := fmt.Sprintf("AMUX_MCP_%d_%d", i, n)
				keep(name, s.Headers[header])
				headers[header] = name
			}
			if len(headers) > 0 {
				entry["env_http_headers"] = headers
			}
		default:
			return sdk.Cannot(agentID, "mcp transport "+strconv.Quote(s.Transport), "it has stdio and http")
		}
		servers[s.Name] = entry
	}
	p.config()["mcp_servers"] = servers
	if len(secret) > 0 {
		p.config()["shell_environment_policy.exclude"] = secret
	}
	return nil
}

// config are the settings that this run overrides.
func (p *planner) config() map[string]any {
	if p.state.Thread.Config == nil {
		p.state.Thread.Config = map[string]any{}
	}
	return p.state.Thread.Config
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (p *planner) attachments() error {
	input, err := attachmentInput(p.opts.Attachments)
	p.state.Input = input
	return err
}

// appServer is the command of the two-way driver. Whatever the approve mode, what
// the agent asks comes to the host, which judges.
func (p *planner) appServer() error {
	p.plan.Args = []string{"app-server"}
	p.plan.Stdin = pb.Stdin_STDIN_OPEN
	thread := &p.state.Thread
	thread.Cwd = p.req.GetCaller().GetCwd()
	thread.Sandbox, thread.Reviewer = "workspace-write", "user"
	if p.opts.Env[pluginapi.SandboxEnv] != "" {
		thread.Sandbox = "danger-full-access" // that of amux is around it, and none can be made in it
	}
	switch p.opts.Approve {
	case pb.Approve_APPROVE_AUTO:
		// All is granted, so the agent's sandbox alone says what it must ask for; but a
		// deny rule is applied to what is asked.
		thread.Approval = "on-request"
		if len(p.opts.DenyRules) > 0 {
			thread.Approval = "untrusted"
		}
	case pb.Approve_APPROVE_UNKNOWN, pb.Approve_APPROVE_ASK, pb.Approve_APPROVE_DENY, pb.Approve_APPROVE_RULES:
		// Every command is asked for that is not known only to read.
		thread.Approval = "untrusted"
	default:
		return sdk.Cannot(agentID, "approve mode "+p.opts.Approve.String(), "use ask, auto, deny or rules")
	}
	if len(p.opts.AddDirs) > 0 {
		p.config()["sandbox_workspace_write.writable_roots"] = p.opts.AddDirs
	}
	return nil
}
