package demo

import (
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// conversation is the codec of one run.
type conversation struct {
	sessionID string
	effort    string

	prompts  int // given to the agent and not yet worked off
	turn     int // index of the current or next turn
	inTurn   bool
	message  []byte // text of the open message
	open     bool
	thinking []byte
	thinks   bool
	tools    map[string]tool           // by id, those at work
	pending  map[string]pluginapi.Type // what waits for an answer, by id
	spent    int64                     // microdollars
	priced   bool
	cost     int64 // of the current turn
}

// tool is one at work. What it does to a file is told when it is done: before that
// it may be denied.
type tool struct {
	name string
	file pluginapi.Payload // nil: none
}

// Handle implements sdk.Conversation.
func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_STDOUT:
		return c.stdout(in.Data, out)
	case pb.InputKind_INPUT_STDERR:
		out.Log("stderr", in.Data)
	case pb.InputKind_INPUT_PROMPT:
		c.prompts++
		out.Write(promptLine(nil, string(in.Data)))
	case pb.InputKind_INPUT_APPROVE:
		if c.answered(in.Id) != "approval_request" {
			return nil
		}
		var given struct {
			UpdatedInput json.RawMessage `json:"updated_input"`
		}
		if len(in.Data) > 0 && json.Unmarshal(in.Data, &given) != nil {
			given.UpdatedInput = nil
		}
		out.Event(pluginapi.ApprovalGranted{InteractionID: in.Id})
		return write(out, line{Type: "reply", ID: in.Id, Allow: true, Input: given.UpdatedInput})
	case pb.InputKind_INPUT_DENY:
		reason := string(in.Data)
		switch c.answered(in.Id) {
		case "":
			return nil
		case "input_required":
			out.Event(pluginapi.InputAnswered{InteractionID: in.Id, Cancelled: true})
		default:
			out.Event(pluginapi.ApprovalDenied{InteractionID: in.Id, Reason: reason})
		}
		return write(out, line{Type: "reply", ID: in.Id, Reason: reason})
	case pb.InputKind_INPUT_ANSWER:
		if c.answered(in.Id) != "input_required" {
			return nil
		}
		out.Event(pluginapi.InputAnswered{InteractionID: in.Id})
		return write(out, line{Type: "answer", ID: in.Id, Text: string(in.Data)})
	case pb.InputKind_INPUT_INTERRUPT:
		return write(out, line{Type: "interrupt"})
	case pb.InputKind_INPUT_SET_MODEL:
		return write(out, line{Type: "model", Model: modelName(string(in.Data))})
	case pb.InputKind_INPUT_END:
		out.CloseStdin()
	case pb.InputKind_INPUT_EXIT:
		c.exit(in.Exit, out)
	}
	return nil
}

// answered returns what waited for an answer by that id, and forgets it; empty if
// nothing did.
func (c *conversation) answered(id string) pluginapi.Type {
	waits := c.pending[id]
	delete(c.pending, id)
	return waits
}

func (c *conversation) stdout(data []byte, out *sdk.Out) error {
	v, err := jsonl.ParseObject(data)
	if err != nil {
		out.Log("stdout", data)
		return nil
	}
	defer v.Release()
	switch kind := v.Bytes("type"); string(kind) {
	case "text":
		delta := v.Bytes("text")
		c.openMessage(out)
		c.message = append(c.message, delta...)
		out.Event(pluginapi.TextDelta{Delta: string(delta)})
	case "message_end":
		c.openMessage(out)
		c.closeMessage(out, false)
	case "think":
		delta := v.Bytes("text")
		if !c.thinks {
			c.thinks = true
			out.Event(pluginapi.ThinkingStart{Effort: c.effort})
		}
		c.thinking = append(c.thinking, delta...)
		out.Event(pluginapi.ThinkingDelta{Delta: string(delta)})
	case "think_end":
		c.closeThinking(out)
	case "hello":
		if c.sessionID == "" {
			c.sessionID = v.Text("session")
		}
		out.Event(pluginapi.SessionStart{SessionID: c.sessionID, Model: v.Text("model"), Version: v.Text("version"),
			Tools: []string{"write_file", "edit_file", "read_file", "shell"}})
		if c.prompts == 0 {
			out.Idle()
		}
	case "turn":
		c.inTurn, c.cost, c.priced = true, 0, false
		out.TurnStarted()
		out.Event(pluginapi.TurnStart{TurnIndex: c.turn})
	case "tool":
		c.tool(v.Value, out)
	case "tool_done":
		id := v.Text("id")
		if file := c.tools[id].file; file != nil {
			out.Event(file)
		}
		out.Event(pluginapi.ToolResult{ToolCallID: id, ToolName: c.tools[id].name, Output: v.Raw("output")})
		delete(c.tools, id)
	case "tool_failed":
		id := v.Text("id")
		out.Event(pluginapi.ToolError{ToolCallID: id, ToolName: c.tools[id].name, Error: v.Text("error")})
		delete(c.tools, id)
	case "permission":
		c.wait(v.Text("id"), "approval_request")
		out.Event(pluginapi.ApprovalRequest{InteractionID: v.Text("id"), Action: v.Text("name"), Detail: v.Text("detail"),
			ToolName: v.Text("name"), ToolCallID: v.Text("call"), Input: v.Raw("input"), RiskLevel: "medium"})
	case "question":
		c.wait(v.Text("id"), "input_required")
		out.Event(pluginapi.InputRequired{InteractionID: v.Text("id"), Question: v.Text("text"), Source: "agent"})
	case "withdrawn":
		id := v.Text("id")
		switch c.answered(id) {
		case "input_required":
			out.Event(pluginapi.InputAnswered{InteractionID: id, Cancelled: true})
		case "approval_request":
			out.Event(pluginapi.ApprovalDenied{InteractionID: id, Reason: "the agent withdrew its request"})
		}
	case "usage":
		out.Event(pluginapi.TokenUsage{InputTokens: v.IntPtr("input"), OutputTokens: v.IntPtr("output"),
			ThinkingTokens: v.IntPtr("thinking"), CacheReadTokens: v.IntPtr("cache_read"), CacheWriteTokens: v.IntPtr("cache_write"),
			Model: v.Text("model")})
		if micros := v.IntPtr("microdollars"); micros != nil {
			c.cost += *micros
			c.spent += *micros
			c.priced = true
			out.Event(pluginapi.Cost{Cost: *usd(*micros)})
		}
	case "model":
		out.Event(pluginapi.Debug{Level: "info", Message: "the model is now " + v.Text("model")})
	case "turn_end":
		c.endTurn(v.Text("status"), v.Text("code"), v.Text("error"), out)
	default:
		out.Log("stdout", data)
	}
	return nil
}

