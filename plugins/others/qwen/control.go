package qwen

import (
	"encoding/json"
	"strconv"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// controlRequest is the CLI asking its host.
func (c *conversation) controlRequest(line jsonl.Value, out *sdk.Out) {
	id := line.Text("request_id")
	request := line.Get("request")
	if request.Text("subtype") != "can_use_tool" {
		out.Event(pluginapi.Debug{Level: "warn", Message: "qwen asked for " + strconv.Quote(request.Text("subtype")) + ", which amux does not have"})
		b := append([]byte(nil), `{"type":"control_response","response":{"subtype":"error","request_id":`...)
		b = pluginapi.AppendString(b, id)
		out.Write(append(b, `,"error":"not supported by amux"}}`+"\n"...))
		return
	}
	name := request.Text("tool_name")
	q := &turn.Question{
		ID: id, ToolID: request.Text("tool_use_id"), Action: name, Tool: name,
		Detail: subject(name, request), Input: request.Raw("input"), Risk: risks[name],
	}
	d := detail(name, request.Get("input"))
	switch q.ToolKind = d.ToolKind(); {
	case q.ToolKind == pluginapi.ToolShell:
		q.Detail = d.Command
	case q.ToolKind == pluginapi.ToolFile:
		q.Detail = d.Path
	case name == "web_fetch" && q.Detail == request.Text("input", "url"):
		q.ToolKind = pluginapi.ToolFetch
	}
	if q.Risk == "" {
		q.Risk = "medium"
	}
	if t := c.Tool(q.ToolID); t != nil {
		q.Parent = t.Parent()
	}
	if name == "ask_user_question" {
		q.Detail = ""
		for _, item := range request.Items("input", "questions") {
			one := pluginapi.Question{Question: item.Text("question"), Header: item.Text("header"), Multiple: item.Bool("multiSelect")}
			for _, option := range item.Items("options") {
				one.Options = append(one.Options, option.Text("label"))
			}
			q.Questions = append(q.Questions, one)
		}
	}
	c.Ask(q, out)
}

// subject is the line that somebody has to judge.
func subject(name string, request jsonl.Value) string {
	input := request.Get("input")
	for _, key := range []string{"command", "file_path", "notebook_path", "url", "plan", "prompt"} {
		if text := input.Text(key); text != "" {
			return text
		}
	}
	for _, suggestion := range request.Items("permission_suggestions") {
		if suggestion.Text("type") == "allow" && suggestion.Text("description") != "" {
			return suggestion.Text("description")
		}
	}
	return name
}

// respond writes the answer to a control request.
func respond(id string, response []byte, out *sdk.Out) {
	b := append([]byte(nil), `{"type":"control_response","response":{"subtype":"success","request_id":`...)
	b = pluginapi.AppendString(b, id)
	b = append(append(b, `,"response":`...), response...)
	out.Write(append(b, "}}\n"...))
}

func allow(q *turn.Question, input json.RawMessage, out *sdk.Out) {
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	b := append([]byte(nil), `{"behavior":"allow","updatedInput":`...)
	respond(q.ID, append(append(b, input...), '}'), out)
}

func (c *conversation) approve(id string, data []byte, out *sdk.Out) {
	q := c.Take(id, out)
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
	c.Granted(q, out)
}

func (c *conversation) deny(id, reason string, out *sdk.Out) {
	q := c.Take(id, out)
	if q == nil {
		return
	}
	message := reason
	if message == "" {
		message = "The user denied this."
	}
	b := append([]byte(nil), `{"behavior":"deny","message":`...)
	respond(q.ID, append(pluginapi.AppendString(b, message), '}'), out)
	c.Denied(q, reason, out)
}

// answer answers ask_user_question: its input goes back with the answers in it,
// by the number of their question.
func (c *conversation) answer(id string, data []byte, out *sdk.Out) {
	q := c.Take(id, out)
	switch {
	case q == nil:
		return
	case len(q.Questions) == 0:
		c.PutBack(q, "the agent waits for an approval, not for an answer", out)
		return
	}
	answers := turn.Answers(q.Questions, data)
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
	for i, text := range answers {
		if text == "" {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(pluginapi.AppendString(b, strconv.Itoa(i)), ':')
		b = pluginapi.AppendString(b, text)
	}
	allow(q, append(b, "}}"...), out)
	c.Granted(q, out)
}

// request writes a control request of ours; key and value are its argument.
func (c *conversation) request(subtype, key, value string, out *sdk.Out) {
	c.requests++
	id := "amux-" + strconv.Itoa(c.requests)
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

// controlResponse is the answer to a request of ours.
func (c *conversation) controlResponse(line jsonl.Value, out *sdk.Out) bool {
	response := line.Get("response")
	id := response.Text("request_id")
	subtype, ours := c.asked[id]
	delete(c.asked, id)
	switch response.Text("subtype") {
	case "success":
	case "error":
		if !ours {
			subtype = id
		}
		message := response.Text("error")
		if message == "" {
			message = response.Text("error", "message")
		}
		out.Event(pluginapi.ErrorEvent{Code: pluginapi.CodeAgentFailed, Message: subtype + ": " + message, Recoverable: true})
	default:
		return false
	}
	if subtype == "initialize" {
		if c.effort != "" {
			c.request("set_effort", "effort", c.effort, out)
		}
		c.Ready()
		c.next(out)
	}
	return true
}
