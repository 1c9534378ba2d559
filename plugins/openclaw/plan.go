package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/authprobe"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
	"github.com/amux-dev/amux/sdk/attachment"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/pattern"
)

// maxPrompt is the longest message that the CLI reads.
const maxPrompt = 4 << 20

// sessionIDRule is what --session-id is given.
var sessionIDRule = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// Plan makes the command line. Values follow their flag in the same word. Prompts
// go to stdin.
func (adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	opts := req.GetOptions()
	p := &planner{req: req, opts: opts, plan: &pluginapi.Plan{
		Program: req.GetProgram(),
		EnvSet:  map[string]string{"OPENCLAW_NO_AUTO_UPDATE": "1", "OPENCLAW_HIDE_BANNER": "1", "OPENCLAW_SUPPRESS_NOTES": "1"},
	}}
	p.compileCache()
	step := p.once
	switch {
	case opts.Pty:
		step = p.screen
	case opts.Driver == driverACP:
		step = p.gateway
	}
	if err := step(); err != nil {
		return nil, err
	}
	return p.plan, nil
}

type planner struct {
	req  *pluginapi.PlanRequest
	opts *pluginapi.RunOptions
	plan *pluginapi.Plan
}

func (p *planner) flag(name, value string) { p.plan.Args = append(p.plan.Args, name+"="+value) }

// variable is one of the run's environment.
func (p *planner) variable(name string) string {
	if value := p.opts.GetEnv()[name]; value != "" {
		return value
	}
	return p.req.GetCaller().GetEnv()[name]
}

// compileCache keeps what Node.js has compiled where it is without amux. The CLI
// looks for it in TMPDIR, which is the run's own and empty: starting takes twice as
// long then.
func (p *planner) compileCache() {
	if p.variable("NODE_COMPILE_CACHE") != "" || p.req.GetCaller().GetOs() == "windows" {
		return
	}
	dir := p.variable("TMPDIR")
	if dir == "" {
		dir = "/tmp"
	}
	p.plan.EnvSet["NODE_COMPILE_CACHE"] = filepath.Join(dir, "node-compile-cache")
}

// sessions reports whether the run needs a session that stays.
func (p *planner) sessions() bool {
	return p.opts.Driver == driverLocal || p.opts.Driver != driverExec && p.opts.Resume != ""
}

// once is one prompt, told as one document.
func (p *planner) once() error {
	o := p.opts
	switch {
	case o.Approve != pb.Approve_APPROVE_AUTO:
		return sdk.Cannot(agentID, "approvals without a gateway: it asks for nothing before it acts", "add --approve auto to let it act, or --driver acp with a gateway that runs")
	case len(o.AllowRules)+len(o.DenyRules) > 0:
		return sdk.Cannot(agentID, "rules without a gateway", "its permissions are those of its own settings; or use --driver acp with a gateway that runs")
	case o.Conversation:
		return sdk.Cannot(agentID, "more than one prompt without a gateway", "go on with --driver local and --resume ID, or use --driver acp with a gateway that runs")
	case o.Resume != "" && !p.sessions():
		return sdk.Cannot(agentID, "a session with the driver exec", "use --driver local")
	case o.NoSession && p.sessions():
		return sdk.Cannot(agentID, "a run without a session with the driver local", "use --driver exec")
	}
	prompt, err := p.prompt()
	if err != nil {
		return err
	}
	p.plan.Stdin, p.plan.InitialStdin = pb.Stdin_STDIN_PROMPT, prompt
	if p.sessions() {
		err = p.local()
	} else {
		err = p.exec()
	}
	if err != nil {
		return err
	}
	p.plan.Args = append(p.plan.Args, "--json")
	// It would end a run of more than ten minutes by itself: amux has its own limits.
	p.flag("--timeout", "0")
	if o.Model != "" {
		p.flag("--model", o.Model)
	}
	return p.effort()
}

