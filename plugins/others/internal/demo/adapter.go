package demo

import (
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

// AgentArg is the first argument that makes the plugin's executable be the agent.
const AgentArg = "demo-agent"

// agentVersion is what the agent calls itself.
const agentVersion = "1.0.0"

// Adapter knows the demo agent.
type Adapter struct{}

var (
	_ sdk.Adapter   = Adapter{}
	_ sdk.Converser = Adapter{}
)

// Describe implements sdk.Adapter.
func (Adapter) Describe() *pluginapi.Agent {
	notes := []string{
		"A scripted agent for trying amux out: it thinks, uses tools, edits a file in a scratch folder of its own, and names tokens and cost. It needs no key and no network, calls no model and leaves your project alone.",
		"Directives in a prompt are carried out in their order; then the turn ends. A prompt without any gets the whole show.",
	}
	for _, d := range directives {
		notes = append(notes, d.usage+"  "+d.meaning)
	}
	return &pluginapi.Agent{
		Id:          "demo",
		DisplayName: "Demo",
		Summary:     "A scripted agent that needs nothing: try amux with it",
		Platforms:   []string{"linux", "darwin", "windows"},
		Capabilities: &pluginapi.Capabilities{
			NoSession: true, MultiTurn: true, TextStreaming: true, Thinking: true, Tools: true,
			Approvals: true, EditApprovals: true, Questions: true, Interrupt: true, Model: true, SetModel: true,
		},
		Efforts: []*pluginapi.Effort{
			{Level: "low", Native: "low"}, {Level: "medium", Native: "medium"},
			{Level: "high", Native: "high"}, {Level: "max", Native: "high"},
		},
		Models: []*pluginapi.Model{
			{Id: "demo-small", DisplayName: "Demo Small", Aliases: []string{"small"}, IsDefault: true},
			{Id: "demo-large", DisplayName: "Demo Large", Aliases: []string{"large"}},
		},
		Notes: notes,
		Demo:  true,
		EventTypes: []string{
			"session_start", "session_end", "turn_start", "turn_end", "message_start", "text_delta", "message_stop",
			"thinking_start", "thinking_delta", "thinking_stop", "tool_call_start", "tool_call_ready", "tool_result", "tool_error",
			"file_create", "file_patch", "file_read", "shell_start", "shell_exit", "token_usage", "cost",
			"approval_request", "approval_granted", "approval_denied", "input_required", "input_answered",
			"interrupted", "auth_error", "rate_limit_error", "context_exceeded", "error", "debug", "log",
		},
	}
}

// models by every name they have.
var models = map[string]string{"": "demo-small", "small": "demo-small", "large": "demo-large"}

// Plan implements sdk.Adapter.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	o := req.GetOptions()
	if req.PluginPath == "" {
		return nil, pluginapi.Errorf(pluginapi.CodeInternal, "the host did not say where the plugin's executable is")
	}
	plan := &pluginapi.Plan{
		Program:   req.PluginPath,
		Args:      []string{AgentArg, "-session", req.SessionId, "-model", modelName(o.Model)},
		Stdin:     pb.Stdin_STDIN_OPEN,
		SessionId: req.SessionId,
	}
	if effort := nativeEffort(o.Effort); effort != "" {
		plan.Args = append(plan.Args, "-effort", effort)
	}
	return plan, nil
}

func modelName(model string) string {
	if name, ok := models[model]; ok {
		return name
	}
	return model
}

func nativeEffort(level string) string {
	if level == "max" {
		return "high"
	}
	return level
}

// line is what a line to the agent says, besides prompts.
type line struct {
	Type   string          `json:"type"`
	ID     string          `json:"id,omitempty"`
	Allow  bool            `json:"allow,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	Text   string          `json:"text,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Model  string          `json:"model,omitempty"`
}

func write(out *sdk.Out, l line) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	out.Write(append(data, '\n'))
	return nil
}

// usd makes money of microdollars, which add up exactly.
func usd(micros int64) *pluginapi.Money { return &pluginapi.Money{USD: float64(micros) / 1e6} }
