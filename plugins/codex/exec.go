package main

import (
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// execConversation is the codec of one process of `codex exec --json`.
type execConversation struct {
	turn.Base
	decoder
	version string
	resumed bool
	brake
}

func newExecConversation(start *pluginapi.Start) *execConversation {
	opts := start.GetOptions()
	c := &execConversation{
		Base:    base(start),
		version: start.GetProgramVersion(), resumed: opts.GetResume() != "" && !opts.GetFork(),
	}
	c.OneTurn, c.Effort, c.w, c.model = true, opts.GetEffort(), &c.Writer, opts.GetModel()
	c.main = c.thread("")
	c.main.spent.inherits = opts.GetResume() != ""
	return c
}

// Handle turns one input into outputs.
func (c *execConversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	c.HandleOnce(in, out, c.line)
	return nil
}

// line handles a line of the CLI; false means that it is not known.
func (c *execConversation) line(line jsonl.Value, out *sdk.Out) bool {
	switch kind := line.Text("type"); kind {
	case "thread.started":
		c.Session = line.Text("thread_id")
		out.Event(pluginapi.SessionStart{SessionID: c.Session, Resumed: c.resumed, Model: c.model, Version: c.version})
	case "turn.started":
		c.TurnStart(out)
	case "item.started", "item.completed":
		return c.execItem(line.Get("item"), kind == "item.completed", out)
	case "error":
		message := line.Text("message")
		if m := retryText.FindStringSubmatch(message); m != nil {
			if strings.Contains(m[1], "429") {
				out.Event(pluginapi.RateLimited{})
			}
			out.Event(retryEvent(message, m[1], &c.retries))
			if strings.Contains(message, "waiting for network") {
				if why := c.lost(m[1]); why != nil {
					c.cutBy = why
					out.Signal("SIGINT")
					c.Fail(why, out)
				}
			}
		}
		// Another one is the failure of the turn, which follows.
	case "turn.completed":
		c.usageOf(line.Get("usage"), out)
		c.endTurn(nil, out)
	case "turn.failed":
		c.endTurn(failureText(0, line.Text("error", "message")), out)
	default:
		_, known := ignoredLines[kind]
		return known
	}
	return true
}

// usageOf emits what the turn took. The figures are the thread's, from its
// beginning; what a session that goes on has taken before is not said, so that
// nothing of it can be told.
func (c *execConversation) usageOf(usage jsonl.Value, out *sdk.Out) {
	total, ok := readTokens(usage)
	if !ok || c.main.spent.inherits {
		return
	}
	c.tokens(total.less(c.main.spent.total), out)
	c.main.spent.total = total
}

func (c *execConversation) endTurn(outcome *pluginapi.Outcome, out *sdk.Out) {
	c.TurnEnd(outcome, nil, out)
	c.Idle(out)
}
