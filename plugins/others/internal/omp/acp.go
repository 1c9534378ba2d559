package omp

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/jsonrpc"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/turn"
)

// linger: closing stdin ends the CLI at once.
const linger = 10 * time.Second

// converse begins the conversation with one process by the Agent Client Protocol.
func converse(start *pluginapi.Start) (sdk.Conversation, error) {
	return acp.Converse(acp.Config{
		Agent: agentID, Guidance: authGuidance, Refusals: dialect.Refusals, Linger: linger, Tested: testedVersion,
		Session: acp.Session{ModelByPlan: true, EffortByPlan: true},
		Tools: acp.Tools{
			Name: toolName, Detail: acpDetail, Complete: acpComplete,
			Output: func(update jsonl.Value) string { return output(answer(update)) },
		},
		Questions: acp.Questions{Approval: approval},
		Words:     acp.Words{Error: errorText},
		Failures: acp.Failures{Request: func(e *jsonrpc.Error) *pluginapi.Outcome {
			return failed(e, start.GetOptions().GetModel())
		}},
	}, start)
}

// failed reads the error of a prompt for which the CLI found no model: none has the
// name that was asked for, or no provider is signed in. nil: it is another error.
func failed(e *jsonrpc.Error, model string) *pluginapi.Outcome {
	var data struct{ Details string }
	if json.Unmarshal(e.Data, &data) != nil || !strings.HasPrefix(data.Details, "No model selected") {
		return nil
	}
	if model == "" {
		return &pluginapi.Outcome{Code: string(pluginapi.CodeAuth), Message: "omp has no model: no provider is signed in"}
	}
	return &pluginapi.Outcome{
		Code:    string(pluginapi.CodeValidation),
		Message: fmt.Sprintf("omp has no model %q that it can use", model),
		Hint:    "see: amux agents models omp",
	}
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

// elided is in the place of what the CLI leaves out of a long value.
const elided = "ch elided…]"

// approval reads a form that asks whether a tool may be used. Values of the
// model stand in it as they are, with newlines: where one could end in more than one
// place, the form stays a question, for people.
func approval(message string) (acp.Approval, bool) {
	message, ok := strings.CutPrefix(message, "Allow tool: ")
	if !ok {
		return acp.Approval{}, false
	}
	a := acp.Approval{Risk: "high", Yes: "Approve"}
	a.Tool, a.Detail, _ = strings.Cut(message, "\n")
	switch a.Tool {
	case "bash":
		a.ToolKind = pluginapi.ToolShell
		a.Detail, ok = strings.CutPrefix(a.Detail, "Command: ")
		a.Input = object("command", a.Detail)
		return a, ok && !strings.Contains(a.Detail, elided)
	case "write":
		const content = "\nContent:\n"
		path, isPath := strings.CutPrefix(a.Detail, "Path: ")
		path, text, ok := strings.Cut(path, content)
		a.ToolKind, a.Detail, a.Risk = fileKind(path), path, "medium"
		a.Input = object("path", path, "content", text)
		return a, isPath && ok && strings.Count(message, content) == 1 && !strings.Contains(path, elided)
	case "edit":
		a.Detail, ok = strings.CutPrefix(a.Detail, "File: ")
		a.ToolKind, a.Risk, a.Input = fileKind(a.Detail), "medium", object("path", a.Detail)
		return a, ok && !strings.Contains(a.Detail, "\n") && !strings.Contains(a.Detail, elided)
	case "":
		return a, false
	}
	a.ToolKind = pluginapi.ToolCommand // what it does is described only
	return a, true
}

// fileKind is the kind of a tool that writes to a path, which may be an address.
func fileKind(path string) string {
	if strings.Contains(path, "://") {
		return pluginapi.ToolCommand
	}
	return pluginapi.ToolFile
}

// object is a JSON object of names and values.
func object(pairs ...string) json.RawMessage {
	b := []byte{'{'}
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(pluginapi.AppendString(b, pairs[i]), ':')
		b = pluginapi.AppendString(b, pairs[i+1])
	}
	return append(b, '}')
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
var errorPattern = pattern.New(`^[45]\d\d [^\n]*\n[^\n]*\(type=\w+ param=\w+\)`)

func errorText(text string) *pluginapi.Outcome {
	if !errorPattern.MatchString(text) {
		return nil
	}
	return failure.Of(failure.Status(text), text)
}
