package copilot

import (
	"context"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/authprobe"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/sessionfile"
	"github.com/amux-dev/amux/sdk/turn"
)

// The CLI keeps a session in session-state/ID/events.jsonl: the lines of the driver
// json without their pieces, each naming the one before it.
const stateDir = "${COPILOT_HOME:-~/.copilot}/session-state"

var sessionIDRule = pattern.New(`^[A-Za-z0-9][A-Za-z0-9-]{0,127}$`)

// ListSessions lists the stored sessions, newest first.
func (Adapter) ListSessions(ctx context.Context, q *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error {
	dir, ok := authprobe.Expand(stateDir, q.GetCaller())
	if !ok {
		return nil
	}
	return sessionfile.List(ctx, q, sessionfile.Find(dir, "*/events.jsonl"), summarize, yield)
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
		data := doc.Get("data")
		switch doc.Text("type") {
		case "session.start":
			s.Id, s.Cwd, s.Model = data.Text("sessionId"), data.Text("context", "cwd"), data.Text("selectedModel")
			if at, err := time.Parse(time.RFC3339Nano, data.Text("startTime")); err == nil {
				s.CreatedUnixMs = at.UnixMilli()
			}
		case "user.message":
			s.Title, _, _ = strings.Cut(strings.TrimSpace(data.Text("content")), "\n")
		}
		doc.Release()
	}
	if s.Id == "" || s.Title == "" {
		return nil, lines.Err()
	}
	return s, nil
}

var tree = sessionfile.Tree{ID: "id", Parent: "parentId"}

// ReadSession gives a stored session as events: the active branch, or everything.
func (Adapter) ReadSession(ctx context.Context, q *pluginapi.SessionQuery, yield func(pluginapi.Payload, time.Time) bool) error {
	id := q.GetSessionId()
	notFound := pluginapi.Errorf(pluginapi.CodeSessionNotFound, "copilot has no session %q", id)
	dir, ok := authprobe.Expand(stateDir, q.GetCaller())
	if !ok || !sessionIDRule.MatchString(id) {
		return notFound
	}
	files := sessionfile.Find(dir, id+"/events.jsonl")
	if len(files) == 0 {
		return notFound
	}
	r := &sessionReader{Stored: turn.Stored{Yield: yield}}
	r.talk = newTalk(&r.Writer)
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
	talk
}

func (r *sessionReader) line(line jsonl.Value) {
	if at, ok := sessionfile.Time(line); ok {
		r.At = at
	}
	data := line.Get("data")
	switch line.Text("type") {
	case "session.start":
		r.Event(pluginapi.SessionStart{SessionID: data.Text("sessionId"), Model: data.Text("selectedModel"), Version: data.Text("copilotVersion")})
	case "user.message":
		if line.Text("agentId") != "" {
			return // what a sub-agent was told
		}
		r.Prompt(line.Text("id"), data.Text("content"))
	case "session.usage_record":
		r.Event(tokens(data.Get("usage"), data.Text("usage", "model")))
	default:
		r.talk.line(line, r)
	}
}
