package opencodehttp

import (
	"math"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/plugins/others/opencode"
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
	child, nested := c.children[session]
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
			c.retitle(p.Get("info"), out)
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
		return c.part(child, p.Get("part"), out)
	case "message.part.delta":
		c.delta(child, p, out)
	case "permission.asked":
		c.permission(child, p, out)
	case "question.asked":
		c.question(child, p, out)
	case "permission.replied", "question.replied", "question.rejected":
		c.replied(p.Text("requestID"), kind != "question.rejected" && p.Text("reply") != "reject", out)
	}
	return true
}

// retitle tells a title that the agent has found; a new session has its date as one.
func (c *conversation) retitle(session jsonl.Value, out *sdk.Out) {
	if title := session.Text("title"); title != "" && title != c.title && !strings.HasPrefix(title, "New session - ") {
		c.title = title
		out.Event(pluginapi.SessionTitle{Title: title})
	}
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
		c.Stream(child).Abandon(message, out)
		for _, b := range c.parts {
			b.lost = b.lost || b.parent == child
		}
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
	if m := c.messages[c.last]; m != nil && !m.done {
		limit = unfinished
	}
	c.settle(limit, out)
}

// message is the head of one, told at its beginning, and several times at its end.
func (c *conversation) message(session string, info jsonl.Value, out *sdk.Out) {
	id := info.Text("id")
	if string(info.Bytes("role")) != "assistant" {
		if _, known := c.prompts[id]; !known && session == c.Session {
			c.prompts[id] = c.Busy()
		}
		return
	}
	// Messages of the past are told again, all of them after a fork.
	if !c.Busy() || session == c.Session && !c.prompts[info.Text("parentID")] {
		return
	}
	completed := info.Exists("time", "completed")
	m := c.messages[id]
	if m == nil {
		m = &message{summary: info.Bool("summary")}
		c.messages[id] = m
		if session == c.Session {
			c.last = id
			c.settle(0, out)
		}
	}
	if !completed || m.done {
		return
	}
	m.done = true
	if session != c.Session {
		return
	}
	switch {
	case info.Exists("error"):
		c.fail(info.Get("error"), out)
	case info.Exists("structured") && !info.IsNull("structured"):
		// The answer is no text of the model's but the input of a tool.
		c.failure = nil
		c.Main().End(out)
		c.Main().Text(id, string(info.Raw("structured")), out)
		c.Main().End(out)
	default:
		c.failure = nil
	}
}

// part is a piece of a message, told again with each change.
func (c *conversation) part(parent string, p jsonl.Value, out *sdk.Out) bool {
	m := c.messages[p.Text("messageID")]
	kind := string(p.Bytes("type"))
	switch kind {
	case "text", "reasoning", "tool", "step-start", "step-finish":
	case "snapshot", "patch", "file", "agent", "subtask", "compaction", "retry":
		return true
	default:
		return false
	}
	if m == nil || !c.Busy() {
		return true // the user's own, or of the past
	}
	switch kind {
	case "text", "reasoning":
		if !m.summary {
			c.text(parent, p, out)
		}
	case "tool":
		c.tool(parent, p, out)
	case "step-start":
		if parent == "" {
			c.endStep(out)
			c.inStep = true
			out.Event(pluginapi.StepStart{TurnIndex: c.Turns(), StepIndex: c.steps, StepType: "model_request"})
			c.checkpoint(p.Text("snapshot"), out)
		}
	case "step-finish":
		if m.tokens {
			break // told again
		}
		m.tokens = true
		out.Event(opencode.Tokens(p.Get("tokens"), ""))
		if usd, ok := p.Float("cost"); ok && usd > 0 {
			out.Event(pluginapi.Cost{Cost: pluginapi.Money{USD: usd}})
			if c.cost == nil {
				c.cost = &pluginapi.Money{}
			}
			// Sums of floating-point numbers have noise far below a cent.
			c.cost.USD = math.Round((c.cost.USD+usd)*1e10) / 1e10
		}
		if parent == "" {
			c.checkpoint(p.Text("snapshot"), out)
			c.endStep(out)
		}
	}
	return true
}

// checkpoint tells a state of the folder that the server keeps: of one the tree's hash.
func (c *conversation) checkpoint(id string, out *sdk.Out) {
	if id != "" && id != c.snapshot {
		c.snapshot = id
		out.Event(pluginapi.SessionCheckpoint{SessionID: c.Session, CheckpointID: id})
	}
}

// text is the beginning or the end of a text or thought, with all of it.
func (c *conversation) text(parent string, p jsonl.Value, out *sdk.Out) {
	id := p.Text("id")
	b := c.parts[id]
	if b == nil {
		b = &block{parent: parent, thought: string(p.Bytes("type")) == "reasoning"}
		c.parts[id] = b
	}
	if b.lost || p.Bool("synthetic") || p.Bool("ignored") {
		return
	}
	if whole := p.Text("text"); len(whole) > b.told {
		// A text may be cut at its end: what was streamed stays.
		c.say(parent, p.Text("messageID"), b, whole[b.told:], out)
	}
	if p.Exists("time", "end") {
		c.Stream(parent).End(out)
	}
}

func (c *conversation) delta(parent string, p jsonl.Value, out *sdk.Out) {
	b := c.parts[p.Text("partID")]
	if b == nil || b.lost || !c.Busy() || p.Text("field") != "text" {
		return
	}
	c.say(parent, p.Text("messageID"), b, p.Text("delta"), out)
}

func (c *conversation) say(parent, messageID string, b *block, text string, out *sdk.Out) {
	b.told += len(text)
	if b.thought {
		c.Stream(parent).Think(text, out)
	} else {
		c.Stream(parent).Text(messageID, text, out)
	}
}

func (c *conversation) tool(parent string, p jsonl.Value, out *sdk.Out) {
	name, state := p.Text("tool"), p.Get("state")
	t := c.StartTool(p.Text("callID"), name, parent, out)
	if t == nil {
		return // it has ended
	}
	status := string(state.Bytes("status"))
	if status == "pending" {
		return
	}
	input := state.Get("input")
	c.ReadyTool(t, input.Raw(), c.detail(name, input), out)
	c.release(t.ID, out)
	if id := state.Text("metadata", "sessionId"); id != "" && t.Detail.Kind == turn.Subagent {
		c.children[id] = t.ID
	}
	switch status {
	case "running":
		c.Printed(t, state.Text("metadata", "output"), out)
		return
	case "completed", "error":
	default:
		return
	}
	text := state.Text("output")
	r := turn.Result{Text: text, Output: pluginapi.AppendString(nil, text)}
	if from, ok := state.Int("time", "start"); ok {
		if to, ok := state.Int("time", "end"); ok {
			ms := to - from
			r.DurationMS = &ms
		}
	}
	if status == "error" {
		r.Failed, r.CutOff, r.Text = true, true, state.Text("error")
	} else {
		opencode.Finish(&r, t.Detail, state.Get("metadata"))
	}
	c.WithdrawTool(t.ID, out)
	c.EndTool(t, r, out)
}

// detail is what a tool is for. One of an MCP server is named SERVER_TOOL, so that
// the servers of the run tell where it is cut.
func (c *conversation) detail(name string, input jsonl.Value) turn.Detail {
	for _, server := range c.servers {
		if tool, ok := strings.CutPrefix(name, server+"_"); ok {
			return turn.Detail{Kind: turn.MCP, Server: server, Tool: tool}
		}
	}
	return opencode.Detail(name, input)
}
