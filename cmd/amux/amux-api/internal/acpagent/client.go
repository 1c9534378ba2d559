package acpagent

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/coder/acp-go-sdk"
)

// client is the other end of the connection: what it can show, and how it is told and
// asked. What the Go SDK does not know of version 1 of the protocol is here.
type client struct {
	conn *acp.Connection
	can  atomic.Pointer[features] // nil: it has not said so yet
}

// features are what a client says that it can show.
type features struct{ notices, compactions, forms bool }

// capabilities are those of a client that the SDK does not know.
type capabilities struct {
	ClientCapabilities struct {
		Session struct {
			Notices    *struct{} `json:"notices"`
			Compaction *struct{} `json:"compaction"`
		} `json:"session"`
		Elicitation *struct {
			Form *struct{} `json:"form"`
		} `json:"elicitation"`
	} `json:"clientCapabilities"`
}

// learn takes in what the client says of itself in its first request.
func (c *client) learn(initialize json.RawMessage) {
	var said capabilities
	if json.Unmarshal(initialize, &said) != nil {
		return
	}
	of := said.ClientCapabilities
	c.can.Store(&features{of.Session.Notices != nil, of.Session.Compaction != nil, of.Elicitation != nil && of.Elicitation.Form != nil})
}

// features are those of the client, as it has said.
func (c *client) features() features {
	if f := c.can.Load(); f != nil {
		return *f
	}
	return features{}
}

// update sends an update of a session. A client that has left is seen elsewhere.
func (c *client) update(ctx context.Context, id acp.SessionId, update any) {
	_ = c.conn.SendNotification(ctx, acp.ClientMethodSessionUpdate, struct {
		SessionID acp.SessionId `json:"sessionId"`
		Update    any           `json:"update"`
	}{id, update})
}

// permission asks for permission.
func (c *client) permission(ctx context.Context, in acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	return acp.SendRequest[acp.RequestPermissionResponse](c.conn, ctx, acp.ClientMethodSessionRequestPermission, in)
}

// notice is something that people should know now and that is not part of the session.
type notice struct {
	Kind        string `json:"sessionUpdate"` // notice
	Severity    string `json:"severity"`      // info, warning, error
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

// compaction says that the agent has shortened what it remembers.
type compaction struct {
	Kind    string             `json:"sessionUpdate"` // compaction_update
	ID      string             `json:"compactionId"`
	Status  string             `json:"status"`
	Summary []acp.ContentBlock `json:"summary,omitempty"`
}

// initialized is the answer to initialize.
type initialized struct {
	ProtocolVersion int                `json:"protocolVersion"`
	AgentInfo       acp.Implementation `json:"agentInfo"`
	AuthMethods     []acp.AuthMethod   `json:"authMethods"`
	Capabilities    struct {
		LoadSession bool                   `json:"loadSession"`
		Prompt      acp.PromptCapabilities `json:"promptCapabilities"`
		MCP         acp.McpCapabilities    `json:"mcpCapabilities"`
		Session     struct {
			List                  struct{} `json:"list"`
			Resume                struct{} `json:"resume"`
			Close                 struct{} `json:"close"`
			Delete                struct{} `json:"delete"`
			AdditionalDirectories struct{} `json:"additionalDirectories"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
}

type deleteSession struct {
	ID acp.SessionId `json:"sessionId"`
}

func (deleteSession) Validate() error { return nil }

// request is what a client may ask, as JSON.
type request interface{ Validate() error }

// method answers one method of the protocol.
type method func(ctx context.Context, params json.RawMessage) (any, error)

// answer makes a method of a function.
func answer[In any, Out any, P interface {
	*In
	request
}](f func(context.Context, In) (Out, error)) method {
	return func(ctx context.Context, params json.RawMessage) (any, error) {
		var in In
		err := json.Unmarshal(params, &in)
		if err == nil {
			err = P(&in).Validate()
		}
		if err != nil {
			return nil, acp.NewInvalidParams(map[string]any{"error": err.Error()})
		}
		return f(ctx, in)
	}
}

// told makes a method of a function that answers nothing.
func told[In any, P interface {
	*In
	request
}](f func(context.Context, In) error) method {
	return answer[In, any, P](func(ctx context.Context, in In) (any, error) { return nil, f(ctx, in) })
}

// connect serves methods on the two streams from begin on. Without that the SDK reads what comes before its caller
// has the connection.
func connect(methods map[string]method, in io.Writer, out io.Reader) (conn *acp.Connection, begin func()) {
	begun := make(chan struct{})
	conn = acp.NewConnection(func(ctx context.Context, name string, params json.RawMessage) (any, *acp.RequestError) {
		do := methods[name]
		if do == nil {
			return nil, acp.NewMethodNotFound(name)
		}
		result, err := do(ctx, params)
		if err != nil {
			return nil, failed(err)
		}
		return result, nil
	}, in, late{out, begun})
	conn.SetLogger(slog.New(slog.DiscardHandler))
	return conn, func() { close(begun) }
}

// late is a reader that gives nothing before begun is closed.
type late struct {
	io.Reader
	begun <-chan struct{}
}

func (l late) Read(b []byte) (int, error) {
	<-l.begun
	return l.Reader.Read(b)
}
