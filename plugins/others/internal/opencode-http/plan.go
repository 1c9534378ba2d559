package opencodehttp

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/attachment"
	"github.com/amux-dev/amux/sdk/mcp"
)

// state is what a conversation needs of its plan.
type state struct {
	// Parts are the attachments, for the first prompt.
	Parts []json.RawMessage `json:"parts,omitempty"`
	// Foreign: the server is not ours, so that each request names the directory, and
	// each new session what is asked about.
	Foreign bool `json:"foreign,omitempty"`
}

const configVariable = "OPENCODE_CONFIG_CONTENT"

// Plan makes the command line of amux-bridge. Options go to the server with each
// prompt, but for MCP servers and what it asks about, which are settings.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	o := req.GetOptions()
	env := func(name string) string {
		if value, ok := o.Env[name]; ok {
			return value
		}
		return req.GetCaller().GetEnv()[name]
	}
	plan := &pluginapi.Plan{
		Program: pluginapi.Bridge, Stdin: pb.Stdin_STDIN_OPEN,
		EnvSet: map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1"},
	}
	switch {
	case o.Resume != "" && strings.ContainsAny(o.Resume, "/?#%"):
		return nil, invalid("%q is no session id", o.Resume).WithHint("see: amux sessions list opencode-http")
	}
	if o.Model != "" {
		if _, _, err := splitModel(o.Model); err != nil {
			return nil, err
		}
	}
	if !o.Fork {
		plan.SessionId = o.Resume
	}
	user := env(userVariable)
	if user == "" {
		user = "opencode"
	}
	plan.Args = []string{"--health=/global/health", "--user=" + user, "--password-env=" + passwordVariable}
	var st state
	var err error
	if base := env(urlVariable); base != "" {
		st.Foreign = true
		err = foreign(req, o, base, plan)
	} else {
		err = own(req, o, env, plan)
	}
	if err != nil {
		return nil, err
	}
	if st.Parts, err = parts(o.Attachments); err != nil {
		return nil, err
	}
	plan.State, err = json.Marshal(st)
	return plan, err
}

// own starts a server, with settings that win over its files.
func own(req *pluginapi.PlanRequest, o *pluginapi.RunOptions, env func(string) string, plan *pluginapi.Plan) error {
	program := req.GetProgram()
	if program == "" {
		program = "opencode"
	}
	plan.Args = append(plan.Args, "--events=/event", `--ready=^opencode server listening on (http://127\.0\.0\.1:\d+)`,
		"--", program, "serve", "--hostname=127.0.0.1", "--port=0")
	servers, err := mcpServers(o.McpServers)
	if err != nil {
		return err
	}
	if env(configVariable) != "" {
		if len(servers) > 0 {
			return sdk.Cannot(agentID, "MCP servers beside "+configVariable, "put them into \"mcp\" there")
		}
		return nil
	}
	config := map[string]any{"permission": map[string]string{"bash": "ask", "edit": "ask", "webfetch": "ask"}}
	if len(servers) > 0 {
		config["mcp"] = servers
	}
	data, err := json.Marshal(config)
	plan.EnvSet[configVariable] = string(data)
	return err
}

// foreign asks a server that is not ours.
func foreign(req *pluginapi.PlanRequest, o *pluginapi.RunOptions, base string, plan *pluginapi.Plan) error {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return invalid("%s is not the URL of a server", urlVariable).WithHint("it is like http://127.0.0.1:4096; the password is in %s", passwordVariable)
	}
	switch {
	case len(o.McpServers) > 0:
		return sdk.Cannot(agentID, "MCP servers with "+urlVariable, "put them into that server's settings")
	case (o.Resume != "" || o.ContinueLast) && !o.Fork && o.Approve != pb.Approve_APPROVE_AUTO:
		return sdk.Cannot(agentID, "approvals in a session that a server of "+urlVariable+" has already", "add --fork, or --approve auto, which leaves it to that server's settings")
	}
	plan.Args = append(plan.Args, "--events=/event?directory="+url.QueryEscape(req.GetCaller().GetCwd()), "--url="+base)
	return nil
}

// mcpServers are the settings of MCP servers. They are in the environment, which is
// not recorded, with all their secrets.
func mcpServers(list []*pluginapi.McpServer) (map[string]any, error) {
	transports, err := mcp.Check(agentID, list)
	if err != nil {
		return nil, err
	}
	servers := map[string]any{}
	for i, s := range list {
		if transports[i] == mcp.Stdio {
			server := map[string]any{"type": "local", "command": append([]string{s.Command}, s.Args...), "enabled": true}
			if len(s.Env) > 0 {
				server["environment"] = s.Env
			}
			servers[s.Name] = server
			continue
		}
		server := map[string]any{"type": "remote", "url": s.Url, "enabled": true}
		if len(s.Headers) > 0 {
			server["headers"] = s.Headers
		}
		servers[s.Name] = server
	}
	return servers, nil
}

// part is one of a prompt.
type part struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Mime     string `json:"mime,omitempty"`
	Filename string `json:"filename,omitempty"`
	URL      string `json:"url,omitempty"`
}

func parts(attachments []*pluginapi.Attachment) ([]json.RawMessage, error) {
	files, err := attachment.Read(agentID, attachment.Images, attachments)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	for _, f := range files {
		p := part{Type: "text", Text: f.Text()}
		if f.Image() {
			p = part{Type: "file", Mime: f.Type, Filename: f.Name, URL: "data:" + f.Type + ";base64," + f.Base64()}
		}
		data, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		list = append(list, data)
	}
	return list, nil
}

// splitModel gives the two names of a model.
func splitModel(model string) (provider, name string, err error) {
	provider, name, ok := strings.Cut(model, "/")
	if !ok || provider == "" || name == "" {
		return "", "", invalid("model %q is not named as provider/model", model).WithHint("for example anthropic/claude-haiku-4-5; see: opencode models")
	}
	return provider, name, nil
}

func invalid(format string, args ...any) *pluginapi.Error {
	return pluginapi.Errorf(pluginapi.CodeValidation, agentID+": "+format, args...)
}
