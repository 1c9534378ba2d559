package main

import (
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// linger: closing stdin ends the bridge in a tenth of a second.
const linger = 10 * time.Second

// gatewayRefusals are complaints of the bridge to the gateway.
var gatewayRefusals = append([]turn.Refusal{
	{Text: "ECONNREFUSED", Code: pluginapi.CodeNetwork, Hint: "start the gateway: openclaw gateway run"},
	{Text: "gateway not reachable", Code: pluginapi.CodeNetwork, Hint: "start the gateway: openclaw gateway run"},
	{Text: "requires credentials", Code: pluginapi.CodeConfig, Hint: "set AMUX_OPENCLAW_URL and AMUX_OPENCLAW_TOKEN_FILE"},
	{Text: "unauthorized", Code: pluginapi.CodeAuth, Hint: "the gateway refuses the token"},
}, refusals...)

// converse begins the conversation with the bridge to a gateway.
func converse(start *pluginapi.Start) (sdk.Conversation, error) {
	return acp.Converse(acp.Config{
		Agent: agentID, Guidance: authGuidance, Refusals: gatewayRefusals, Linger: linger, Tested: testedVersion,
		// It resumes only sessions that its bridge has in memory, which is new for each run.
		// What it cannot load is an error.
		Session:  acp.Session{Absent: func(jsonl.Value) bool { return false }},
		Tools:    acp.Tools{Name: toolName, Detail: toolDetail, Complete: complete, Output: printed},
		Failures: acp.Failures{Wordless: "openclaw ended the turn without a word: the gateway does not tell why; its log and `openclaw models status` do"},
	}, start)
}

// toolName is what stands before the colon of a title: "exec: command: echo hi".
func toolName(call jsonl.Value) string {
	name, _, _ := strings.Cut(call.Text("title"), ":")
	return name
}

// toolDetail is what a tool is for.
func toolDetail(name string, call acp.Call) turn.Detail {
	path := call.Path
	if path == "" {
		path = call.Field("path", "filePath", "file_path")
	}
	switch name {
	case "exec":
		return turn.Detail{Kind: turn.Shell, Command: call.Field("command")}
	case "write":
		n := int64(len(call.Field("content")))
		return turn.Detail{Kind: turn.Write, Path: path, Bytes: &n}
	case "edit":
		return turn.Detail{Kind: turn.Edit, Path: path, Diff: turn.Replacement(call.Field("oldText", "old_string"), call.Field("newText", "new_string"))}
	case "read":
		return turn.Detail{Kind: turn.Read, Path: path}
	}
	return turn.Detail{}
}

// complete reads what the CLI notes beside a tool's answer.
func complete(update jsonl.Value, d turn.Detail, r *turn.Result) {
	details := update.Get("rawOutput", "details")
	if code, ok := details.Int("exitCode"); ok {
		n := int(code)
		r.ExitCode = &n
		r.Failed = r.Failed || n != 0
	}
	if d.Kind == turn.Shell {
		r.Stdout = printed(update)
	}
	if r.Text == "" {
		r.Text = update.Text("rawOutput", "content", "0", "text")
	}
	if ms, ok := details.Int("durationMs"); ok {
		r.DurationMS = &ms
	}
}

// printed is what a command has printed so far: a tail while it runs, all of it at
// the end.
func printed(update jsonl.Value) string {
	details := update.Get("rawOutput", "details")
	if details.IsString("aggregated") {
		return details.Text("aggregated")
	}
	return details.Text("tail")
}
