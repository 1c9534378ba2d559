// Package mcpserver serves MCP: tools with which agents and other programs start runs,
// follow them and control them.
//
// A call sees only the runs within the scope of the server; the host that it has been
// given shows no others. Each call reads the record of a run, so the server keeps nothing
// that could be lost with it. Texts and events are bounded: a cursor goes on.
package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/follow"
	"github.com/amux-dev/amux/cmd/amux/internal/app"
	command "github.com/amux-dev/amux/cmd/amux/internal/cli/mcp"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/run"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// server is what the tools share.
type server struct {
	app     *app.App
	host    app.Host
	allowed func(run.Task) error // what may be started; nil: anything
	caller  *host.RunInfo        // that the client is inside of; nil outside runs
	follows *follow.Follower
}

const instructions = `Tools to run coding agents. run_start starts one and returns its id at once; run_wait waits and
returns how far it is, with its last answer; run_read returns more of what it did. Runs go on without you until
run_stop. You see the runs that you have started, and those below them.`

// Serve serves MCP on the streams of the process, until stdin ends.
func Serve(a *app.App, o *command.Options) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, answer, err := open(ctx, a, o)
	if err != nil {
		return err
	}
	err = s.tools(answer).Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(a.IO.In), Writer: noClose{a.IO.Out}})
	if err != nil && ctx.Err() == nil {
		return pluginapi.Errorf(pluginapi.CodeValidation, "MCP on stdin: %w", err)
	}
	return nil
}

// Handler serves MCP over HTTP, streamable and without sessions, so that nothing is lost
// with the server. Who may ask is decided before; allowed decides what may be started. Its
// host ends with the process.
func Handler(a *app.App, allowed func(run.Task) error) (http.Handler, error) {
	own := app.New(a.Process) // whose host shows what the scope allows
	*own.Flags = *a.Flags
	s, answer, err := open(context.Background(), own, &command.Options{})
	if err != nil {
		return nil, err
	}
	s.allowed = allowed
	tools := s.tools(answer)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{Stateless: true}), nil
}

type noClose struct{ io.Writer }

func (noClose) Close() error { return nil }

// open finds out what the client may do, and opens the host that shows that.
func open(ctx context.Context, a *app.App, o *command.Options) (*server, bool, error) {
	set, err := a.Config.User()
	if err != nil {
		return nil, false, err
	}
	s, grant, answer, inside := &server{app: a}, o.Grant, o.Answer, a.Inside()
	if inside != "" || len(grant) == 0 && !answer {
		grant, answer = set.MCP.Grant, set.MCP.Answer
	}
	all := app.New(a.Process)
	*all.Flags = *a.Flags
	all.Opener.Widen(app.Scope{})
	defer all.Opener.Close()
	h, err := all.Opener.ForRuns()
	if err != nil {
		return nil, false, err
	}
	resolve := func(ref string) (host.RunInfo, error) {
		r, err := h.Open(ctx, ref)
		if err != nil {
			return host.RunInfo{}, err
		}
		return r.Info(), nil
	}
	if inside != "" {
		info, err := resolve(inside)
		if err != nil {
			return nil, false, pluginapi.Errorf(pluginapi.CodeValidation, "AMUX_RUN_ID names %q, and there is no such run", inside).
				WithHint("outside runs, leave the variable unset")
		}
		s.caller = &info
	}
	scope, err := command.Scope(inside, grant, resolve)
	if err != nil {
		return nil, false, err
	}
	a.Opener.Widen(scope)
	if s.host, err = a.Opener.ForRuns(); err != nil {
		return nil, false, err
	}
	s.follows = follow.New(a, s.host)
	return s, answer, nil
}

// problem is the error of a tool: JSON, as everywhere in amux.
type problem struct {
	Code    pluginapi.Code `json:"code"`
	Message string         `json:"message"`
	Hint    string         `json:"hint,omitempty"`
}

func (p problem) Error() string {
	text, _ := json.Marshal(p) // strings alone
	return string(text)
}

func problemOf(err error) problem {
	e := pluginapi.AsError(err)
	return problem{e.Code, e.Msg, e.Hint}
}

// add adds a tool. Its errors are problems.
func add[In, Out any](to *mcp.Server, name, does string, hints mcp.ToolAnnotations, do func(ctx context.Context, progress func(float64, string), in In) (Out, error)) {
	tool := &mcp.Tool{Name: name, Description: does, Annotations: &hints, InputSchema: schema[In](), OutputSchema: schema[Out]()}
	mcp.AddTool(to, tool, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		progress := func(n float64, message string) {
			if token := req.Params.GetProgressToken(); token != nil {
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: message}) // a courtesy
			}
		}
		out, err := do(ctx, progress, in)
		if err != nil {
			err = problemOf(err)
		}
		return nil, out, err
	})
}

func (s *server) tools(answer bool) *mcp.Server {
	no, yes := false, true
	reads := mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &no, OpenWorldHint: &no}
	acts := mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &yes}
	says := mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &yes}
	ends := mcp.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &no}
	can := &mcp.ServerCapabilities{}
	can.AddExtension(tasksExtension, nil)
	m := mcp.NewServer(&mcp.Implementation{Name: "amux", Version: s.app.Version}, &mcp.ServerOptions{Instructions: instructions, Capabilities: can})
	add(m, "agents_list", "List the agents that can be run here.", reads, s.agents)
	add(m, "run_start", "Start a run of a coding agent. It returns the run's id at once, then use run_wait; or with wait when the run has ended or asks something.", acts, s.start)
	add(m, "run_wait", "Wait until runs have ended or wait for an answer, and return the state, last answer and cost of each.", reads, s.wait)
	add(m, "run_list", "List runs, the newest first.", reads, s.list)
	add(m, "run_read", "Read what a run did, from a position on: its events, or the text of its answers.", reads, s.read)
	add(m, "run_diff", "Show what a run has changed in its git work tree.", reads, s.diff)
	add(m, "run_send", "Send another prompt to a run that was started as a conversation; or end the conversation.", says, s.send)
	add(m, "run_stop", "Stop a run. The record and the changed files stay.", ends, s.stop)
	if answer {
		add(m, "run_questions", "List what the agents of runs ask and wait for.", reads, s.questions)
		add(m, "run_answer", "Approve or deny what an agent asks permission for, or answer its question.", acts, s.answer)
	}
	if err := s.addTasks(m, answer); err != nil {
		panic(err) // one of its methods became a standard one: every test sees it
	}
	return m
}
