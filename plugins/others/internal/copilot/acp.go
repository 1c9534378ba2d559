package copilot

import (
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

// refusals are what the CLI prints when it refuses to start.
var refusals = []turn.Refusal{
	{Text: "No authentication information found", Code: pluginapi.CodeAuth},
	{Text: "are not supported by Copilot", Code: pluginapi.CodeAuth},
	{Text: "require an explicit model", Code: pluginapi.CodeConfig, Hint: "name one: --model MODEL, or COPILOT_MODEL"},
	{Text: "Offline mode requires a local model provider", Code: pluginapi.CodeConfig, Hint: "set COPILOT_PROVIDER_BASE_URL, or unset COPILOT_OFFLINE"},
	{Text: "No session, task, or name matched", Code: pluginapi.CodeSessionNotFound},
}

// linger: closing stdin ends the CLI at once.
const linger = 10 * time.Second

// Converse begins the conversation with one process.
func (Adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	if start.GetOptions().GetDriver() == driverJSON {
		return newOnce(start), nil
	}
	var servers []string
	for _, s := range start.GetOptions().GetMcpServers() {
		servers = append(servers, s.GetName())
	}
	said := &asides{}
	return acp.Converse(acp.Config{
		Agent: agentID, Guidance: authGuidance, Refusals: refusals, Linger: linger, Tested: testedVersion,
		Session: acp.Session{ModelByPlan: true, EffortByPlan: true},
		Tools: acp.Tools{
			Name:     func(call jsonl.Value) string { return toolName(call, servers) },
			Detail:   func(name string, call acp.Call) turn.Detail { return acpDetail(name, call, servers) },
			Complete: complete,
		},
		Questions: acp.Questions{InputFirst: true},
		Words:     acp.Words{Aside: said.aside, Error: said.errorText},
		Failures: acp.Failures{
			Request:  failed,
			Wordless: "copilot ended the turn without an answer: the provider's policy may forbid one",
		},
		Usage: acp.Usage{Cumulative: true},
	}, start)
}

// toolName is that of a tool, by its kind and input: the protocol's title is a
// sentence, but for tools of MCP servers, which have their name there.
func toolName(call jsonl.Value, servers []string) string {
	input, title := call.Get("rawInput"), call.Text("title")
	for _, server := range servers {
		if strings.HasPrefix(title, server+"-") {
			return title
		}
	}
	switch call.Text("kind") {
	case "execute":
		if input.IsString("command") {
			return "bash"
		}
	case "read":
		if input.IsString("path") {
			return "view"
		}
	case "edit":
		if input.IsString("file_text") {
			return "create"
		}
		return "edit"
	}
	if input.IsString("agent_type") && input.IsString("prompt") {
		return "task"
	}
	return ""
}

// acpDetail is what a tool is for.
func acpDetail(name string, call acp.Call, servers []string) turn.Detail {
	for _, server := range servers {
		if tool, ok := strings.CutPrefix(name, server+"-"); ok {
			return turn.Detail{Kind: turn.MCP, Server: server, Tool: tool}
		}
	}
	if name == "task" || name == "edit" {
		return turn.Detail{} // what happens inside is not told; a change is told as one
	}
	doc, err := jsonl.ParseObject(call.Input)
	if err != nil {
		return turn.Detail{}
	}
	defer doc.Release()
	return detail(name, doc.Value)
}

// complete reads what the CLI notes beside a tool's answer.
func complete(update jsonl.Value, d turn.Detail, r *turn.Result) {
	raw := update.Get("rawOutput")
	if text := raw.Text("message"); r.Failed && text != "" {
		r.Text = text
	}
	switch d.Kind {
	case turn.Shell:
		exit := raw.Get("contents", "0")
		r.Stdout = printed(r.Text, exit.Text("outputPreview"))
		if n, ok := exit.Int("exitCode"); ok && exit.Text("type") == "shell_exit" {
			exited(r, int(n))
		}
	case turn.Write:
		r.Created = true // it refuses a file that is there
	case turn.Edit:
		r.Diff = strings.TrimPrefix(raw.Text("detailedContent"), "\n")
	}
}

// asides is what the CLI itself says in the model's place.
type asides struct{ tries int }

const (
	retryText = "Info: Request failed due to a transient API error. Retrying..."
	brokeText = "Info: Response was interrupted due to a server error. Retrying..."
	longText  = "Info: The conversation exceeded the model's context limit. Compacting history and retrying..."
)

// infoPattern is about a file that was written, or a cancellation.
var infoPattern = pattern.New(`^Info: (?:/|[A-Za-z]:\\)[^\n]*$|^Info: Operation cancelled by user$`)

func (a *asides) aside(text string) (pluginapi.Payload, bool) {
	switch text {
	case retryText, brokeText, longText:
		a.tries++
		return pluginapi.Retry{Attempt: a.tries, Reason: strings.TrimPrefix(text, "Info: ")}, true
	}
	if infoPattern.MatchString(text) {
		return nil, true
	}
	return nil, false
}

// errorPattern is how the CLI words that a request of the model has failed.
var errorPattern = pattern.New(`^Error: (?:Authentication failed with provider |Failed to get response from the AI model; |` +
	`Could not connect to |Model '[^'\n]*' not found on provider |Request exceeds the model's prompt budget |No response was returned\.|The provider rejected the prompt |[45]\d\d )`)

func (a *asides) errorText(text string) *pluginapi.Outcome {
	a.tries = 0
	if !errorPattern.MatchString(text) {
		return nil
	}
	return reason(0, strings.TrimPrefix(text, "Error: "))
}

// reason reads an error of the provider.
func reason(status int, message string) *pluginapi.Outcome {
	if status == 0 {
		status = failure.Status(message)
	}
	switch {
	case strings.HasPrefix(message, "The provider rejected the prompt as too long"),
		strings.HasPrefix(message, "Request exceeds the model's prompt budget"):
		return &pluginapi.Outcome{Code: string(pluginapi.CodeContextExceeded), Message: message}
	}
	return failure.Of(status, message)
}

// failed reads an error of the protocol.
func failed(e *jsonrpc.Error) *pluginapi.Outcome {
	if strings.Contains(e.Message, "does not support reasoning effort") {
		_, model, _ := strings.Cut(e.Message, "Model ")
		return &pluginapi.Outcome{Code: string(pluginapi.CodeCapability), Message: "copilot cannot do an effort here: model " + model}
	}
	return nil
}
