package host

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/amux-dev/amux/internal/program"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Session is a conversation in an agent's own store. What the store does not say is
// left empty.
type Session struct {
	Agent      string     `json:"agent"`
	ID         string     `json:"session_id"`
	Title      string     `json:"title,omitempty"`
	Cwd        string     `json:"cwd,omitempty"`
	Path       string     `json:"path,omitempty"` // file it was read from
	Created    *time.Time `json:"created,omitempty"`
	Updated    *time.Time `json:"updated,omitempty"`
	Turns      int        `json:"turns,omitempty"`
	Model      string     `json:"model,omitempty"`
	ForkedFrom string     `json:"forked_from,omitempty"`
	Bytes      int64      `json:"bytes,omitempty"`
}

// SessionQuery says which sessions Host.Sessions lists.
type SessionQuery struct {
	Agent string
	Cwd   string // those that began in this directory; "": in any
	Limit int    // the newest; 0: all
}

// Sessions lists sessions of one agent, the newest first. It starts the plugin; the
// agent's store is only read.
func (h *Host) Sessions(ctx context.Context, q SessionQuery) ([]Session, error) {
	process, agent, err := h.queries.capable(ctx, q.Agent, "list sessions", (*pluginapi.Capabilities).GetListSessions)
	if err != nil {
		return nil, err
	}
	var sessions []Session
	query := &pluginapi.SessionsQuery{
		Agent: h.catalog.adapter(q.Agent), Caller: caller(agent, h.opts.Env, q.Cwd, nil), AllProjects: q.Cwd == "", Limit: uint32(max(0, q.Limit)),
	}
	dir, remove := h.queries.scratch()
	defer remove()
	err = process.ListSessions(ctx, query, program.Exec(h.queries.command(dir)), func(s *pluginapi.SessionSummary) bool {
		sessions = append(sessions, Session{
			Agent: q.Agent, ID: s.Id, Title: s.Title, Cwd: s.Cwd, Path: s.Path, Created: moment(s.CreatedUnixMs),
			Updated: moment(s.UpdatedUnixMs), Turns: int(s.Turns), Model: s.Model, ForkedFrom: s.ForkedFrom, Bytes: int64(s.Bytes),
		})
		return true
	})
	h.plugins.Hangs(ctx, process, err)
	slices.SortStableFunc(sessions, func(a, b Session) int {
		if a.Updated == nil || b.Updated == nil {
			return 0
		}
		return b.Updated.Compare(*a.Updated)
	})
	return sessions, err
}

// ReadSession calls each for the events of a session, in order, until it returns
// false: those of its active branch, or of all. Events have no run; seq counts them
// from 1. Nothing of the session is kept.
func (h *Host) ReadSession(ctx context.Context, agent, id string, allBranches bool, each func(Event) bool) error {
	process, description, err := h.queries.capable(ctx, agent, "read sessions", (*pluginapi.Capabilities).GetReadSession)
	if err != nil {
		return err
	}
	query := &pluginapi.SessionQuery{
		Agent: h.catalog.adapter(agent), Caller: caller(description, h.opts.Env, h.opts.ProjectDir, nil), SessionId: id, AllBranches: allBranches,
	}
	var seq uint64
	var broken error
	dir, remove := h.queries.scratch()
	defer remove()
	err = process.ReadSession(ctx, query, program.Exec(h.queries.command(dir)), func(s *pb.SessionEvent) bool {
		seq++
		event := Event{Type: pluginapi.Type(s.Type), Seq: seq, Agent: agent}
		if at := moment(s.TimeUnixMs); at != nil {
			event.Time = *at
		}
		if event.Raw = sessionEvent(event, s.Data); event.Raw == nil {
			broken = pluginapi.Errorf(pluginapi.CodePluginCrashed, "the adapter of %s sent a malformed %q event", agent, s.Type)
			return false
		}
		return each(event)
	})
	if broken != nil {
		return broken
	}
	h.plugins.Hangs(ctx, process, err)
	return err
}

// sessionEvent puts what all events have in front of an adapter's object; nil if it
// is no object.
func sessionEvent(e Event, object []byte) json.RawMessage {
	if len(object) < 2 || object[0] != '{' || !json.Valid(object) {
		return nil
	}
	raw := append([]byte(`{"type":`), strconv.AppendQuote(nil, string(e.Type))...)
	raw = strconv.AppendUint(append(raw, `,"seq":`...), e.Seq, 10)
	if !e.Time.IsZero() {
		raw = append(raw, `,"time":"`...)
		raw = append(e.Time.AppendFormat(raw, "2006-01-02T15:04:05.000000Z"), '"')
	}
	raw = append(append(raw, `,"agent":`...), strconv.AppendQuote(nil, e.Agent)...)
	if rest := object[1:]; rest[0] != '}' {
		raw = append(raw, ',')
	}
	return append(raw, object[1:]...)
}

func moment(unixMS int64) *time.Time {
	if unixMS == 0 {
		return nil
	}
	at := time.UnixMilli(unixMS).UTC()
	return &at
}
