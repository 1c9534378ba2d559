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
		Agent: agentID, Guidance: authGuidance, Refusals: dialect.Refusals, Linger: linger, Tested: testedVersion,
		ModelByPlan: true, EffortByPlan: true,
		Name: toolName, Detail: acpDetail, Complete: acpComplete,
		Output:    func(update jsonl.Value) string { return output(answer(update)) },
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

// answer is what a tool has answered so far. The protocol's own content has the
// command before it, and pieces of the answer twice.
func answer(update jsonl.Value) string {
	var texts []string
	for _, block := range update.Items("rawOutput", "content") {
		texts = append(texts, block.Text("text"))
	}
	return strings.Join(texts, "\n")
}

// acpComplete reads what the CLI notes beside a tool's answer.
func acpComplete(update jsonl.Value, d turn.Detail, r *turn.Result) {
	r.Text = answer(update)
	finish(d, update.Get("rawOutput", "details"), r)
}

// errorPattern is how a failed request of the model is told in the model's place.
var errorPattern = regexp.MustCompile(`^[45]\d\d [^\n]*\n[^\n]*\(type=\w+ param=\w+\)`)

func errorText(text string) *pluginapi.Outcome {
	if !errorPattern.MatchString(text) {
		return nil
	}
	return failure.Of(failure.Status(text), text)
}
