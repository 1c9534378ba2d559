package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// interaction is a question of the CLI's that waits for its answer.
type interaction struct {
	id        string // of the control request
	toolID    string
	parent    string
	input     json.RawMessage
	questions []pluginapi.Question // of AskUserQuestion; none for an approval
}

func (i *interaction) nest() pluginapi.Nested { return pluginapi.Nested{ParentID: i.parent} }

// risks of the CLI's own tools: reading is low, what runs code is high. All
// others are medium.
var risks = map[string]string{
	"Read": "low", "Grep": "low", "Glob": "low", "LS": "low", "WebSearch": "low",
	"TodoWrite": "low", "ToolSearch": "low", "ExitPlanMode": "low",
	"Bash": "high", "PowerShell": "high", "Workflow": "high",
}

// controlRequest is the CLI asking its host.
func (c *conversation) controlRequest(line jsonl.Value, out *sdk.Out) {
	id := line.Text("request_id")
	request := line.Get("request")
	if request.Text("subtype") != "can_use_tool" {
		out.Event(pluginapi.Debug{Level: "warn", Message: "claude asked for " + strconv.Quote(request.Text("subtype")) + ", which amux does not have"})
		b := append([]byte(nil), `{"type":"control_response","response":{"subtype":"error","request_id":`...)
		b = pluginapi.AppendString(b, id)
		out.Write(append(b, `,"error":"not supported by amux"}}`+"\n"...))
		return
	}
	if slices.ContainsFunc(c.open, func(i *interaction) bool { return i.id == id }) {
		return
	}
	name := request.Text("tool_name")
	i := &interaction{id: id, toolID: request.Text("tool_use_id"), input: request.Raw("input")}
	if t := c.tool(i.toolID); t != nil {
		i.parent = t.parent
	}
	c.open = append(c.open, i)
	if name == "AskUserQuestion" {
		i.questions = questions(request.Get("input"))
	}
	if len(i.questions) > 0 {
		out.Event(pluginapi.InputRequired{
			InteractionID: id, Question: i.questions[0].Question, Source: "tool",
			Questions: i.questions, Nested: i.nest(),
		})
		return
	}
	risk := risks[name]
	if risk == "" {
		risk = "medium"
	}
	out.Event(pluginapi.ApprovalRequest{
		InteractionID: id, Action: name, Detail: detail(name, request), ToolName: name,
		ToolCallID: i.toolID, Input: i.input, RiskLevel: risk, ToolKind: toolKinds[name], Nested: i.nest(),
	})
}

// toolKinds are those of the tools whose input rules look into.
var toolKinds = map[string]string{
	"Bash": pluginapi.ToolShell, "PowerShell": pluginapi.ToolCommand, "WebFetch": pluginapi.ToolFetch,
	"Read": pluginapi.ToolFile, "Write": pluginapi.ToolFile, "Edit": pluginapi.ToolFile, "MultiEdit": pluginapi.ToolFile, "NotebookEdit": pluginapi.ToolFile,
}

// judged are the keys of the input that say what a tool of the kind is asked to do.
var judged = map[string][]string{
	pluginapi.ToolShell: {"command"}, pluginapi.ToolCommand: {"command"}, pluginapi.ToolFetch: {"url"}, pluginapi.ToolFile: {"file_path", "notebook_path"},
}

// detail is the line that somebody has to judge.
func detail(name string, request jsonl.Value) string {
	input := request.Get("input")
	for _, key := range append(judged[toolKinds[name]], "command", "file_path", "notebook_path", "url", "plan", "prompt") {
		if text := input.Text(key); text != "" {
			return text
		}
	}
	if text := request.Text("description"); text != "" {
		return text
	}
	if strings.HasPrefix(name, mcpPrefix) {
		return string(input.Raw())
	}
	return name
}

func questions(input jsonl.Value) []pluginapi.Question {
	var list []pluginapi.Question
	for _, q := range input.Items("questions") {
		question := pluginapi.Question{
			Question: q.Text("question"), Header: q.Text("header"), Multiple: q.Bool("multiSelect"),
		}
		for _, option := range q.Items("options") {
			question.Options = append(question.Options, option.Text("label"))
		}
		list = append(list, question)
	}
	return list
}

// take removes an open interaction; nil if there is none of that id.
func (c *conversation) take(id string) *interaction {
	for n, i := range c.open {
		if i.id == id {
			c.open = slices.Delete(c.open, n, n+1)
			return i
		}
	}
	return nil
}

// respond writes the answer to a control request.
func (c *conversation) respond(id string, response []byte, out *sdk.Out) {
	b := make([]byte, 0, len(response)+len(id)+100)
	b = append(b, `{"type":"control_response","response":{"subtype":"success","request_id":`...)
	b = pluginapi.AppendString(b, id)
	b = append(append(b, `,"response":`...), response...)
	out.Write(append(b, "}}\n"...))
}

func (c *conversation) allow(i *interaction, input json.RawMessage, out *sdk.Out) {
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	b := append([]byte(nil), `{"behavior":"allow","updatedInput":`...)
	c.respond(i.id, append(append(b, input...), '}'), out)
}

