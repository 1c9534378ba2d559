// Package acpagent is amux as an agent of the Agent Client Protocol: an editor drives any
// adapter of amux by it.
//
// A session is a detached run, a conversation, with the run's id. What an editor is told is
// made of the run's events (translator), so it is the same live, for a second editor, and
// when a session is loaded again. Nothing is lost with this process.
package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/follow"
	"github.com/amux-dev/amux/cmd/amux/internal/app"
	command "github.com/amux-dev/amux/cmd/amux/internal/cli/acp"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/run"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// agent answers what clients ask.
type agent struct {
	app     *app.App
	options *command.Options
	host    app.Host
	follows *follow.Follower
	client  client
	ctx     context.Context // ends with the client

	mu       sync.Mutex
	sessions map[string]*session           // that the client has opened, by run
	listed   map[string][]*pluginapi.Model // the models that agents have named, by agent
}

// sessionsInPage is how many sessions a list has at once.
const sessionsInPage = 50

// Serve serves one client on the streams of the process, until stdin ends.
func Serve(a *app.App, o *command.Options) error {
	h, err := a.Opener.Host()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if o.Agent != "" { // before an editor shows a session of nothing
		if _, err := h.Agent(ctx, o.Agent); err != nil {
			return err
		}
	}
	g := &agent{app: a, options: o, host: h, follows: follow.New(a, h), ctx: ctx, sessions: map[string]*session{}, listed: map[string][]*pluginapi.Model{}}
	conn, begin := connect(g.methods(), a.IO.Out, a.IO.In)
	g.client.conn = conn
	begin()
	sigs, stop := a.Signals()
	defer stop()
	for {
		select {
		case <-g.client.conn.Done():
			return nil
		case sig := <-sigs:
			if !app.IsSuspend(sig) {
				return nil
			}
			app.Suspend()
		}
	}
}

// methods are those that the agent has.
func (g *agent) methods() map[string]method {
	return map[string]method{
		acp.AgentMethodInitialize: func(_ context.Context, params json.RawMessage) (any, error) {
			g.client.learn(params)
			return g.initialize(), nil
		},
		acp.AgentMethodAuthenticate:           answer(g.authenticate),
		acp.AgentMethodSessionNew:             answer(g.newSession),
		acp.AgentMethodSessionLoad:            answer(g.loadSession),
		acp.AgentMethodSessionResume:          answer(g.resumeSession),
		acp.AgentMethodSessionList:            answer(g.listSessions),
		acp.AgentMethodSessionClose:           answer(g.closeSession),
		"session/delete":                      answer(g.deleteSession),
		acp.AgentMethodSessionPrompt:          answer(g.prompt),
		acp.AgentMethodSessionCancel:          told(g.cancel),
		acp.AgentMethodSessionSetMode:         answer(g.setMode),
		acp.AgentMethodSessionSetConfigOption: answer(g.setConfigOption),
	}
}

// failed is an error of amux as one of the protocol.
func failed(err error) *acp.RequestError {
	if refused, ok := errors.AsType[*acp.RequestError](err); ok {
		return refused
	}
	if errors.Is(err, context.Canceled) {
		return acp.NewRequestCancelled(nil)
	}
	e := pluginapi.AsError(err)
	message := e.Msg
	if e.Hint != "" {
		message += " (" + e.Hint + ")"
	}
	code := -32603
	switch e.Code {
	case pluginapi.CodeValidation, pluginapi.CodeConfig, pluginapi.CodeCapability, pluginapi.CodeAgentNotFound:
		code = -32602
	case pluginapi.CodeAuth:
		code = -32000
	}
	return &acp.RequestError{Code: code, Message: message, Data: map[string]any{"code": string(e.Code)}}
}

// initialize says what amux can do for the client.
func (g *agent) initialize() initialized {
	title := "amux"
	if g.options.Agent != "" {
		title += " " + g.options.Agent
	}
	out := initialized{ProtocolVersion: 1, AgentInfo: acp.Implementation{Name: "amux", Title: &title, Version: g.app.Version}, AuthMethods: []acp.AuthMethod{}}
	out.Capabilities.LoadSession = true
	out.Capabilities.Prompt = acp.PromptCapabilities{EmbeddedContext: true}
	out.Capabilities.MCP = acp.McpCapabilities{Http: true, Sse: true}
	return out
}

