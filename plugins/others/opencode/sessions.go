package opencode

import (
	"context"
	"encoding/json"
	"regexp"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

var sessionIDRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// Sessions are those of OpenCode, whoever drives it.
type Sessions struct{}

// ListSessions asks the CLI: its sessions are in a database whose form changes.
func (Sessions) ListSessions(ctx context.Context, q *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error {
	results := q.GetExecResults()
	if len(results) == 0 {
		return &sdk.ExecNeeded{Argv: []string{"opencode", "session", "list", "--format", "json"}}
	}
	var list []struct {
		ID, Title, Directory string
		Updated, Created     int64
	}
	if text := results[0].GetStdout(); results[0].GetExitCode() != 0 {
		return pluginapi.Errorf(pluginapi.CodeAgentFailed, "opencode session list failed with code %d", results[0].GetExitCode())
	} else if len(text) > 0 {
		if err := json.Unmarshal(text, &list); err != nil {
			return pluginapi.Errorf(pluginapi.CodeParse, "what opencode session list prints is not understood: %v", err)
		}
	}
	sent := uint32(0)
	for _, s := range list {
		if !q.GetAllProjects() && s.Directory != q.GetCaller().GetCwd() {
			continue
		}
		if !yield(&pluginapi.SessionSummary{Id: s.ID, Title: s.Title, Cwd: s.Directory, CreatedUnixMs: s.Created, UpdatedUnixMs: s.Updated}) {
			return nil
		}
		if sent++; q.GetLimit() > 0 && sent >= q.GetLimit() {
			return nil
		}
	}
	return ctx.Err()
}

// ReadSession asks the CLI to export the session.
func (Sessions) ReadSession(ctx context.Context, q *pluginapi.SessionQuery, yield func(pluginapi.Payload, time.Time) bool) error {
	id := q.GetSessionId()
	notFound := pluginapi.Errorf(pluginapi.CodeSessionNotFound, "opencode has no session %q", id)
	if !sessionIDRule.MatchString(id) {
		return notFound
	}
	results := q.GetExecResults()
	if len(results) == 0 {
		return &sdk.ExecNeeded{Argv: []string{"opencode", "export", id}}
	}
	if results[0].GetExitCode() != 0 {
		return notFound
	}
	doc, err := jsonl.ParseObject(results[0].GetStdout())
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "what opencode export prints of session %q is not understood, or longer than 1 MiB", id)
	}
	defer doc.Release()
	r := &sessionReader{yield: yield}
	r.read(doc.Value)
	return ctx.Err()
}

// sessionReader makes events of an exported session.
type sessionReader struct {
	turn.Writer
	yield   func(pluginapi.Payload, time.Time) bool
	at      time.Time
	stopped bool
	inTurn  bool
	turns   int
}

// Event passes an event to the caller.
func (r *sessionReader) Event(p pluginapi.Payload) {
	if !r.stopped && !r.yield(p, r.at) {
		r.stopped = true
	}
}

func (r *sessionReader) time(v jsonl.Value, keys ...string) {
	if ms, ok := v.Int(keys...); ok {
		r.at = time.UnixMilli(ms)
	}
}

func (r *sessionReader) read(doc jsonl.Value) {
	info := doc.Get("info")
	r.time(info, "time", "created")
	r.Event(pluginapi.SessionStart{
		SessionID: info.Text("id"), Version: info.Text("version"), Model: info.Text("model", "id"),
	})
	if title := info.Text("title"); title != "" {
		r.Event(pluginapi.SessionTitle{Title: title})
	}
	for _, m := range doc.Items("messages") {
		if r.stopped {
			return
		}
		r.time(m, "info", "time", "created")
		if m.Text("info", "role") == "user" {
			r.user(m)
		} else {
			r.assistant(m)
		}
	}
	r.endTurn()
	r.Event(pluginapi.SessionEnd{SessionID: info.Text("id"), TurnCount: r.turns})
}

func (r *sessionReader) endTurn() {
	r.Main().End(r)
	r.CloseTools("the session has no result of this tool", r)
	if r.inTurn {
		r.Event(pluginapi.TurnEnd{TurnIndex: r.turns})
		r.turns++
		r.inTurn = false
	}
}

func (r *sessionReader) user(m jsonl.Value) {
	for _, part := range m.Items("parts") {
		if part.Text("type") == "text" && !part.Bool("synthetic") {
			r.endTurn()
			r.Event(pluginapi.TurnStart{TurnIndex: r.turns})
			r.inTurn = true
			r.Event(pluginapi.UserMessage{ID: m.Text("info", "id"), Text: part.Text("text")})
		}
	}
}

func (r *sessionReader) assistant(m jsonl.Value) {
	s := r.Main()
	for _, part := range m.Items("parts") {
		r.time(part, "time", "end")
		switch part.Text("type") {
		case "text":
			s.Text(m.Text("info", "id"), part.Text("text"), r)
			s.End(r)
		case "reasoning":
			s.Think(part.Text("text"), r)
			s.End(r)
		case "tool":
			r.tool(part)
		case "step-finish":
			r.Event(Tokens(part.Get("tokens"), m.Text("info", "modelID")))
			if usd, ok := part.Float("cost"); ok && usd > 0 {
				r.Event(pluginapi.Cost{Cost: pluginapi.Money{USD: usd}})
			}
		}
	}
}

func (r *sessionReader) tool(part jsonl.Value) {
	state := part.Get("state")
	r.time(state, "time", "end")
	t := r.StartTool(part.Text("callID"), part.Text("tool"), "", r)
	if t == nil {
		return
	}
	input := state.Get("input")
	r.ReadyTool(t, input.Raw(), Detail(t.Name, input), r)
	text := state.Text("output")
	result := turn.Result{Text: text, Output: pluginapi.AppendString(nil, text)}
	switch state.Text("status") {
	case "completed":
		Finish(&result, t.Detail, state.Get("metadata"))
	case "error":
		result.Failed, result.CutOff, result.Text = true, true, state.Text("error")
	default:
		return // it is closed at the end of the turn
	}
	r.EndTool(t, result, r)
}