func (c *conversation) approve(id string, data []byte, out *sdk.Out) {
	i := c.take(id)
	if i == nil {
		c.noInteraction(id, out)
		return
	}
	input := i.input
	if doc, err := jsonl.ParseObject(data); err == nil {
		if doc.IsObject("updated_input") {
			input = doc.Raw("updated_input")
		}
		doc.Release()
	}
	c.allow(i, input, out)
	if len(i.questions) > 0 {
		out.Event(pluginapi.InputAnswered{InteractionID: id, Nested: i.nest()})
	} else {
		out.Event(pluginapi.ApprovalGranted{InteractionID: id, Nested: i.nest()})
	}
}

func (c *conversation) deny(id, reason string, out *sdk.Out) {
	i := c.take(id)
	if i == nil {
		c.noInteraction(id, out)
		return
	}
	message := reason
	if message == "" {
		message = "The user denied this."
	}
	b := append([]byte(nil), `{"behavior":"deny","message":`...)
	c.respond(id, append(pluginapi.AppendString(b, message), '}'), out)
	if len(i.questions) > 0 {
		out.Event(pluginapi.InputAnswered{InteractionID: id, Cancelled: true, Nested: i.nest()})
	} else {
		out.Event(pluginapi.ApprovalDenied{InteractionID: id, Reason: reason, Nested: i.nest()})
	}
}

// answer answers AskUserQuestion: its input goes back with the answers in it.
func (c *conversation) answer(id string, data []byte, out *sdk.Out) {
	i := c.take(id)
	if i == nil {
		c.noInteraction(id, out)
		return
	}
	if len(i.questions) == 0 {
		// An approval is no question: it stays open.
		c.open = append(c.open, i)
		out.Event(pluginapi.Debug{Level: "warn", Message: "the agent waits for an approval, not for an answer: " + id})
		return
	}
	c.allow(i, withAnswers(i, data), out)
	out.Event(pluginapi.InputAnswered{InteractionID: id, Nested: i.nest()})
}

// withAnswers puts answers into the input of AskUserQuestion. data is an object
// question → answer (several answers to one question as an array), or the plain
// answer to the first question.
func withAnswers(i *interaction, data []byte) json.RawMessage {
	answers := []byte("{")
	add := func(question, answer string) {
		if len(answers) > 1 {
			answers = append(answers, ',')
		}
		answers = append(pluginapi.AppendString(answers, question), ':')
		answers = pluginapi.AppendString(answers, answer)
	}
	doc, err := jsonl.ParseObject(data)
	if err != nil {
		add(i.questions[0].Question, string(data))
	} else {
		for question, answer := range doc.Fields() {
			switch {
			case answer.IsString():
				add(question, answer.Text())
			case answer.IsArray():
				var several []string
				for _, one := range answer.Items() {
					several = append(several, one.Text())
				}
				add(question, strings.Join(several, ", "))
			default:
				add(question, string(answer.Raw()))
			}
		}
		doc.Release()
	}
	answers = append(answers, '}')
	b := []byte("{")
	if doc, err := jsonl.ParseObject(i.input); err == nil {
		for key, value := range doc.Fields() {
			if key != "answers" {
				b = append(pluginapi.AppendString(b, key), ':')
				b = append(value.AppendRaw(b), ',')
			}
		}
		doc.Release()
	}
	b = append(append(b, `"answers":`...), answers...)
	return append(b, '}')
}

func (c *conversation) noInteraction(id string, out *sdk.Out) {
	out.Event(pluginapi.Debug{Level: "warn", Message: "claude asks no question " + strconv.Quote(id) + " any more"})
}

const withdrawn = "withdrawn by the agent"

// withdraw ends a question that the CLI does not ask any more.
func (c *conversation) withdraw(id string, out *sdk.Out) {
	i := c.take(id)
	switch {
	case i == nil:
	case len(i.questions) > 0:
		out.Event(pluginapi.InputAnswered{InteractionID: id, Cancelled: true, Nested: i.nest()})
	default:
		out.Event(pluginapi.ApprovalDenied{InteractionID: id, Reason: withdrawn, Nested: i.nest()})
	}
}

// withdrawTool ends the question about a tool that has a result without it.
func (c *conversation) withdrawTool(toolID string, out *sdk.Out) {
	for _, i := range c.open {
		if i.toolID == toolID {
			c.withdraw(i.id, out)
			return
		}
	}
}

// withdrawAll ends all questions; those of sub-agents outlive a turn.
func (c *conversation) withdrawAll(nested bool, out *sdk.Out) {
	for _, i := range slices.Clone(c.open) {
		if nested || i.parent == "" {
			c.withdraw(i.id, out)
		}
	}
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
		out.Event(pluginapi.ErrorEvent{
			Code: pluginapi.CodeAgentFailed, Message: subtype + ": " + response.Text("error"), Recoverable: true,
		})
	default:
		return false
	}
	return true
}