// authenticate is for agents that the client signs in; those of amux are signed in by
// themselves.
func (g *agent) authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, app.Usagef("amux signs in nobody").WithHint("sign in the agent itself: amux agents auth AGENT")
}

// newSession starts a run.
func (g *agent) newSession(ctx context.Context, in acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	id, err := g.start(ctx, run.Task{Cwd: in.Cwd, AddDirs: in.AdditionalDirectories, MCP: servers(in.McpServers)})
	if err != nil {
		return acp.NewSessionResponse{}, err
	}
	s := g.open(&session{id: acp.SessionId(id), first: id}, []string{id}, 1, false)
	now := s.settings(ctx)
	return acp.NewSessionResponse{SessionId: acp.SessionId(id), Modes: now.modes(), ConfigOptions: now.options()}, nil
}

// start starts a run for a session.
func (g *agent) start(ctx context.Context, t run.Task) (string, error) {
	for _, dir := range append([]string{t.Cwd}, t.AddDirs...) {
		if !filepath.IsAbs(dir) {
			return "", app.Usagef("invalid folder %q: expected an absolute path", dir)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return "", app.Usagef("there is no folder %q", dir)
		}
	}
	t.Agent, t.Approve, t.Driver = g.options.Agent, g.options.Approve, g.options.Driver
	if t.Model == "" {
		t.Model = g.options.Model
	}
	t.Conversation, t.Tags = true, append([]string{command.Tag}, t.Tags...)
	return run.Start(ctx, g.app, t)
}

// servers are the MCP servers of a client.
func servers(in []acp.McpServer) (out []host.MCPServer) {
	for _, s := range in {
		switch {
		case s.Stdio != nil:
			env := map[string]string{}
			for _, v := range s.Stdio.Env {
				env[v.Name] = v.Value
			}
			out = append(out, host.MCPServer{Name: s.Stdio.Name, Transport: "stdio", Command: s.Stdio.Command, Args: s.Stdio.Args, Env: env})
		case s.Http != nil:
			out = append(out, host.MCPServer{Name: s.Http.Name, Transport: "http", URL: s.Http.Url, Headers: headers(s.Http.Headers)})
		case s.Sse != nil:
			out = append(out, host.MCPServer{Name: s.Sse.Name, Transport: "sse", URL: s.Sse.Url, Headers: headers(s.Sse.Headers)})
		}
	}
	return out
}

func headers(in []acp.HttpHeader) map[string]string {
	out := map[string]string{}
	for _, h := range in {
		out[h.Name] = h.Value
	}
	return out
}

// loadSession sends all that happened, then goes on with what comes.
func (g *agent) loadSession(ctx context.Context, in acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	r, err := g.find(ctx, string(in.SessionId))
	if err != nil {
		return acp.LoadSessionResponse{}, err
	}
	first, runs := g.runs(ctx, r.Info())
	s := g.open(&session{id: in.SessionId, first: first}, runs, 1, true)
	select {
	case <-s.shown:
	case <-ctx.Done():
		return acp.LoadSessionResponse{}, ctx.Err()
	}
	now := s.settings(ctx)
	return acp.LoadSessionResponse{Modes: now.modes(), ConfigOptions: now.options()}, nil
}

// resumeSession goes on with what comes.
func (g *agent) resumeSession(ctx context.Context, in acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	r, err := g.find(ctx, string(in.SessionId))
	if err != nil {
		return acp.ResumeSessionResponse{}, err
	}
	first, runs := g.runs(ctx, r.Info())
	last := runs[len(runs)-1:]
	if r, err = g.find(ctx, last[0]); err != nil {
		return acp.ResumeSessionResponse{}, err
	}
	info := r.Info()
	s := g.open(&session{id: in.SessionId, first: first, active: inTurn(info)}, last, info.Events+1, false)
	for _, q := range r.Questions() {
		s.ask(q.ID)
	}
	now := s.settings(ctx)
	return acp.ResumeSessionResponse{Modes: now.modes(), ConfigOptions: now.options()}, nil
}

