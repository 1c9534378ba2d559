package omp

import (
	"context"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/authprobe"
	"github.com/amux-dev/amux/plugins/others/internal/pirpc"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/turn"
)

var dialect = pirpc.Dialect{
	Agent: agentID, Guidance: authGuidance, Tested: testedVersion,
	// What the CLI prints when it refuses to start.
	Refusals: []turn.Refusal{
		{Text: "Error: Session \"", Code: pluginapi.CodeSessionNotFound},
		{Text: "Model \"", Code: pluginapi.CodeValidation, Hint: "see: amux agents models omp"},
		{Text: "No models available", Code: pluginapi.CodeAuth},
		{Text: "ERR_UNSUPPORTED_ESM_URL_SCHEME", Code: pluginapi.CodeAgentNotInstalled, Hint: "omp runs on Bun, not on Node.js"},
	},
	Ignored: map[string]string{
		"ready":                     "the answer to get_state says that it is there",
		"advisor_cost_changed":      "an adviser that amux does not use",
		"available_commands_update": "slash commands, which amux passes on as text",
		"auto_compaction_start":     "auto_compaction_end tells it",
		"tool_stream_update":        "tool_execution_update has the same",
	},
	AgentEnds: true, Detail: detail, Complete: complete, Output: output,
}

// Converse begins the conversation with one process.
func (Adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	if byACP(start.GetOptions()) {
		return converse(start)
	}
	return pirpc.Converse(dialect, start)
}

// patchPattern is the head of a patch, which names a file and a word for what it
// held.
var patchPattern = pattern.New(`^\s*\[([^\n]+)#[0-9A-Za-z]+\]`)

// detail is what a tool is for, where it is not what Pi's is.
func detail(name string, input jsonl.Value) turn.Detail {
	if m := patchPattern.FindStringSubmatch(input.Text("input")); name == "edit" && m != nil {
		return turn.Detail{Kind: turn.Edit, Path: m[1]}
	}
	return turn.Detail{}
}

var (
	wallPattern = pattern.New(`\n\nWall time: [0-9.]+ seconds(?:\n\nCommand exited with code -?\d+)?$`)
	linePattern = pattern.New(`(?m)^([-+ ])\d+\|`)
)

// output is what a command has printed: the CLI adds how long it took, and how it
// ended.
func output(text string) string {
	text = wallPattern.ReplaceAllString(text, "")
	if text == "(no output)" {
		return ""
	}
	return text
}

// complete reads what the CLI notes beside a tool's answer.
func complete(t *turn.Tool, result jsonl.Value, r *turn.Result) {
	finish(t.Detail, result.Get("details"), r)
}

func finish(d turn.Detail, details jsonl.Value, r *turn.Result) {
	switch d.Kind {
	case turn.Shell:
		if _, timed := details.Float("wallTimeMs"); !timed {
			return // it was cut off
		}
		r.Stdout = output(r.Text)
		n, _ := details.Int("exitCode") // told only if it is not 0
		code := int(n)
		r.ExitCode = &code
	case turn.Edit:
		// Its lines have their numbers in them.
		r.Diff = linePattern.ReplaceAllString(details.Text("diff"), "$1")
		r.Path = details.Text("path")
	}
	if ms, ok := details.Float("wallTimeMs"); ok && r.DurationMS == nil {
		n := int64(ms)
		r.DurationMS = &n
	}
}

func sessionsDir(caller *pluginapi.Caller) string {
	dir, _ := authprobe.Expand("${PI_CODING_AGENT_DIR:-~/.omp/agent}/sessions", caller)
	return dir
}

// ListSessions lists the stored sessions, newest first.
func (Adapter) ListSessions(ctx context.Context, q *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error {
	return pirpc.ListSessions(ctx, sessionsDir(q.GetCaller()), q, yield)
}

// ReadSession gives a stored session as events: the active branch, or everything.
func (Adapter) ReadSession(ctx context.Context, q *pluginapi.SessionQuery, yield func(pluginapi.Payload, time.Time) bool) error {
	return pirpc.ReadSession(ctx, dialect, sessionsDir(q.GetCaller()), q, yield)
}
