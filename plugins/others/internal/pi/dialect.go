package pi

import (
	"context"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/authprobe"
	"github.com/amux-dev/amux/plugins/others/internal/pirpc"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/turn"
)

var dialect = pirpc.Dialect{
	Agent: agentID, Guidance: authGuidance, Tested: testedVersion,
	// What the CLI prints when it refuses to start.
	Refusals: []turn.Refusal{
		{Text: "No session found", Code: pluginapi.CodeSessionNotFound},
		{Text: "No API key found", Code: pluginapi.CodeAuth},
		{Text: "No models available", Code: pluginapi.CodeAuth},
		{Text: "not found. Use --list-models", Code: pluginapi.CodeValidation, Hint: "see: amux agents models pi"},
	},
}

// Converse begins the conversation with one process.
func (Adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	return pirpc.Converse(dialect, start)
}

func sessionsDir(caller *pluginapi.Caller) string {
	if dir := caller.GetEnv()["PI_CODING_AGENT_SESSION_DIR"]; dir != "" {
		return dir
	}
	dir, _ := authprobe.Expand("${PI_CODING_AGENT_DIR:-~/.pi/agent}/sessions", caller)
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