// find opens the run of a session, and finds it a host if it has lost its own.
func (g *agent) find(ctx context.Context, id string) (app.Recorded, error) {
	r, err := g.host.Open(ctx, id)
	if err != nil || r.ID() != id {
		return nil, app.Usagef("there is no session %q", render.String(id))
	}
	if r.Info().End == nil {
		g.follows.Rescue(ctx, id)
		return g.host.Open(ctx, id)
	}
	return r, nil
}

// tagOf is the tag of the runs in which a session went on, behind the end of the run that it began with.
func tagOf(first string) string { return command.Tag + "-" + first }

// firstOf is the run that the session of a run has begun with.
func firstOf(i host.RunInfo) string {
	for _, tag := range i.Tags {
		if id, ok := strings.CutPrefix(tag, tagOf("")); ok {
			return id
		}
	}
	return i.ID
}

// runs are the runs of a session, from the given one on, the oldest first; and the one that it has
// begun with.
func (g *agent) runs(ctx context.Context, from host.RunInfo) (first string, runs []string) {
	first = firstOf(from)
	for i, err := range g.host.RunsBefore(ctx, "", false) { // the newest first
		if err != nil || i.ID <= from.ID {
			break
		}
		if slices.Contains(i.Tags, tagOf(first)) {
			runs = append(runs, i.ID)
		}
	}
	slices.Reverse(runs)
	return first, append([]string{from.ID}, runs...)
}

// open follows the runs of a session for the client, in place of what followed it before. from is of
// the first of them.
func (g *agent) open(s *session, runs []string, from uint64, replay bool) *session {
	last := runs[len(runs)-1]
	s.agent, s.run, s.shown, s.asked = g, last, make(chan struct{}), map[string]context.CancelFunc{}
	s.ctx, s.cancel = context.WithCancel(g.ctx)
	s.mu.Lock() // a prompt may come as soon as it is known
	defer s.mu.Unlock()
	g.mu.Lock()
	old := g.sessions[string(s.id)]
	if old != nil {
		old.mu.Lock()
		s.model, s.approve = old.model, old.approve
		old.mu.Unlock()
	}
	g.sessions[string(s.id)] = s
	g.mu.Unlock()
	if old != nil {
		old.cancel()
	}
	for _, id := range runs {
		known := func() {}
		if id == last {
			known = sync.OnceFunc(func() { close(s.shown) })
		}
		s.begin(id, from, replay, known)
		from = 1
	}
	return s
}

// session is one that the client has opened.
func (g *agent) session(id acp.SessionId) (*session, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sessions[string(id)]
	if s == nil {
		return nil, app.Usagef("session %q is not open", render.String(string(id))).WithHint("load or resume it first")
	}
	return s, nil
}

// listSessions lists the runs that were started through ACP, the newest first.
func (g *agent) listSessions(ctx context.Context, in acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	before := ""
	if in.Cursor != nil {
		before = *in.Cursor
	}
	out := acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
	latest := map[string]host.RunInfo{} // in which sessions went on, by the first run
	for i, err := range g.host.RunsBefore(ctx, before, false) {
		switch {
		case err != nil:
			return acp.ListSessionsResponse{}, err
		case !slices.Contains(i.Tags, command.Tag), g.options.Agent != "" && i.Agent != g.options.Agent,
			in.Cwd != nil && filepath.Clean(*in.Cwd) != filepath.FromSlash(i.Cwd), in.Cursor != nil && i.ID >= *in.Cursor:
			continue
		case g.goesOn(ctx, i):
			if first := firstOf(i); latest[first].ID == "" {
				latest[first] = i
			}
			continue
		case len(out.Sessions) == sessionsInPage:
			last := string(out.Sessions[sessionsInPage-1].SessionId)
			out.NextCursor = &last
			return out, nil
		}
		info := acp.SessionInfo{SessionId: acp.SessionId(i.ID), Cwd: filepath.FromSlash(i.Cwd)}
		if title := render.Excerpt(i.Prompt, 80); title != "" {
			info.Title = &title
		}
		if later, ok := latest[i.ID]; ok {
			i = later
		}
		updated := i.Created
		if i.Ended != nil {
			updated = *i.Ended
		}
		at := updated.UTC().Format(time.RFC3339)
		info.UpdatedAt = &at
		out.Sessions = append(out.Sessions, info)
	}
	return out, nil
}

