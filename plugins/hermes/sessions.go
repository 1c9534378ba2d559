package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/sessionfile"
	"github.com/amux-dev/amux/sdk/turn"
)

var sessionIDRule = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// export is what the CLI exports of its sessions: they are in a database whose form
// changes. An export makes the database where there is none, and renews an old one; a
// list only reads it, and fails where it is too old. So that is asked for first. There
// is no output where there are no sessions.
func export(results []*pluginapi.ExecResult, args ...string) (io.ReadCloser, error) {
	if len(results) == 0 {
		return nil, &sdk.ExecNeeded{Argv: []string{"hermes", "sessions", "list", "--limit", "1"}}
	}
	if list := results[0]; list.GetExitCode() != 0 {
		return nil, failed(list, list.GetStdout())
	} else if bytes.HasPrefix(list.GetStdout(), []byte("No sessions found.")) {
		return nil, nil
	}
	if len(results) == 1 {
		return nil, &sdk.ExecNeeded{Argv: append([]string{"hermes", "sessions", "export", "-"}, args...), ToFile: true}
	}
	output, err := sdk.OpenOutput(results[1])
	if err != nil {
		return nil, err
	}
	// What it will not export, as a session of too many messages, it says in its place.
	in := bufio.NewReader(output)
	begin, err := in.Peek(1)
	if results[1].GetExitCode() != 0 || err == nil && begin[0] != '{' {
		said, _ := io.ReadAll(io.LimitReader(in, 4096))
		if bytes.HasPrefix(said, []byte("No session '")) {
			return nil, output.Close()
		}
		return nil, errors.Join(failed(results[1], said), output.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{in, output}, nil
}

// failed is the error of a command that says why on its stdout.
func failed(result *pluginapi.ExecResult, said []byte) error {
	command := strings.Join(result.GetArgv(), " ")
	if result.GetExitCode() < 0 {
		return pluginapi.Errorf(pluginapi.CodeAgentFailed, "%s could not be run, took too long or has filled the disk", command)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(said), "?")), "\n")
	return pluginapi.Errorf(pluginapi.CodeAgentFailed, "%s failed: %.500s", command, line)
}

func misread(err error) error {
	return pluginapi.Errorf(pluginapi.CodeParse, "what hermes sessions export prints is not understood: %v", err)
}

// ListSessions reads the list out of an export of all sessions, the newest first: what
// the CLI has for a list lacks their folders.
func (adapter) ListSessions(ctx context.Context, q *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error {
	output, err := export(q.GetExecResults())
	if err != nil || output == nil {
		return err
	}
	defer output.Close()
	dirs, in := sessionfile.Dirs(q), json.NewDecoder(output)
	for sent := uint32(0); ctx.Err() == nil; {
		s, err := summarize(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return misread(err)
		}
		if s == nil || len(dirs) > 0 && !slices.Contains(dirs, s.Cwd) {
			continue
		}
		if sent++; !yield(s) || sent == q.GetLimit() {
			return nil
		}
	}
	return ctx.Err()
}

// summarize reads what a list shows of the next session; nil if it is not one that the
// user would go on with, or nobody has said anything in it.
func summarize(in *json.Decoder) (*pluginapi.SessionSummary, error) {
	title, turns := "", uint32(0)
	h, err := session(in, nil, func(m jsonl.Value) bool {
		if m.Text("role") == "user" && active(m) {
			turns++
			if title == "" {
				title, _, _ = strings.Cut(words(m), "\n")
			}
		}
		return true
	})
	if err != nil || turns == 0 || h.Hidden+h.Archived > 0 || h.Source == "tool" || bytes.Contains(h.Config, []byte("_delegate_from")) {
		return nil, err
	}
	return &pluginapi.SessionSummary{
		Id: h.ID, Title: cmp.Or(h.Title, title), Cwd: h.Cwd, Model: h.Model, ForkedFrom: h.Parent, Turns: turns,
		CreatedUnixMs: moment(h.Started).UnixMilli(), UpdatedUnixMs: moment(cmp.Or(h.LastActive, h.Started)).UnixMilli(),
	}, nil
}

// ReadSession gives a session as events: what is in its context or, if all branches
// are asked for, also what was taken back or summed up.
func (adapter) ReadSession(ctx context.Context, q *pluginapi.SessionQuery, yield func(pluginapi.Payload, time.Time) bool) error {
	id := q.GetSessionId()
	notFound := pluginapi.Errorf(pluginapi.CodeSessionNotFound, "hermes has no session %q", id)
	if !sessionIDRule.MatchString(id) {
		return notFound
	}
	output, err := export(q.GetExecResults(), "--session-id", id)
	if err != nil {
		return err
	}
	if output == nil {
		return notFound
	}
	defer output.Close()
	r := &sessionReader{Stored: turn.Stored{Yield: yield}}
	h, err := session(json.NewDecoder(output), func(h head) bool {
		if h.ID != id { // it takes the beginning of an id for it
			return false
		}
		r.At = moment(h.Started)
		r.Event(pluginapi.SessionStart{SessionID: id, Model: h.Model})
		if h.Title != "" {
			r.Event(pluginapi.SessionTitle{Title: h.Title})
		}
		return true
	}, func(m jsonl.Value) bool {
		if q.GetAllBranches() || active(m) {
			r.message(m)
		}
		return !r.Stopped && ctx.Err() == nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return misread(err)
	case h.ID != id:
		return notFound
	}
	r.EndTurn()
	if n := h.Input + h.Output + h.CacheRead + h.CacheWrite; n > 0 {
		r.Event(pluginapi.TokenUsage{InputTokens: &h.Input, OutputTokens: &h.Output, CacheReadTokens: &h.CacheRead, CacheWriteTokens: &h.CacheWrite})
	}
	r.End(id)
	return nil
}

// head is what a session has besides its messages.
type head struct {
	ID, Title, Cwd, Model, Parent, Source string

	Config              json.RawMessage
	Started, LastActive float64 // seconds
	Hidden, Archived    int

	Input, Output, CacheRead, CacheWrite int64
}

func (h *head) field(key string) any {
	switch key {
	case "id":
		return &h.ID
	case "title":
		return &h.Title
	case "cwd":
		return &h.Cwd
	case "model":
		return &h.Model
	case "parent_session_id":
		return &h.Parent
	case "source":
		return &h.Source
	case "model_config":
		return &h.Config
	case "started_at":
		return &h.Started
	case "last_active":
		return &h.LastActive
	case "hidden":
		return &h.Hidden
	case "archived":
		return &h.Archived
	case "input_tokens":
		return &h.Input
	case "output_tokens":
		return &h.Output
	case "cache_read_tokens":
		return &h.CacheRead
	case "cache_write_tokens":
		return &h.CacheWrite
	}
	return new(json.RawMessage)
}

// session reads the next session, {…, "messages": […], …}, of which only one message
// at a time is kept: sessions may be long. The end of all is io.EOF. Begin, which may be
// nil, and each say whether more is wanted of it.
func session(in *json.Decoder, begin func(head) bool, each func(jsonl.Value) bool) (head, error) {
	var h head
	if err := open(in, '{'); err != nil {
		return h, err
	}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return h, cut(err)
		}
		name, _ := key.(string)
		if name != "messages" {
			if err := in.Decode(h.field(name)); err != nil {
				return h, cut(err)
			}
			continue
		}
		if begin != nil && !begin(h) {
			return h, nil
		}
		if more, err := messages(in, each); err != nil || !more {
			return h, cut(err)
		}
	}
	_, err := in.Token()
	return h, cut(err)
}

