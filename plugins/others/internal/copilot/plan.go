package copilot

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
	"github.com/amux-dev/amux/sdk/mcp"
)

const (
	usageFile = "usage.json"
	// The CLI takes a file whose name ends so for instructions, wherever it is.
	systemFile          = "amux.instructions.md"
	instructionsDirsEnv = "COPILOT_CUSTOM_INSTRUCTIONS_DIRS"
)

// Plan makes the command line. Values follow their flag in the same word. Prompts
// go to stdin.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	opts := req.GetOptions()
	plan := &pluginapi.Plan{
		Program: req.GetProgram(), Args: []string{"--no-auto-update"},
		EnvSet: map[string]string{"COPILOT_AUTO_UPDATE": "false"},
	}
	if opts.Model != "" {
		plan.Args = append(plan.Args, "--model="+opts.Model)
	}
	if e := opts.Effort; e != "" {
		if !slices.Contains(nativeEfforts, e) {
			return nil, sdk.Cannot(agentID, "effort "+strconv.Quote(e), "it has "+strings.Join(nativeEfforts, ", "))
		}
		plan.Args = append(plan.Args, "--reasoning-effort="+e)
	}
	for _, step := range []func(*pluginapi.PlanRequest, *pluginapi.RunOptions, *pluginapi.Plan) error{systemPrompt, servers} {
		if err := step(req, opts, plan); err != nil {
			return nil, err
		}
	}
	plan.SessionId = opts.Resume
	if opts.Driver == driverJSON {
		return plan, lines(req, opts, plan)
	}
	plan.Args = append(plan.Args, "--acp")
	plan.Stdin = pb.Stdin_STDIN_OPEN
	// The servers of a client are refused without a word unless they are remote
	// (measured), so that all of them are in the file.
	return plan, acp.Prepare(agentID, acp.Abilities{Images: true}, &pluginapi.PlanRequest{
		Options: &pluginapi.RunOptions{Attachments: opts.Attachments}, TempDir: req.GetTempDir(), Caller: req.GetCaller(),
	}, plan)
}

// mcpServer is one entry of the CLI's mcpServers.
type mcpServer struct {
	Type    string            `json:"type"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitzero"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Tools   []string          `json:"tools"`
}

// servers puts the MCP servers into a file of their own, because env and headers
// hold secrets.
func servers(req *pluginapi.PlanRequest, opts *pluginapi.RunOptions, plan *pluginapi.Plan) error {
	if len(opts.McpServers) == 0 {
		return nil
	}
	transports, err := mcp.Check(agentID, opts.McpServers)
	if err != nil {
		return err
	}
	entries := map[string]mcpServer{}
	for i, s := range opts.McpServers {
		entry := mcpServer{Type: transports[i], URL: s.Url, Headers: s.Headers, Tools: []string{"*"}}
		if transports[i] == mcp.Stdio {
			entry = mcpServer{Type: "local", Command: s.Command, Args: append([]string{}, s.Args...), Env: s.Env, Tools: entry.Tools}
		}
		entries[s.Name] = entry
	}
	content, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		return err
	}
	plan.Args = append(plan.Args, "--additional-mcp-config=@"+sdk.AddFile(req, plan, "mcp.json", content))
	return nil
}

// systemPrompt adds to the CLI's own by a file of instructions: there is no flag.
func systemPrompt(req *pluginapi.PlanRequest, opts *pluginapi.RunOptions, plan *pluginapi.Plan) error {
	if opts.SystemPrompt == "" {
		return nil
	}
	sdk.AddFile(req, plan, systemFile, []byte("---\napplyTo: \"**\"\n---\n"+opts.SystemPrompt+"\n"))
	dirs := opts.Env[instructionsDirsEnv]
	if dirs == "" {
		dirs = req.GetCaller().GetEnv()[instructionsDirsEnv]
	}
	if dirs != "" {
		dirs += ","
	}
	plan.EnvSet[instructionsDirsEnv] = dirs + req.GetTempDir()
	return nil
}

// lines is one prompt, told as the CLI's own lines.
func lines(req *pluginapi.PlanRequest, o *pluginapi.RunOptions, plan *pluginapi.Plan) error {
	plan.Args = append(plan.Args, "--output-format=json")
	switch o.Approve {
	case pb.Approve_APPROVE_AUTO:
		plan.Args = append(plan.Args, "--allow-all")
	case pb.Approve_APPROVE_DENY, pb.Approve_APPROVE_UNKNOWN:
		// It denies what it would ask about.
	default:
		return sdk.Cannot(agentID, "asking with the driver json", "use the driver acp, or --approve auto or deny")
	}
	switch {
	case o.Conversation:
		return sdk.Cannot(agentID, "more than one prompt with the driver json", "use the driver acp")
	case len(o.AllowRules)+len(o.DenyRules) > 0:
		return sdk.Cannot(agentID, "rules with the driver json", "use the driver acp, where amux judges each request")
	case o.ContinueLast:
		return sdk.Cannot(agentID, "the last session with the driver json: its lines name it at their end only", "use the driver acp, or name it with --resume ID")
	case len(o.Attachments) > 0:
		return sdk.Cannot(agentID, "attachments with the driver json", "use the driver acp")
	case o.Resume != "":
		plan.Args = append(plan.Args, "--resume="+o.Resume)
	case req.GetSessionId() != "" && req.GetAttempt() <= 1:
		// Its lines tell the id at their end only.
		plan.Args = append(plan.Args, "--session-id="+req.GetSessionId())
		plan.SessionId = req.GetSessionId()
	}
	// What is written there has the session so far in it, so that it says nothing
	// about the turn of a session that goes on.
	if o.Resume == "" && req.GetTempDir() != "" {
		file := filepath.Join(req.GetTempDir(), usageFile)
		plan.Args = append(plan.Args, "--usage-output-file="+file)
		plan.Collect = []string{file}
	}
	plan.Stdin = pb.Stdin_STDIN_PROMPT
	plan.InitialStdin = []byte(o.Prompt)
	return nil
}
