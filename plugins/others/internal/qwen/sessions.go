package qwen

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

// The CLI keeps a session in <home>/projects/<slug>/chats/<session id>.jsonl. The
// slug is the working directory with hyphens, so that it does not say which
// directory that was; the lines do.
const projectsDir = "${QWEN_HOME:-~/.qwen}/projects"

var sessionIDRule = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// ListSessions lists the stored sessions, newest first.
func (Adapter) ListSessions(ctx context.Context, q *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error {
	root, ok := authprobe.Expand(projectsDir, q.GetCaller())
	if !ok {
		return nil
	}
	return sessionfile.List(ctx, q, sessionfile.Find(root, "*/chats/*.jsonl"), summarize, yield)
}

// summarize reads the head of a session; nil if nobody has said anything in it.
func summarize(_ context.Context, file sessionfile.File) (*pluginapi.SessionSummary, error) {
	lines, err := sessionfile.Open(file.Path)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	var s *pluginapi.SessionSummary
	for n := 0; n < 200 && lines.Next(); n++ {
		doc, err := jsonl.ParseObject(lines.Line)
		if err != nil {
			continue
		}
		if s == nil {
			s = &pluginapi.SessionSummary{
				Id: file.Name(), Path: file.Path, Cwd: doc.Text("cwd"),
				UpdatedUnixMs: file.Modified.UnixMilli(), Bytes: uint64(file.Size),
			}
			if at, ok := sessionfile.Time(doc.Value); ok {
				s.CreatedUnixMs = at.UnixMilli()
			}
		}
		if s.Title == "" && doc.Text("type") == "user" {
			s.Title, _, _ = strings.Cut(strings.TrimSpace(parts(doc.Value)), "\n")
		}
		if s.Model == "" {
			s.Model = doc.Text("model")
		}
		doc.Release()
		if s.Title != "" && s.Model != "" {
			break
		}
	}
	if s == nil || s.Title == "" {
		return nil, nil
	}
	return s, nil
}

// parts is the text of a stored message.
func parts(line jsonl.Value) string {
	var texts []string
	for _, part := range line.Items("message", "parts") {
		if part.IsString("text") && !part.Bool("thought") {
			texts = append(texts, part.Text("text"))
		}
	}
	return strings.Join(texts, "\n")
}

// tree says that only what somebody said ends a conversation.
var tree = sessionfile.Tree{ID: "uuid", Parent: "parentUuid", Leaf: func(line jsonl.Value) bool {
	return line.Text("type") != "system"
}}

// ReadSession gives a stored session as events: the active branch, or everything.
func (Adapter) ReadSession(ctx context.Context, q *pluginapi.SessionQuery, yield func(pluginapi.Payload, time.Time) bool) error {
	id := q.GetSessionId()
	notFound := pluginapi.Errorf(pluginapi.CodeSessionNotFound, "qwen has no session %q", id)
	root, ok := authprobe.Expand(projectsDir, q.GetCaller())
	if !ok || !sessionIDRule.MatchString(id) {
		return notFound
	}
	files := sessionfile.Find(root, "*/chats/"+id+".jsonl")
	if len(files) == 0 {
		return notFound
	}
	r := &sessionReader{id: id, Stored: turn.Stored{Yield: yield}}
	err := tree.Read(ctx, files[0].Path, q.GetAllBranches(), sessionfile.Visit{
		Line: func(line jsonl.Value) bool { r.line(line); return !r.Stopped },
		Long: r.Long,
	})
	if err != nil {
		return err
	}
	if r.begun {
		r.End(id)
	}
	return nil
}

// sessionReader makes events of the lines of one session.
type sessionReader struct {
	turn.Stored
	id string

	begun bool
}

func (r *sessionReader) line(line jsonl.Value) {
	if at, ok := sessionfile.Time(line); ok {
		r.At = at
	}
	if !r.begun {
		r.begun = true
		r.Event(pluginapi.SessionStart{SessionID: r.id, Version: line.Text("version")})
	}
	switch line.Text("type") {
	case "user":
		if text := parts(line); text != "" {
			r.Prompt(line.Text("uuid"), text)
		}
	case "assistant":
		r.assistant(line)
	case "tool_result":
		for _, part := range line.Items("message", "parts") {
			response := part.Get("functionResponse")
			t := r.StartTool(response.Text("id"), response.Text("name"), "", r)
			if t == nil {
				continue
			}
			text := response.Text("response", "output")
			failed := line.Text("toolCallResult", "status") == "error"
			if failed && text == "" {
				text = response.Text("response", "error")
			}
			r.EndTool(t, result(t, text, failed), r)
		}
	}
}

func (r *sessionReader) assistant(line jsonl.Value) {
	s := r.Main()
	for _, part := range line.Items("message", "parts") {
		call := part.Get("functionCall")
		switch {
		case call.IsObject():
			if t := r.StartTool(call.Text("id"), call.Text("name"), "", r); t != nil {
				r.ReadyTool(t, call.Raw("args"), detail(t.Name, call.Get("args")), r)
			}
		case part.Bool("thought"):
			s.End(r)
			s.Think(part.Text("text"), r)
			s.End(r)
		case part.Text("text") != "":
			s.End(r)
			s.Text(line.Text("uuid"), part.Text("text"), r)
			s.End(r)
		}
	}
	if u := line.Get("usageMetadata"); u.IsObject() {
		event := pluginapi.TokenUsage{
			InputTokens: u.IntPtr("promptTokenCount"), OutputTokens: u.IntPtr("candidatesTokenCount"),
			ThinkingTokens: u.IntPtr("thoughtsTokenCount"), CacheReadTokens: u.IntPtr("cachedContentTokenCount"),
			Model: line.Text("model"),
		}
		if event.InputTokens != nil && event.CacheReadTokens != nil {
			input := max(*event.InputTokens-*event.CacheReadTokens, 0)
			event.InputTokens = &input
		}
		r.Event(event)
	}
}