func messages(in *json.Decoder, each func(jsonl.Value) bool) (more bool, err error) {
	if err := open(in, '['); err != nil {
		return false, err
	}
	var raw json.RawMessage
	for in.More() {
		if err := in.Decode(&raw); err != nil {
			return false, err
		}
		doc, err := jsonl.ParseObject(raw)
		if err != nil {
			return false, err
		}
		more := each(doc.Value)
		doc.Release()
		if !more {
			return false, nil
		}
	}
	_, err = in.Token()
	return true, err
}

func open(in *json.Decoder, delim json.Delim) error {
	token, err := in.Token()
	if err == nil && token != delim {
		err = fmt.Errorf("%v in place of %v", token, delim)
	}
	return err
}

// cut is the error of an end within a session.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// active: what was taken back or summed up stays in the database.
func active(m jsonl.Value) bool {
	n, told := m.Int("active")
	return !told || n != 0
}

// moment is that many seconds after 1970.
func moment(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)) }

// words are what a message says: text, or parts of which some are.
func words(m jsonl.Value) string {
	texts := []string{m.Text("content")}
	for _, part := range m.Items("content") {
		texts = append(texts, part.Text("text"))
	}
	return strings.TrimSpace(strings.Join(texts, ""))
}

// sessionReader makes events of an exported session.
type sessionReader struct{ turn.Stored }

func (r *sessionReader) message(m jsonl.Value) {
	if seconds, ok := m.Float("timestamp"); ok {
		r.At = moment(seconds)
	}
	s := r.Main()
	switch m.Text("role") {
	case "user":
		r.Prompt(m.Text("message_uid"), words(m))
	case "assistant":
		if text := m.Text("reasoning"); text != "" {
			s.Think(text, r)
			s.End(r)
		}
		if text := words(m); text != "" {
			s.Text(m.Text("message_uid"), text, r)
			s.End(r)
		}
		for _, call := range m.Items("tool_calls") {
			r.call(call)
		}
	case "tool":
		if t := r.Tool(m.Text("tool_call_id")); t != nil {
			r.EndTool(t, answer(t.Detail, words(m)), r)
		}
	}
}

func (r *sessionReader) call(call jsonl.Value) {
	t := r.StartTool(call.Text("id"), call.Text("function", "name"), "", r)
	if t == nil {
		return
	}
	doc, err := jsonl.ParseObject(call.Bytes("function", "arguments"))
	if err != nil {
		r.ReadyTool(t, json.RawMessage("{}"), detail(t.Name, jsonl.Value{}), r)
		return
	}
	r.ReadyTool(t, doc.Raw(), detail(t.Name, doc.Value), r)
	doc.Release()
}
