package cursor

import (
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// conversation is the codec of one process.
type conversation struct {
	turn.Base
	resumed bool
	said    string // of the message that comes in pieces
}

// linger is how long it may take to exit at the end of its stdin.
const linger = 10 * time.Second

var refusals = []turn.Refusal{{Text: "Authentication required", Code: pluginapi.CodeAuth}}

// Converse begins the conversation with one process.
func (Adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	o := start.GetOptions()
	if byACP(o) {
		return acp.Converse(acp.Config{
			Agent: agentID, Guidance: authGuidance, Refusals: refusals, Linger: linger,
			Session: acp.Session{Mode: "agent", ModelByPlan: true, Authenticate: "cursor_login"},
		}, start)
	}
	c := &conversation{
		Base:    turn.Base{Agent: agentID, Guidance: authGuidance, Refusals: refusals, Start: start},
		resumed: o.GetResume() != "" || o.GetContinueLast(),
	}
	c.Prompts = 1 // in the plan
	return c, nil
}

// Handle turns one input into outputs.
func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	c.HandleOnce(in, out, c.line)
	return nil
}

// ignored are the lines that are known and give no event, with the reason.
var ignored = map[string]string{
	"user":              "our own prompt come back",
	"interaction_query": "a question that it answers itself",
}

func (c *conversation) line(line jsonl.Value, out *sdk.Out) bool {
	main := c.Main()
	switch kind := string(line.Bytes("type")); kind {
	case "system":
		if line.Text("subtype") != "init" {
			return false
		}
		if c.Session != "" {
			return true
		}
		c.Session = line.Text("session_id")
		out.Event(pluginapi.SessionStart{SessionID: c.Session, Model: line.Text("model"), Resumed: c.resumed})
		if c.resumed {
			out.Event(pluginapi.SessionResume{SessionID: c.Session})
		}
		c.TurnStart(out)
	case "thinking":
		if line.Text("subtype") == "completed" {
			main.End(out)
		} else {
			main.Think(line.Text("text"), out)
		}
	case "assistant":
		// Pieces, and then the message whole; older ones print only that.
		text := ""
		for _, block := range line.Items("message", "content") {
			text += block.Text("text")
		}
		switch {
		case c.said != "" && text == c.said:
			main.End(out)
			c.said = ""
		case line.Exists("timestamp_ms"):
			main.Text("", text, out)
			c.said += text
		default:
			main.End(out)
			main.Text("", text, out)
			main.End(out)
			c.said = ""
		}
	case "tool_call":
		c.said = ""
		name, body := call(line)
		t := c.StartTool(line.Text("call_id"), name, "", out)
		if t == nil {
			return true
		}
		args := body.Get("args")
		c.ReadyTool(t, args.Raw(), detail(name, args), out)
		if line.Text("subtype") == "completed" {
			c.EndTool(t, result(t, body.Get("result")), out)
		}
	case "result":
		c.result(line, out)
	default:
		_, known := ignored[kind]
		return known
	}
	return true
}

// result ends the turn, the only one.
func (c *conversation) result(line jsonl.Value, out *sdk.Out) {
	c.Main().End(out)
	if usage := line.Get("usage"); usage.IsObject() {
		out.Event(pluginapi.TokenUsage{InputTokens: usage.IntPtr("inputTokens"), OutputTokens: usage.IntPtr("outputTokens")})
	}
	var outcome *pluginapi.Outcome
	if line.Bool("is_error") {
		text := line.Text("result")
		outcome = failure.Of(failure.Status(text), text)
	}
	c.TurnEnd(outcome, nil, out)
	c.Idle(out)
}
