package pirpc

import (
	"context"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/sessionfile"
	"github.com/amux-dev/amux/sdk/turn"
)

// A session is kept in sessions/DIRECTORY/TIME_ID.jsonl: a head, then entries that
// name the one they follow.

var sessionIDRule = pattern.New(`^[A-Za-z0-9][A-Za-z0-9-]{0,127}$`)

// ListSessions lists the sessions stored below dir, newest first; "" has none.
func ListSessions(ctx context.Context, dir string, q *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error {
	if dir == "" {
		return nil
	}
	return sessionfile.List(ctx, q, sessionfile.Find(dir, "*/*.jsonl"), summarize, yield)
}

// summarize reads the head of a session and its first prompt; nil if there is none.
func summarize(_ context.Context, file sessionfile.File) (*pluginapi.SessionSummary, error) {
	lines, err := sessionfile.Open(file.Path)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	s := &pluginapi.SessionSummary{Path: file.Path, UpdatedUnixMs: file.Modified.UnixMilli(), Bytes: uint64(file.Size)}
	for n := 0; n < 200 && s.Title == "" && lines.Next(); n++ {
		doc, err := jsonl.ParseObject(lines.Line)
		if err != nil {
			continue
		}
		switch doc.Text("type") {
		case "session":
			s.Id, s.Cwd, s.ForkedFrom = doc.Text("id"), doc.Text("cwd"), doc.Text("parentSession")
			if at, ok := sessionfile.Time(doc.Value); ok {
				s.CreatedUnixMs = at.UnixMilli()
			}
		case "model_change":
			if s.Model = doc.Text("modelId"); s.Model == "" {
				_, s.Model, _ = strings.Cut(doc.Text("model"), "/")
			}
		case "message":
			if doc.Text("message", "role") == "user" {
				s.Title, _, _ = strings.Cut(strings.TrimSpace(contentText(doc.Get("message", "content"))), "\n")
			}
		}
		doc.Release()
	}
	if s.Id == "" || s.Title == "" {
		return nil, nil
	}
	return s, nil
}

var tree = sessionfile.Tree{ID: "id", Parent: "parentId", Leaf: func(line jsonl.Value) bool { return line.Text("type") == "message" }}

// ReadSession gives a session stored below dir as events: the active branch, or
// everything.
func ReadSession(ctx context.Context, dialect Dialect, dir string, q *pluginapi.SessionQuery, yield func(pluginapi.Payload, time.Time) bool) error {
	id := q.GetSessionId()
	notFound := pluginapi.Errorf(pluginapi.CodeSessionNotFound, "%s has no session %q", dialect.Agent, id)
	if dir == "" || !sessionIDRule.MatchString(id) {
		return notFound
	}
	files := sessionfile.Find(dir, "*/*_"+id+".jsonl")
	if len(files) == 0 {
		return notFound
	}
	r := &sessionReader{dialect: dialect, Stored: turn.Stored{Yield: yield}}
	// The head has an id, but belongs to no branch.
	start := pluginapi.SessionStart{SessionID: id}
	if s, err := summarize(ctx, files[0]); err == nil && s != nil {
		start.Model, start.ForkedFrom = s.Model, s.ForkedFrom
		r.At = time.UnixMilli(s.CreatedUnixMs).UTC()
	}
	r.Event(start)
	err := tree.Read(ctx, files[0].Path, q.GetAllBranches(), sessionfile.Visit{
		Line: func(line jsonl.Value) bool { r.line(line); return !r.Stopped },
		Long: r.Long,
	})
	if err != nil {
		return err
	}
	r.End(id)
	return nil
}

// sessionReader makes events of the lines of one session.
type sessionReader struct {
	turn.Stored
	dialect Dialect
}

func (r *sessionReader) line(line jsonl.Value) {
	if at, ok := sessionfile.Time(line); ok {
		r.At = at
	}
	message := line.Get("message")
	switch line.Text("type") {
	case "compaction":
		r.Event(pluginapi.ContextCompacted{Summary: line.Text("summary")})
	case "message":
		switch message.Text("role") {
		case "user":
			r.Prompt(line.Text("id"), contentText(message.Get("content")))
		case "assistant":
			r.assistant(line.Text("id"), message)
		case "toolResult":
			if t := r.StartTool(message.Text("toolCallId"), message.Text("toolName"), "", r); t != nil {
				r.EndTool(t, r.dialect.result(t, message, message.Bool("isError"), message.IntPtr("durationMs")), r)
			}
		}
	}
}

func (r *sessionReader) assistant(id string, message jsonl.Value) {
	s := r.Main()
	for _, block := range message.Items("content") {
		switch block.Text("type") {
		case "text":
			s.Text(id, block.Text("text"), r)
			s.End(r)
		case "thinking":
			s.Think(block.Text("thinking"), r)
			s.End(r)
		case "toolCall":
			if t := r.StartTool(block.Text("id"), block.Text("name"), "", r); t != nil {
				input := block.Get("arguments")
				r.ReadyTool(t, input.Raw(), r.dialect.ToolDetail(t.Name, input), r)
			}
		}
	}
	if usage := message.Get("usage"); usage.IsObject() {
		r.Event(tokens(message))
		if usd, ok := usage.Float("cost", "total"); ok && usd > 0 {
			r.Event(pluginapi.Cost{Cost: pluginapi.Money{USD: usd}})
		}
	}
}