// goesOn reports whether a session that is there goes on in a run.
func (g *agent) goesOn(ctx context.Context, i host.RunInfo) bool {
	first := firstOf(i)
	if first == i.ID {
		return false
	}
	r, err := g.host.Open(ctx, first)
	return err == nil && r.ID() == first
}

// closeSession ends the conversation.
func (g *agent) closeSession(ctx context.Context, in acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	s, err := g.session(in.SessionId)
	if err != nil {
		return acp.CloseSessionResponse{}, err
	}
	g.mu.Lock()
	delete(g.sessions, string(in.SessionId))
	g.mu.Unlock()
	s.cancel()
	r, err := g.find(ctx, s.runID())
	if err != nil || r.Info().End != nil {
		return acp.CloseSessionResponse{}, err
	}
	_ = r.Interrupt(ctx) // where a turn goes on
	if err := r.End(ctx); err != nil && !errors.Is(err, pluginapi.CodeRunNotActive) {
		return acp.CloseSessionResponse{}, err
	}
	return acp.CloseSessionResponse{}, nil
}

// deletionTime is how long a run may take to stop before its record is deleted.
const deletionTime = 30 * time.Second

// deleteSession stops the run, if it goes on, and deletes the records of the session. A session that there
// is not is deleted already.
func (g *agent) deleteSession(ctx context.Context, in deleteSession) (deleted struct{}, _ error) {
	g.mu.Lock()
	s := g.sessions[string(in.ID)]
	delete(g.sessions, string(in.ID))
	g.mu.Unlock()
	if s != nil {
		s.cancel()
	}
	r, err := g.host.Open(ctx, string(in.ID))
	if err != nil || r.ID() != string(in.ID) {
		return deleted, nil
	}
	_, ids := g.runs(ctx, r.Info())
	for _, id := range slices.Backward(ids) { // what is left, if one cannot be deleted, is the session still
		r, err := g.host.Open(ctx, id)
		if err != nil || r.ID() != id || !slices.Contains(r.Info().Tags, command.Tag) {
			continue
		}
		if r.Info().End == nil {
			if _, err := g.host.Cancel(ctx, id, false); err != nil {
				return deleted, err
			}
			waiting, cancel := context.WithTimeout(ctx, deletionTime)
			_, _ = r.Wait(waiting) // how it ended does not matter
			cancel()
		}
		if _, err := g.host.Delete(ctx, id); err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// cancel interrupts the agent's turn.
func (g *agent) cancel(ctx context.Context, in acp.CancelNotification) error {
	s, err := g.session(in.SessionId)
	if err != nil {
		return err
	}
	return s.interrupt(ctx)
}

// prompt sends a prompt, and returns at the end of its turn.
func (g *agent) prompt(ctx context.Context, in acp.PromptRequest) (acp.PromptResponse, error) {
	s, err := g.session(in.SessionId)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	text, err := textOf(in.Prompt)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	reason, err := s.prompt(ctx, text)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	return acp.PromptResponse{StopReason: reason}, nil
}

// textOf is a prompt as a text: the files that it names by their paths, those that it holds
// with what is in them.
func textOf(blocks []acp.ContentBlock) (string, error) {
	var b strings.Builder
	for _, block := range blocks {
		switch {
		case block.Text != nil:
			b.WriteString(block.Text.Text)
		case block.ResourceLink != nil:
			b.WriteString(pathOf(block.ResourceLink.Uri))
		case block.Resource != nil && block.Resource.Resource.TextResourceContents != nil:
			r := block.Resource.Resource.TextResourceContents
			b.WriteString("\n\n" + pathOf(r.Uri) + ":\n```\n" + r.Text + "\n```\n\n")
		default:
			return "", app.Usagef("a prompt may hold texts, links and text files only").WithHint("name the file in the prompt")
		}
	}
	if strings.TrimSpace(b.String()) == "" {
		return "", app.Usagef("no prompt")
	}
	return b.String(), app.CheckPrompt(b.String())
}

// pathOf is the path of a file's address, or the address.
func pathOf(uri string) string {
	if path, ok := strings.CutPrefix(uri, "file://"); ok {
		return path
	}
	return uri
}