func (p *planner) effort() error {
	e := p.opts.Effort
	if e == "" {
		return nil
	}
	if !slices.Contains(nativeEfforts, e) {
		return sdk.Cannot(agentID, "effort "+strconv.Quote(e), "it has "+strings.Join(nativeEfforts, ", "))
	}
	p.flag("--thinking", e)
	return nil
}

// exec keeps nothing.
func (p *planner) exec() error {
	p.plan.Args = append(p.plan.Args, "agent", "exec", "--message-file=-")
	if len(p.opts.McpServers) == 0 {
		return nil
	}
	file, err := p.settings(map[string]any{})
	p.flag("--config", file)
	return err
}

// local has a session. Its folder is that of the settings, and files of a new
// assistant would be made there, so that settings of the run's own stand before them.
func (p *planner) local() error {
	if p.req.GetCaller().GetOs() == "windows" {
		return sdk.Cannot(agentID, "the driver local on Windows: it cannot be given a prompt there", "use --driver exec")
	}
	id := p.opts.Resume
	if id == "" {
		id = p.req.GetSessionId()
	} else if !sessionIDRule.MatchString(id) {
		return pluginapi.Errorf(pluginapi.CodeSessionNotFound, "openclaw has no session %q", id).
			WithHint("see: amux sessions list openclaw")
	}
	p.plan.SessionId = id
	p.plan.Args = append(p.plan.Args, "agent", "--local", "--agent=main", "--message-file=/dev/stdin")
	p.flag("--session-id", id)
	cwd := p.req.GetCaller().GetCwd()
	file, err := p.settings(map[string]any{"defaults": map[string]any{"workspace": cwd, "skipBootstrap": true}})
	p.plan.EnvSet["OPENCLAW_CONFIG_PATH"] = file
	return err
}

// settings writes settings that stand before the user's: MCP servers, and agents.
func (p *planner) settings(agents map[string]any) (file string, err error) {
	config := map[string]any{}
	if len(agents) > 0 {
		config["agents"] = agents
	}
	if own := p.ownSettings(); own != "" {
		config["$include"] = own
		p.plan.EnvSet["OPENCLAW_INCLUDE_ROOTS"] = filepath.Dir(own)
	}
	transports, err := mcp.Check(agentID, p.opts.McpServers)
	if err != nil {
		return "", err
	}
	servers := map[string]any{}
	for i, s := range p.opts.McpServers {
		switch transports[i] {
		case mcp.Stdio:
			args := []string{}
			for _, arg := range s.Args {
				args = append(args, literal(arg))
			}
			servers[s.Name] = map[string]any{"command": literal(s.Command), "args": args, "env": p.environment(s.Env)}
		case mcp.SSE:
			servers[s.Name] = map[string]any{"url": literal(s.Url), "transport": "sse", "headers": literals(s.Headers)}
		default:
			servers[s.Name] = map[string]any{"url": literal(s.Url), "transport": "streamable-http", "headers": literals(s.Headers)}
		}
	}
	if len(servers) > 0 {
		config["mcp"] = map[string]any{"servers": servers}
	}
	data, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	return sdk.AddFile(p.req, p.plan, "openclaw.json", data), nil
}

// environment is that of a server: its own, and by their names the variables that
// the run was given, which the CLI does not pass on.
func (p *planner) environment(own map[string]string) map[string]string {
	env := map[string]string{}
	for name := range p.opts.GetEnv() {
		env[name] = "${" + name + "}"
	}
	maps.Copy(env, literals(own))
	return env
}

// literal keeps the CLI from putting variables into a text.
func literal(text string) string { return strings.ReplaceAll(text, "${", "$${") }

func literals(m map[string]string) map[string]string {
	all := map[string]string{}
	for key, text := range m {
		all[key] = literal(text)
	}
	return all
}

