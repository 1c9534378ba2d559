// Package streamjson is what agents share that speak stream-json as Claude Code does: the
// control lines on stdio, with which the host asks the agent for something and the agent
// asks its host for permission or an answer; and the content of messages.
package streamjson

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// Control is the control channel of one process.
type Control struct {
	// Base has the questions that are open.
	Base *turn.Base
	// Numbered: answers are keyed by the number of their question, not by its words.
	Numbered bool
	// Question says what a use of a tool means to those who judge it: all fields but
	// ID, ToolID, Parent, Action, Tool and Input, which are set.
	Question func(q *turn.Question, request jsonl.Value)

	requests int
	asked    map[string]string // our requests: id → subtype
}

// Handle takes what the user answers, and asks of the agent; false: it is another input.
func (c *Control) Handle(in *pluginapi.Input, out *sdk.Out) bool {
	switch in.Kind {
	case pb.InputKind_INPUT_APPROVE:
		c.approve(in.Id, in.Data, out)
	case pb.InputKind_INPUT_DENY:
		c.deny(in.Id, string(in.Data), out)
	case pb.InputKind_INPUT_ANSWER:
		c.answer(in.Id, in.Data, out)
	case pb.InputKind_INPUT_INTERRUPT:
		c.Request("interrupt", "", "", out)
	case pb.InputKind_INPUT_SET_MODEL:
		c.Request("set_model", "model", string(in.Data), out)
	default:
		return false
	}
	return true
}

// Request writes a request of ours; key and value are its argument, if it has one.
func (c *Control) Request(subtype, key, value string, out *sdk.Out) {
	c.requests++
	id := "amux-" + strconv.Itoa(c.requests)
	if c.asked == nil {
		c.asked = map[string]string{}
	}
	c.asked[id] = subtype
	b := append([]byte(nil), `{"type":"control_request","request_id":`...)
	b = pluginapi.AppendString(b, id)
	b = append(b, `,"request":{"subtype":`...)
	b = pluginapi.AppendString(b, subtype)
	if key != "" {
		b = pluginapi.AppendString(append(b, ','), key)
		b = pluginapi.AppendString(append(b, ':'), value)
	}
	out.Write(append(b, "}}\n"...))
}

// Response takes the answer to a request of ours and returns what was asked for; false:
// the line is not known. An error becomes an event.
func (c *Control) Response(line jsonl.Value, out *sdk.Out) (subtype string, known bool) {
	response := line.Get("response")
	id := response.Text("request_id")
	subtype, ours := c.asked[id]
	delete(c.asked, id)
	switch response.Text("subtype") {
	case "success":
	case "error":
		what, message := subtype, response.Text("error")
		if !ours {
			what = id
		}
		if message == "" {
			message = response.Text("error", "message")
		}
		out.Event(pluginapi.ErrorEvent{Code: pluginapi.CodeAgentFailed, Message: what + ": " + message, Recoverable: true})
	default:
		return subtype, false
	}
	return subtype, true
}

// Asked takes a request of the agent's: it may ask whether it may use a tool.
func (c *Control) Asked(line jsonl.Value, out *sdk.Out) {
	id := line.Text("request_id")
	request := line.Get("request")
	if subtype := request.Text("subtype"); subtype != "can_use_tool" {
		out.Event(pluginapi.Debug{Level: "warn", Message: c.Base.Agent + " asked for " + strconv.Quote(subtype) + ", which amux does not have"})
		b := append([]byte(nil), `{"type":"control_response","response":{"subtype":"error","request_id":`...)
		b = pluginapi.AppendString(b, id)
		out.Write(append(b, `,"error":"not supported by amux"}}`+"\n"...))
		return
	}
	name := request.Text("tool_name")
	q := &turn.Question{
		ID: id, ToolID: request.Text("tool_use_id"), Action: name, Tool: name, Input: request.Raw("input"), Risk: "medium",
	}
	if t := c.Base.Tool(q.ToolID); t != nil {
		q.Parent = t.Parent()
	}
	c.Question(q, request)
	c.Base.Ask(q, out)
}

// Cancelled takes the line that withdraws a request of the agent.
func (c *Control) Cancelled(line jsonl.Value, out *sdk.Out) {
	id := line.Text("request_id")
	c.Base.Withdraw(func(q *turn.Question) bool { return q.ID == id }, out)
}

