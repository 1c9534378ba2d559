package opencodehttp

import (
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/plugins/others/internal/opencode"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// ignored are the events that are known and give none, with the reason.
var ignored = map[string]string{
	"server.connected":               "the bridge's first line has said it",
	"server.heartbeat":               "the bridge listens to it",
	"server.instance.disposed":       "the end of the server, which is seen",
	"global.disposed":                "the end of the server, which is seen",
	"session.created":                "the response to the request has said it",
	"session.deleted":                "somebody else's doing",
	"session.diff":                   "what the tools have said, once more",
	"message.removed":                "somebody else's doing",
	"message.part.removed":           "somebody else's doing",
	"file.edited":                    "the tool that does it says it",
	"file.watcher.updated":           "the tool that does it says it",
	"todo.updated":                   "the tool that does it says it",
	"question.v2.asked":              "question.asked, once more",
	"question.v2.replied":            "question.replied, once more",
	"question.v2.rejected":           "question.rejected, once more",
	"permission.v2.asked":            "permission.asked, once more",
	"permission.v2.replied":          "permission.replied, once more",
	"plugin.added":                   "of the server, not of the session",
	"catalog.updated":                "of the server, not of the session",
	"reference.updated":              "of the server, not of the session",
	"integration.updated":            "of the server, not of the session",
	"integration.connection.updated": "of the server, not of the session",
	"models-dev.refreshed":           "of the server, not of the session",
	"project.updated":                "of the server, not of the session",
	"project.directories.updated":    "of the server, not of the session",
	"installation.updated":           "of the server, not of the session",
	"installation.update-available":  "of the server, not of the session",
	"vcs.branch.updated":             "of the server, not of the session",
	"lsp.updated":                    "of the server, not of the session",
	"lsp.client.diagnostics":         "of the server, not of the session",
	"mcp.tools.changed":              "of the server, not of the session",
}

// event reads one of the server's.
func (c *conversation) event(e jsonl.Value, out *sdk.Out) bool {
	kind := string(e.Bytes("type"))
	p := e.Get("properties")
	if _, known := ignored[kind]; known || strings.HasPrefix(kind, "session.next.") {
		return true // the latter are a second generation beside the first
	}
	session := p.Text("sessionID")
	main := session != "" && session == c.Session
	child, nested := c.messages.children[session]
	switch kind {
	case "session.updated", "session.status", "session.idle", "session.error", "session.compacted",
		"message.updated", "message.part.updated", "message.part.delta",
		"permission.asked", "permission.replied", "question.asked", "question.replied", "question.rejected":
	default:
		return false
	}
	if !main && !nested {
		return true // a session of somebody else's
	}
	switch kind {
	case "session.updated":
		if main {
			c.session.retitle(p.Get("info"), out)
		}
	case "session.status":
		c.status(main, child, p.Get("status"), out)
	case "session.idle":
		if main {
			c.idle(out)
		}
	case "session.error":
		if main {
			c.fail(p.Get("error"), out)
		}
	case "session.compacted":
		out.Event(pluginapi.ContextCompacted{})
	case "message.updated":
		c.message(session, p.Get("info"), out)
	case "message.part.updated":
		return c.messages.part(child, p.Get("part"), out)
	case "message.part.delta":
		c.messages.delta(child, p, out)
	case "permission.asked":
		c.questions.permission(child, p, out)
	case "question.asked":
		c.questions.question(child, p, out)
	case "permission.replied", "question.replied", "question.rejected":
		c.questions.replied(p.Text("requestID"), kind != "question.rejected" && p.Text("reply") != "reject", out)
	}
	return true
}

// status is what the server does with the prompt.
func (c *conversation) status(main bool, child string, s jsonl.Value, out *sdk.Out) {
	switch string(s.Bytes("type")) {
	case "busy":
		if main && c.Busy() {
			c.running = true
			// Perhaps after all: it makes the conversation shorter and tries again.
			c.settle(0, out)
			c.idles = 0
			c.abort(out)
		}
	case "retry":
		attempt, _ := s.Int("attempt")
		message := s.Text("message")
		c.messages.lose(child, message, out)
		// When it will try again is told as a time, and there is none to compare with.
		out.Event(pluginapi.Retry{Attempt: int(attempt), Reason: message})
		if failure.Of(failure.Status(message), message).Code == string(pluginapi.CodeRateLimited) {
			out.Event(pluginapi.RateLimited{})
		}
	}
}

// fail is an error that ends the turn, if the server does not go on.
func (c *conversation) fail(e jsonl.Value, out *sdk.Out) {
	if !c.Busy() {
		return
	}
	switch {
	case e.Text("name") == "MessageAbortedError":
		c.failure = turn.Aborted()
	case c.failure == nil: // the first one says it best; another may be a stack
		c.failure = opencode.Reason(e)
	}
	limit := settled
	if m := c.messages.newest(); m != nil && !m.done {
		limit = unfinished
	}
	c.settle(limit, out)
}

// message is the head of one.
func (c *conversation) message(session string, info jsonl.Value, out *sdk.Out) {
	begins, done := c.messages.head(session, info, out)
	if begins {
		c.settle(0, out)
	}
	switch {
	case done && info.Exists("error"):
		c.fail(info.Get("error"), out)
	case done:
		c.failure = nil
	}
}
