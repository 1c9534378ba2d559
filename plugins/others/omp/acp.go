package omp

import (
	"regexp"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// linger: closing stdin ends the CLI at once.
const linger = 10 * time.Second

// converse begins the conversation with one process by the Agent Client Protocol.
func converse(start *pluginapi.Start) (sdk.Conversation, error) {
	return acp.Converse(acp.Config{
		Agent: agentID, Guidance: authGuidance, Refusals: dialect.Refusals, Linger: linger,
		ModelByPlan: true, EffortByPlan: true,
		Name: toolName, Detail: acpDetail, Complete: acpComplete,
		Output:    func(call *acp.Call) string { return output(withoutCommand(call)) },
		ErrorText: errorText,
	}, start)
}

// toolName is that of a tool, by its title, or by what it does: the title of a
// command is the command.
func toolName(call jsonl.Value) string {
	if call.Text("kind") == "execute" {
		return "bash"
	}
	name, _, _ := strings.Cut(call.Text("title"), ":")
	return name
}

func acpDetail(name string, call acp.Call) turn.Detail {
	doc, err := jsonl.ParseObject(call.Input)
	if err != nil {
		return turn.Detail{}
	}
	defer doc.Release()
	return dialect.ToolDetail(name, doc.Value)
}

// withoutCommand is what was told of a command, but for the command itself, which
// comes first.
func withoutCommand(call *acp.Call) string {
	rest, _ := strings.CutPrefix(call.Text, "$ "+call.Field("command"))
	return strings.TrimPrefix(rest, "\n")
}

// acpComplete reads what the CLI notes beside a tool's answer.
func acpComplete(update jsonl.Value, d turn.Detail, r *turn.Result) {
	raw := update.Get("rawOutput")
	var texts []string
	for _, block := range raw.Items("content") {
		texts = append(texts, block.Text("text"))
	}
	r.Text = strings.Join(texts, "\n")
	finish(d, raw.Get("details"), r)
}

// errorPattern is how a failed request of the model is told in the model's place.
var errorPattern = regexp.MustCompile(`^[45]\d\d [^\n]*\n[^\n]*\(type=\w+ param=\w+\)`)

func errorText(text string) *pluginapi.Outcome {
	if !errorPattern.MatchString(text) {
		return nil
	}
	return failure.Of(failure.Status(text), text)
}
