package acp

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/attachment"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/pattern"
)

// Abilities are those of an agent that a plan must know before it is started.
type Abilities struct {
	Images bool // takes images in prompts
	Audio  bool
}

// Prepare puts MCP servers and attachments into a plan's state and files, and
// refuses what the protocol cannot carry. agent is the name for messages.
//
// The protocol hands over MCP servers on stdin, which is recorded. A server's
// environment therefore goes into a file that a shell reads before it starts the
// server; headers have no such way and are refused.
func Prepare(agent string, can Abilities, req *pluginapi.PlanRequest, plan *pluginapi.Plan) error {
	var state State
	opts := req.GetOptions()
	transports, err := mcp.Check(agent, opts.GetMcpServers())
	if err != nil {
		return err
	}
	for i, s := range opts.GetMcpServers() {
		if transport := transports[i]; transport != mcp.Stdio {
			if len(s.Headers) > 0 {
				return sdk.Cannot(agent, "headers for the MCP server "+strconv.Quote(s.Name), "put them into the agent's own settings")
			}
			state.Servers = append(state.Servers, Server{Type: transport, Name: s.Name, URL: s.Url, Headers: []nameValue{}})
			continue
		}
		server := Server{Name: s.Name, Command: s.Command, Args: append([]string{}, s.Args...), Env: []nameValue{}}
		if len(s.Env) > 0 {
			if err := hideEnv(agent, i, s.Env, req, plan, &server); err != nil {
				return err
			}
		}
		state.Servers = append(state.Servers, server)
	}
	takes := attachment.Kinds(0)
	if can.Images {
		takes = attachment.Images
	}
	if can.Audio {
		takes |= attachment.Audio
	}
	files, err := attachment.Read(agent, takes, opts.GetAttachments())
	if err != nil {
		return err
	}
	for _, f := range files {
		var block any = textBlock(f.Text())
		switch {
		case f.Image():
			block = mediaBlock{"image", f.Type, f.Base64()}
		case f.Audio():
			block = mediaBlock{"audio", f.Type, f.Base64()}
		}
		data, err := json.Marshal(block)
		if err != nil {
			return err
		}
		state.Blocks = append(state.Blocks, data)
	}
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	plan.State = data
	return nil
}

var envName = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// hideEnv has a shell read the server's environment from a file of the run's.
func hideEnv(agent string, n int, env map[string]string, req *pluginapi.PlanRequest, plan *pluginapi.Plan, server *Server) error {
	if req.GetCaller().GetOs() == "windows" {
		return sdk.Cannot(agent, "an environment for the MCP server "+strconv.Quote(server.Name), "put it into the agent's own settings")
	}
	var script strings.Builder
	names := make([]string, 0, len(env))
	for name := range env {
		if !envName.MatchString(name) {
			return pluginapi.Errorf(pluginapi.CodeValidation, "%s: mcp server %q: %q is no name of a variable", agent, server.Name, name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		script.WriteString("export " + name + "='" + strings.ReplaceAll(env[name], "'", `'\''`) + "'\n")
	}
	file := sdk.AddFile(req, plan, "mcp-"+strconv.Itoa(n)+".env", []byte(script.String()))
	server.Args = append([]string{"-c", `. "$0" && exec "$@"`, file, server.Command}, server.Args...)
	server.Command = "/bin/sh"
	return nil
}

// mediaBlock is an image or audio.
type mediaBlock struct {
	Type     string `json:"type"`
	MimeType string `json:"mimeType"`
	Data     string `json:"data"`
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func textBlock(s string) text { return text{"text", s} }