func (c *conversation) wait(id string, what pluginapi.Type) {
	if c.pending == nil {
		c.pending = map[string]pluginapi.Type{}
	}
	c.pending[id] = what
}

// tool starts a tool call; detail of files and shells goes under the same id.
func (c *conversation) tool(v jsonl.Value, out *sdk.Out) {
	id, name := v.Text("id"), v.Text("name")
	if c.tools == nil {
		c.tools = map[string]tool{}
	}
	t := tool{name: name}
	out.Event(pluginapi.ToolCallStart{ToolCallID: id, ToolName: name})
	out.Event(pluginapi.ToolCallReady{ToolCallID: id, ToolName: name, Input: v.Raw("input")})
	path := v.Text("path")
	switch name {
	case "write_file":
		t.file = pluginapi.FileCreate{ToolCallID: id, Path: path, ByteCount: v.IntPtr("bytes")}
	case "edit_file":
		t.file = pluginapi.FilePatch{ToolCallID: id, Path: path, Diff: v.Text("diff")}
	case "read_file":
		t.file = pluginapi.FileRead{ToolCallID: id, Path: path}
	case "shell": // the demo asks before no command
		out.Event(pluginapi.ShellStart{ToolCallID: id, Command: v.Text("command")})
	}
	c.tools[id] = t
}

func (c *conversation) openMessage(out *sdk.Out) {
	if !c.open {
		c.open = true
		out.Event(pluginapi.MessageStart{})
	}
}

func (c *conversation) closeMessage(out *sdk.Out, aborted bool) {
	if !c.open {
		return
	}
	out.Event(pluginapi.MessageStop{Text: string(c.message), Aborted: aborted})
	c.open, c.message = false, nil
}

func (c *conversation) closeThinking(out *sdk.Out) {
	if !c.thinks {
		return
	}
	out.Event(pluginapi.ThinkingStop{Thinking: string(c.thinking)})
	c.thinks, c.thinking = false, nil
}

func (c *conversation) endTurn(status, code, message string, out *sdk.Out) {
	c.closeThinking(out)
	c.closeMessage(out, status == "interrupted")
	outcome := &pluginapi.Outcome{}
	switch status {
	case "ok":
	case "interrupted":
		out.Event(pluginapi.Interrupted{})
		outcome.Code, outcome.Message = string(pluginapi.CodeAborted), "interrupted"
	default:
		outcome.Code, outcome.Message = string(pluginapi.CodeAgentFailed), message
		if pluginapi.Code(code).Known() && code != "" {
			outcome.Code = code
		}
	}
	end := pluginapi.TurnEnd{TurnIndex: c.turn}
	if c.priced {
		end.Cost = usd(c.cost)
	}
	out.Event(end)
	out.Outcome(outcome)
	c.turn++
	c.inTurn = false
	if c.prompts > 0 {
		c.prompts--
	}
	if c.prompts == 0 {
		out.Idle()
	}
}

func (c *conversation) exit(exit *pluginapi.Exit, out *sdk.Out) {
	c.closeThinking(out)
	c.closeMessage(out, true)
	end := pluginapi.SessionEnd{SessionID: c.sessionID, TurnCount: c.turn}
	if c.spent > 0 {
		end.Cost = usd(c.spent)
	}
	out.Event(end)
	switch {
	case exit.GetAsked() || exit.GetCode() != 0:
		// Of other exit codes, and of signals, the host tells the same and more.
	case c.inTurn || c.prompts > 0:
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeAgentCrash), Message: "the demo agent ended in the middle of its work"})
	case c.turn == 0:
		out.Outcome(&pluginapi.Outcome{}) // it was asked for nothing
	}
}