// ownSettings is the user's file, if there is one.
func (p *planner) ownSettings() string {
	file := p.variable("OPENCLAW_CONFIG_PATH")
	if file == "" {
		if dir := p.variable("OPENCLAW_STATE_DIR"); dir != "" {
			file = filepath.Join(dir, "openclaw.json")
		} else {
			file = "~/.openclaw/openclaw.json"
		}
	}
	file, ok := authprobe.Expand(file, p.req.GetCaller())
	if !ok {
		return ""
	}
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// prompt is the text for stdin, with attached files before it.
func (p *planner) prompt() ([]byte, error) {
	files, err := attachment.Read(agentID, 0, p.opts.GetAttachments())
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for _, f := range files {
		text.WriteString(f.Text() + "\n\n")
	}
	text.WriteString(p.opts.Prompt)
	if text.Len() > maxPrompt {
		return nil, sdk.Cannot(agentID, "a prompt of more than 4 MiB", "put it into a file and name that in the prompt")
	}
	return []byte(text.String()), nil
}

// gateway speaks to one that the user runs.
func (p *planner) gateway() error {
	switch {
	case p.opts.Model != "":
		return sdk.Cannot(agentID, "a model with the driver acp", "the gateway has its own: `openclaw models set`")
	case len(p.opts.McpServers) > 0:
		return sdk.Cannot(agentID, "MCP servers with the driver acp", "put them into the gateway's settings: `openclaw mcp set`")
	case p.opts.NoSession:
		return sdk.Cannot(agentID, "a run without a session with the driver acp", "use the driver exec")
	}
	p.plan.Args = append(p.plan.Args, "acp")
	url, token := p.variable("AMUX_OPENCLAW_URL"), p.variable("AMUX_OPENCLAW_TOKEN_FILE")
	switch {
	case url == "" && token != "":
		return pluginapi.Errorf(pluginapi.CodeConfig, "openclaw: AMUX_OPENCLAW_TOKEN_FILE is set without AMUX_OPENCLAW_URL").
			WithHint("set both, or neither to use the gateway of OpenClaw's own settings")
	case url != "" && !strings.HasPrefix(url, "ws://") && !strings.HasPrefix(url, "wss://"):
		return pluginapi.Errorf(pluginapi.CodeConfig, "openclaw: AMUX_OPENCLAW_URL is no address of a gateway: %s", url).
			WithHint("it begins with ws:// or wss://, as in ws://127.0.0.1:18789")
	case url != "" && token == "":
		return pluginapi.Errorf(pluginapi.CodeConfig, "openclaw: AMUX_OPENCLAW_URL is set without AMUX_OPENCLAW_TOKEN_FILE").
			WithHint("name a file that has the gateway's token")
	case url != "":
		if info, err := os.Stat(token); err != nil || !info.Mode().IsRegular() {
			return pluginapi.Errorf(pluginapi.CodeConfig, "openclaw: AMUX_OPENCLAW_TOKEN_FILE names no file: %s", token).
				WithHint("give the absolute path of a file that has the gateway's token")
		}
		p.flag("--url", url)
		p.flag("--token-file", token)
	}
	p.plan.Stdin = pb.Stdin_STDIN_OPEN
	p.plan.SessionId = p.opts.Resume
	return acp.Prepare(agentID, acp.Abilities{Images: true}, p.req, p.plan)
}

// screen is OpenClaw's own, for people.
func (p *planner) screen() error {
	o := p.opts
	switch {
	case o.Driver != "" && o.Driver != driverAuto:
		return sdk.Cannot(agentID, "a terminal with the driver "+o.Driver, "leave out --driver or --pty")
	case o.Approve != pb.Approve_APPROVE_AUTO && o.Approve != pb.Approve_APPROVE_UNKNOWN && o.Approve != pb.Approve_APPROVE_DENY:
		return sdk.Cannot(agentID, "approvals through amux on its own screen", "add --approve auto, and answer on the screen")
	case o.Model != "" || o.NoSession || o.Resume != "" || len(o.McpServers)+len(o.Attachments)+len(o.AllowRules)+len(o.DenyRules) > 0:
		return sdk.Cannot(agentID, "more than a prompt and an effort on its own screen", "choose the rest on the screen: /model, /session")
	}
	p.plan.Pty = true
	p.plan.Stdin = pb.Stdin_STDIN_OPEN
	p.plan.Args = append(p.plan.Args, "tui", "--local")
	return p.effort()
}
