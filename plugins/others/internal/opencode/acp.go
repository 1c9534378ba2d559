package opencode

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/jsonrpc"
	"github.com/amux-dev/amux/sdk/turn"
)

// refusals are what the CLI prints when it refuses to start, or ends.
var refusals = []turn.Refusal{
	{Text: "Session not found", Code: pluginapi.CodeSessionNotFound},
	{Text: "Configuration is invalid", Code: pluginapi.CodeConfig},
}

// linger: closing stdin ends the CLI in a sixth of a second.
const linger = 10 * time.Second

// Converse begins the conversation with one process.
func (Adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	if start.GetOptions().GetDriver() == driverRun {
		return newOnce(start), nil
	}
	var servers []string
	for _, s := range start.GetOptions().GetMcpServers() {
		servers = append(servers, s.GetName())
	}
	// What a response says of tokens is that of the last request of its turn.
	return acp.Converse(acp.Config{
		Agent: agentID, Guidance: authGuidance, Refusals: refusals, Linger: linger, Tested: TestedVersion,
		Tools: acp.Tools{
			// The first that is told of a tool is its name.
			Name:     func(call jsonl.Value) string { return call.Text("title") },
			Detail:   func(name string, call acp.Call) turn.Detail { return acpDetail(name, call, servers) },
			Complete: complete,
		},
		Failures: acp.Failures{Request: failed},
		Usage:    acp.Usage{LastRequest: true},
	}, start)
}

// acpDetail is what a tool is for. One of an MCP server is named SERVER_TOOL, so
// that the servers of the run tell where it is cut.
func acpDetail(name string, call acp.Call, servers []string) turn.Detail {
	for _, server := range servers {
		if tool, ok := strings.CutPrefix(name, server+"_"); ok {
			return turn.Detail{Kind: turn.MCP, Server: server, Tool: tool}
		}
	}
	doc, err := jsonl.ParseObject(call.Input)
	if err != nil {
		return turn.Detail{}
	}
	defer doc.Release()
	return Detail(name, doc.Value)
}

// complete reads what the CLI notes beside a tool's answer.
func complete(update jsonl.Value, d turn.Detail, r *turn.Result) {
	Finish(r, d, update.Get("rawOutput", "metadata"))
}

// failed reads the error of a prompt: its data have the provider's own.
func failed(e *jsonrpc.Error) *pluginapi.Outcome {
	var data struct {
		ErrorName string
		Message   string
		Error     struct {
			Name string
			Data json.RawMessage
		}
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return nil
	}
	message := data.Message
	if message == "" {
		message = e.Message
	}
	if data.ErrorName == "ContextOverflowError" {
		return &pluginapi.Outcome{Code: string(pluginapi.CodeContextExceeded), Message: message}
	}
	if data.ErrorName == "NotFoundError" {
		return &pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: message}
	}
	return failure.Of(failure.Status(message), message)
}
