package main

import (
	"encoding/json"
	"strconv"
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

// refusals are what the CLI prints when it refuses to start, or ends.
var refusals = []turn.Refusal{
	{Text: "Error resuming session", Code: pluginapi.CodeSessionNotFound},
	{Text: "already exists. Use --resume", Code: pluginapi.CodeValidation},
	{Text: "Please set an Auth method", Code: pluginapi.CodeAuth},
	{Text: "Invalid auth method selected", Code: pluginapi.CodeAuth},
	{Text: "not running in a trusted directory", Code: pluginapi.CodeConfig},
}

// linger: closing stdin ends the CLI in well under a second.
const linger = 10 * time.Second

// Converse begins the conversation with one process.
func (adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	if start.GetOptions().GetDriver() == driverStream {
		return newStream(start), nil
	}
	var servers []string
	for _, s := range start.GetOptions().GetMcpServers() {
		servers = append(servers, s.GetName())
	}
	return acp.Converse(acp.Config{
		Agent: agentID, Guidance: authGuidance, Refusals: refusals, Linger: linger, Tested: testedVersion,
		Session:   acp.Session{Mode: "default", ModelByPlan: true},
		Tools:     acp.Tools{Name: name, Detail: func(name string, call acp.Call) turn.Detail { return detail(name, call, servers) }},
		Questions: acp.Questions{SilentDenial: true},
		Words: acp.Words{
			// A thought comes with its subject, which may be empty.
			Thought: func(text string) string { return strings.TrimPrefix(text, "****\n") },
			Aside:   aside,
		},
		Failures: acp.Failures{
			Request: failed, Retry: retry,
			Wordless: "gemini ended the turn without an answer: the provider's policy may forbid one",
			Limit: func(*pluginapi.RunOptions) *pluginapi.Outcome {
				return &pluginapi.Outcome{
					Code:    string(pluginapi.CodeTurnLimit),
					Message: "gemini stopped the turn: it found a loop, or reached model.maxSessionTurns of its settings",
					Hint:    "say in the prompt when to stop; in gemini's settings.json, see model.disableLoopDetection and model.maxSessionTurns",
				}
			},
		},
		Usage: acp.Usage{Read: usage},
	}, start)
}

// name is in the tool's id: "read_file__read_file_1795195186628_0".
func name(call jsonl.Value) string {
	name, _, found := strings.Cut(call.Text("toolCallId"), "__")
	if !found {
		return ""
	}
	return name
}

// detail is what a tool is for. The CLI does not tell its input but for the title
// of a command and the places of a file. A tool of an MCP server is named
// mcp_SERVER_TOOL, so that the servers of the run tell where it is cut.
func detail(name string, call acp.Call, servers []string) turn.Detail {
	if rest, ok := strings.CutPrefix(name, "mcp_"); ok {
		for _, server := range servers {
			if tool, ok := strings.CutPrefix(rest, server+"_"); ok {
				return turn.Detail{Kind: turn.MCP, Server: server, Tool: tool}
			}
		}
	}
	switch name {
	case "run_shell_command":
		return turn.Detail{Kind: turn.Shell, Command: call.Title}
	case "read_file":
		return turn.Detail{Kind: turn.Read, Path: call.Path}
	case "write_file":
		d := turn.Detail{Kind: turn.Write, Path: call.Path}
		if call.Diff != nil {
			n := int64(len(call.Diff.New))
			d.Path, d.Bytes = call.Diff.Path, &n
		}
		return d
	}
	return turn.Detail{}
}

// aside is what the CLI itself says as a message.
func aside(text string) (pluginapi.Payload, bool) {
	return nil, strings.HasPrefix(text, "[MODE_UPDATE] ")
}

// failed reads the error of a prompt: its code is the HTTP status, its message the
// body.
func failed(e *jsonrpc.Error) *pluginapi.Outcome {
	status, message := body(e.Message)
	if status == 0 && 400 <= e.Code && e.Code < 600 {
		status = int(e.Code)
	}
	if status == 0 && strings.Contains(strings.ToLower(message), "session") && strings.Contains(message, "not found") {
		return &pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: message}
	}
	return failure.Of(status, message)
}

// retryPattern is what the CLI writes before it makes a failed request again: "Attempt 1
// failed with status 429. Retrying with backoff...", "Attempt 1 failed: … Retrying after
// 5000ms...".
var retryPattern = pattern.New(`^Attempt (\d{1,3}) failed(?: with (?:status )?(\d{3})\b[^.\n]*)?(?:: (.{0,300}?))?\. Retrying (?:after (\d{1,9})ms|with backoff)`)

// retry reads it from a line of stderr.
func retry(line []byte) (event pluginapi.Retry, limited, ok bool) {
	m := retryPattern.FindSubmatch(line)
	if m == nil {
		return event, false, false
	}
	event.Attempt, _ = strconv.Atoi(string(m[1]))
	event.Reason = string(m[3])
	if status := string(m[2]); status != "" {
		event.Reason = "status " + status
	}
	if delay, err := strconv.ParseInt(string(m[4]), 10, 64); err == nil {
		event.DelayMS = &delay
	}
	status := failure.Status(event.Reason)
	return event, failure.Of(status, event.Reason).Code == string(pluginapi.CodeRateLimited), true
}

var apiError = pattern.New(`(?s)^\[API Error: (.*)\]$`)

// body reads an error of the API, which may be wrapped in words.
func body(text string) (status int, message string) {
	text = strings.TrimSpace(text)
	if m := apiError.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	var e struct {
		Error struct {
			Code    int
			Message string
		}
	}
	if json.Unmarshal([]byte(text), &e) != nil || e.Error.Message == "" {
		return failure.Status(text), text
	}
	if status, message := body(e.Error.Message); status != 0 {
		return status, message // the same once more, inside
	}
	return e.Error.Code, e.Error.Message
}

// usage is told in a place of the CLI's own.
func usage(result jsonl.Value) (pluginapi.TokenUsage, bool) {
	count := result.Get("_meta", "quota", "token_count")
	if !count.IsObject() {
		return pluginapi.TokenUsage{}, false
	}
	return pluginapi.TokenUsage{
		InputTokens: count.IntPtr("input_tokens"), OutputTokens: count.IntPtr("output_tokens"),
		Model: result.Text("_meta", "quota", "model_usage", "0", "model"),
	}, true
}