func (c *Control) approve(id string, data []byte, out *sdk.Out) {
	q := c.Base.Take(id, out)
	if q == nil {
		return
	}
	input := q.Input
	if doc, err := jsonl.ParseObject(data); err == nil {
		if doc.IsObject("updated_input") {
			input = doc.Raw("updated_input")
		}
		doc.Release()
	}
	allow(q, input, out)
	c.Base.Granted(q, out)
}

func (c *Control) deny(id, reason string, out *sdk.Out) {
	q := c.Base.Take(id, out)
	if q == nil {
		return
	}
	message := reason
	if message == "" {
		message = "The user denied this."
	}
	b := append([]byte(nil), `{"behavior":"deny","message":`...)
	respond(q, append(pluginapi.AppendString(b, message), '}'), out)
	c.Base.Denied(q, reason, out)
}

// answer answers a tool that asks the user: its input goes back with the answers in it.
func (c *Control) answer(id string, data []byte, out *sdk.Out) {
	q := c.Base.Take(id, out)
	switch {
	case q == nil:
		return
	case len(q.Questions) == 0:
		c.Base.PutBack(q, "the agent waits for an approval, not for an answer", out)
		return
	}
	b := []byte("{")
	if doc, err := jsonl.ParseObject(q.Input); err == nil {
		for key, value := range doc.Fields() {
			if key != "answers" {
				b = append(pluginapi.AppendString(b, key), ':')
				b = append(value.AppendRaw(b), ',')
			}
		}
		doc.Release()
	}
	b = append(b, `"answers":{`...)
	first := true
	for i, text := range turn.Answers(q.Questions, data) {
		if text == "" {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		key := q.Questions[i].Question
		if c.Numbered {
			key = strconv.Itoa(i)
		}
		b = append(pluginapi.AppendString(b, key), ':')
		b = pluginapi.AppendString(b, text)
	}
	allow(q, append(b, "}}"...), out)
	c.Base.Granted(q, out)
}

func allow(q *turn.Question, input json.RawMessage, out *sdk.Out) {
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	b := append([]byte(nil), `{"behavior":"allow","updatedInput":`...)
	respond(q, append(append(b, input...), '}'), out)
}

// respond writes the answer to a request of the agent's.
func respond(q *turn.Question, response []byte, out *sdk.Out) {
	b := make([]byte, 0, len(response)+len(q.ID)+100)
	b = append(b, `{"type":"control_response","response":{"subtype":"success","request_id":`...)
	b = pluginapi.AppendString(b, q.ID)
	b = append(append(b, `,"response":`...), response...)
	out.Write(append(b, "}}\n"...))
}

// Questions are those in the input of a tool that asks the user.
func Questions(input jsonl.Value) []pluginapi.Question {
	var list []pluginapi.Question
	for _, q := range input.Items("questions") {
		question := pluginapi.Question{Question: q.Text("question"), Header: q.Text("header"), Multiple: q.Bool("multiSelect")}
		for _, option := range q.Items("options") {
			question.Options = append(question.Options, option.Text("label"))
		}
		list = append(list, question)
	}
	return list
}

// Text is the text of a message's content: a string, or an array of blocks.
func Text(content jsonl.Value) string {
	if !content.IsArray() {
		return content.Text()
	}
	var texts []string
	for _, block := range content.Items() {
		if block.IsString("text") {
			texts = append(texts, block.Text("text"))
		}
	}
	return strings.Join(texts, "\n")
}

// MCPPrefix begins the name of a tool of an MCP server.
const MCPPrefix = "mcp__"

// MCP is what the name of a tool says of an MCP server; false: it is no tool of one.
func MCP(name string) (turn.Detail, bool) {
	rest, ok := strings.CutPrefix(name, MCPPrefix)
	if !ok {
		return turn.Detail{}, false
	}
	server, tool, _ := strings.Cut(rest, "__")
	return turn.Detail{Kind: turn.MCP, Server: server, Tool: tool}, true
}

// Todos are those in the input of a tool that keeps a list.
func Todos(input jsonl.Value) []pluginapi.TodoItem {
	list := []pluginapi.TodoItem{} // an empty list is told too
	for _, todo := range input.Items("todos") {
		list = append(list, pluginapi.TodoItem{Text: todo.Text("content"), Status: todo.Text("status")})
	}
	return list
}
