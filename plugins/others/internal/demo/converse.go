package demo

import (
	"cmp"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// conversation reads and writes the lines of one agent process. turn.Base knows what all
// agents have in common: turns, messages, tools, questions, and the end of the process.
type conversation struct {
	turn.Base
	spent  int64            // microdollars, so far
	before int64            // microdollars that earlier turns spent
	cost   *pluginapi.Money // of the current turn
}

// Converse implements sdk.Converser.
func (Adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	c := &conversation{Base: turn.Base{Agent: "demo", Start: start, Tested: agentVersion}}
	c.Effort = nativeEffort(start.GetOptions().GetEffort())
	c.Ready()
	return c, nil
}

// Handle implements sdk.Conversation: it turns one input into events and writes.
func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_STDOUT:
		c.stdout(in.Data, out)
	case pb.InputKind_INPUT_PROMPT:
		c.Enqueue(in.Id, in.Data)
		c.Steer() // at once: the agent has a queue of its own
		return write(out, line{Type: "prompt", Text: string(in.Data)})
	case pb.InputKind_INPUT_APPROVE, pb.InputKind_INPUT_DENY, pb.InputKind_INPUT_ANSWER:
		return c.reply(in, out)
	case pb.InputKind_INPUT_INTERRUPT:
		return write(out, line{Type: "interrupt"})
	case pb.InputKind_INPUT_SET_MODEL:
		return write(out, line{Type: "model", Model: modelName(string(in.Data))})
	default:
		c.Base.Handle(in, out)
	}
	return nil
}

// reply answers an open question or permission request.
func (c *conversation) reply(in *pluginapi.Input, out *sdk.Out) error {
	q := c.Take(in.Id, out)
	if q == nil {
		return nil
	}
	asksPermission := len(q.Questions) == 0
	switch {
	case in.Kind == pb.InputKind_INPUT_DENY:
		c.Denied(q, string(in.Data), out)
		return write(out, line{Type: "reply", ID: in.Id, Reason: string(in.Data)})
	case asksPermission != (in.Kind == pb.InputKind_INPUT_APPROVE):
		c.PutBack(q, "approve a permission request, answer a question", out)
		return nil
	}
	c.Granted(q, out)
	if !asksPermission {
		return write(out, line{Type: "answer", ID: in.Id, Text: turn.Answers(q.Questions, in.Data)[0]})
	}
	var given struct {
		UpdatedInput json.RawMessage `json:"updated_input"`
	}
	if json.Unmarshal(in.Data, &given) != nil {
		given.UpdatedInput = nil
	}
	return write(out, line{Type: "reply", ID: in.Id, Allow: true, Input: given.UpdatedInput})
}

// stdout emits the events of one line; an unknown line becomes a log event.
func (c *conversation) stdout(data []byte, out *sdk.Out) {
	v, err := jsonl.ParseObject(data)
	if err != nil {
		out.Log("stdout", data)
		return
	}
	defer v.Release()
	switch string(v.Bytes("type")) {
	case "hello":
		c.Session = cmp.Or(c.Start.GetSessionId(), v.Text("session"))
		out.Event(pluginapi.SessionStart{SessionID: c.Session, Model: v.Text("model"), Version: v.Text("version"),
			Tools: []string{"write_file", "edit_file", "read_file", "shell"}})
		if c.Prompts == 0 {
			c.Idle(out)
		}
	case "turn":
		c.TurnStart(out)
	case "text":
		c.Main().Text("", v.Text("text"), out)
	case "think":
		c.Main().Think(v.Text("text"), out)
	case "message_end", "think_end":
		c.Main().End(out)
	case "tool":
		if t := c.StartTool(v.Text("id"), v.Text("name"), "", out); t != nil {
			c.ReadyTool(t, v.Raw("input"), detail(v.Value), out)
		}
	case "tool_done":
		c.endTool(v.Text("id"), turn.Result{Output: v.Raw("output"), Created: true}, out)
	case "tool_failed":
		c.endTool(v.Text("id"), turn.Result{Failed: true, Text: v.Text("error")}, out)
	case "permission":
		c.Ask(&turn.Question{ID: v.Text("id"), ToolID: v.Text("call"), Tool: v.Text("name"), Input: v.Raw("input"),
			Action: v.Text("name"), Detail: v.Text("detail"), Risk: "medium"}, out)
	case "question":
		c.Ask(&turn.Question{ID: v.Text("id"), Questions: []pluginapi.Question{{Question: v.Text("text")}}, Source: "agent"}, out)
	case "withdrawn":
		id := v.Text("id")
		c.Withdraw(func(q *turn.Question) bool { return q.ID == id }, out)
	case "usage":
		out.Event(pluginapi.TokenUsage{InputTokens: v.IntPtr("input"), OutputTokens: v.IntPtr("output"),
			ThinkingTokens: v.IntPtr("thinking"), CacheReadTokens: v.IntPtr("cache_read"), CacheWriteTokens: v.IntPtr("cache_write"),
			Model: v.Text("model")})
		if micros := v.IntPtr("microdollars"); micros != nil {
			out.Event(pluginapi.Cost{Cost: *usd(*micros)})
			c.spent += *micros
			c.cost, c.Cost = usd(c.spent-c.before), usd(c.spent)
		}
	case "model":
		out.Event(pluginapi.Debug{Level: "info", Message: "the model is now " + v.Text("model")})
	case "turn_end":
		c.TurnEnd(outcome(v.Value), c.cost, out)
		c.cost, c.before = nil, c.spent
		if c.Turns() >= c.Prompts {
			c.Done()
		}
		c.Settle(out)
	default:
		out.Log("stdout", data)
	}
}

func (c *conversation) endTool(id string, r turn.Result, out *sdk.Out) {
	if t := c.Tool(id); t != nil {
		c.EndTool(t, r, out)
	}
}

// detail says what the input of a tool means.
func detail(v jsonl.Value) turn.Detail {
	switch v.Text("name") {
	case "write_file":
		return turn.Detail{Kind: turn.Write, Path: v.Text("path"), Bytes: v.IntPtr("bytes")}
	case "edit_file":
		return turn.Detail{Kind: turn.Edit, Path: v.Text("path"), Diff: v.Text("diff")}
	case "read_file":
		return turn.Detail{Kind: turn.Read, Path: v.Text("path")}
	case "shell":
		return turn.Detail{Kind: turn.Shell, Command: v.Text("command")}
	}
	return turn.Detail{}
}

// outcome is how a turn ended; nil is success.
func outcome(v jsonl.Value) *pluginapi.Outcome {
	switch v.Text("status") {
	case "ok":
		return nil
	case "interrupted":
		return &pluginapi.Outcome{Code: string(pluginapi.CodeAborted), Message: "interrupted"}
	}
	code := v.Text("code")
	if code == "" || !pluginapi.Code(code).Known() {
		code = string(pluginapi.CodeAgentFailed)
	}
	return &pluginapi.Outcome{Code: code, Message: v.Text("error")}
}
