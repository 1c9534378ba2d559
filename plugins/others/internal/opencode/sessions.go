package opencode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/turn"
)

var sessionIDRule = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// Sessions are those of OpenCode, whoever drives it.
type Sessions struct{}

// ListSessions asks the CLI: its sessions are in a database whose form changes.
func (Sessions) ListSessions(ctx context.Context, q *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error {
	results := q.GetExecResults()
	if len(results) == 0 {
		return &sdk.ExecNeeded{Argv: []string{"opencode", "session", "list", "--format", "json"}, ToFile: true}
	}
	if code := results[0].GetExitCode(); code != 0 {
		return pluginapi.Errorf(pluginapi.CodeAgentFailed, "opencode session list failed with code %d", code)
	}
	output, err := sdk.OpenOutput(results[0])
	if err != nil {
		return err
	}
	defer output.Close()
	list := json.NewDecoder(output)
	err = open(list, '[')
	if errors.Is(err, io.EOF) {
		return ctx.Err() // nothing is printed where there is none
	}
	sent := uint32(0)
	next := func() (more bool, err error) {
		var s struct {
			ID, Title, Directory string
			Updated, Created     int64
		}
		if err := list.Decode(&s); err != nil {
			return false, err
		}
		if !q.GetAllProjects() && s.Directory != q.GetCaller().GetCwd() {
			return true, nil
		}
		sent++
		return yield(&pluginapi.SessionSummary{Id: s.ID, Title: s.Title, Cwd: s.Directory, CreatedUnixMs: s.Created, UpdatedUnixMs: s.Updated}) &&
			(q.GetLimit() == 0 || sent < q.GetLimit()), nil
	}
	if err == nil {
		err = elements(list, next)
	}
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "what opencode session list prints is not understood: %v", err)
	}
	return ctx.Err()
}

// ReadSession asks the CLI to export the session, and reads it a message at a time.
func (Sessions) ReadSession(ctx context.Context, q *pluginapi.SessionQuery, yield func(pluginapi.Payload, time.Time) bool) error {
	id := q.GetSessionId()
	notFound := pluginapi.Errorf(pluginapi.CodeSessionNotFound, "opencode has no session %q", id)
	if !sessionIDRule.MatchString(id) {
		return notFound
	}
	results := q.GetExecResults()
	if len(results) == 0 {
		return &sdk.ExecNeeded{Argv: []string{"opencode", "export", id}, ToFile: true}
	}
	switch code := results[0].GetExitCode(); {
	case code < 0:
		return pluginapi.Errorf(pluginapi.CodeAgentFailed, "opencode export %s could not be run, took too long or has filled the disk", id)
	case code > 0:
		return notFound
	}
	output, err := sdk.OpenOutput(results[0])
	if err != nil {
		return err
	}
	defer output.Close()
	r := &sessionReader{yield: yield, id: id}
	if err := r.read(json.NewDecoder(output)); err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "what opencode export prints of session %q is not understood: %v", id, err)
	}
	return ctx.Err()
}

// elements calls next for each element of an array that was opened, until it says
// that there is no need of more.
func elements(in *json.Decoder, next func() (more bool, err error)) error {
	for in.More() {
		if more, err := next(); err != nil || !more {
			return err
		}
	}
	_, err := in.Token()
	return err
}

func open(in *json.Decoder, delim json.Delim) error {
	token, err := in.Token()
	if err == nil && token != delim {
		err = fmt.Errorf("%v in place of %v", token, delim)
	}
	return err
}

// sessionReader makes events of an exported session.
type sessionReader struct {
	turn.Writer
	yield   func(pluginapi.Payload, time.Time) bool
	id      string
	begun   bool
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

// read reads {"info": {…}, "messages": […]}, in which only one message at a time is
// kept: sessions may be long.
func (r *sessionReader) read(in *json.Decoder) error {
	if err := open(in, '{'); err != nil {
		return err
	}
	var raw json.RawMessage
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return err
		}
		switch key {
		case "info":
			err = part(in, &raw, r.begin)
		case "messages":
			if err = open(in, '['); err == nil {
				err = elements(in, func() (bool, error) {
					err := part(in, &raw, r.message)
					return !r.stopped, err
				})
			}
		default:
			err = in.Decode(&raw)
		}
		if err != nil || r.stopped {
			return err
		}
	}
	if _, err := in.Token(); err != nil {
		return err
	}
	r.endTurn()
	r.Event(pluginapi.SessionEnd{SessionID: r.id, TurnCount: r.turns})
	return nil
}

// part reads an object by way of a buffer.
func part(in *json.Decoder, raw *json.RawMessage, read func(jsonl.Value)) error {
	if err := in.Decode(raw); err != nil {
		return err
	}
	doc, err := jsonl.ParseObject(*raw)
	if err == nil {
		read(doc.Value)
		doc.Release()
	}
	return err
}

func (r *sessionReader) begin(info jsonl.Value) {
	r.begun = true
	r.time(info, "time", "created")
	r.Event(pluginapi.SessionStart{SessionID: r.id, Version: info.Text("version"), Model: info.Text("model", "id")})
	if title := info.Text("title"); title != "" {
		r.Event(pluginapi.SessionTitle{Title: title})
	}
}

func (r *sessionReader) message(m jsonl.Value) {
	if !r.begun {
		r.begun = true
		r.Event(pluginapi.SessionStart{SessionID: r.id})
	}
	r.time(m, "info", "time", "created")
	if m.Text("info", "role") == "user" {
		r.user(m)
	} else {
		r.assistant(m)
	}
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
