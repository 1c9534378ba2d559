package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/jsonrpc"
)

// interaction is a question of the CLI's that waits for its answer.
type interaction struct {
	id        string // as the events name it
	rpcID     json.RawMessage
	method    string
	thread    *thread
	toolID    string
	params    json.RawMessage // what is asked for: permissions
	questions []question      // none for an approval
}

// question is one of several.
type question struct {
	id   string
	text string
}

func (i *interaction) asks() bool { return len(i.questions) > 0 }

// request is the CLI asking its client.
func (c *conversation) request(m *jsonrpc.Message, out *sdk.Out) error {
	p := m.Params
	t := c.thread(p.Text("threadId"))
	// The CLI counts its requests from 0 in each process.
	id := "ask-" + strconv.FormatUint(out.N(), 10)
	i := &interaction{id: id, rpcID: m.ID, method: m.Method, thread: t, toolID: p.Text("itemId")}
	if slices.ContainsFunc(c.open, func(o *interaction) bool { return string(o.rpcID) == string(m.ID) }) {
		return nil
	}
	request := pluginapi.ApprovalRequest{InteractionID: i.id, ToolCallID: i.toolID, RiskLevel: "medium", Nested: t.nested()}
	about := t.tool(i.toolID)
	if about != nil {
		request.ToolName, request.Input = about.name, about.input
	}
	switch m.Method {
	case "item/commandExecution/requestApproval":
		request.Action, request.RiskLevel, request.Detail = "run a command", "high", plainCommand(p)
		request.ToolKind = pluginapi.ToolShell
		if request.ToolName == "" {
			request.ToolName, request.Input = shellTool, inputObject("command", request.Detail, "cwd", p.Text("cwd"))
		}
		if reason := p.Text("reason"); reason != "" {
			request.Action += ": " + reason
		}
	case "item/fileChange/requestApproval":
		request.Action, request.ToolName = "change files", patchTool
		request.ToolKind, request.Paths = pluginapi.ToolFile, changedPaths(request.Input)
		request.Detail = strings.Join(request.Paths, ", ")
		if reason := p.Text("reason"); reason != "" {
			request.Action += ": " + reason
		}
	case "item/permissions/requestApproval":
		request.Action, request.Detail = "get more permissions", p.Text("reason")
		i.params = p.Raw("permissions")
		request.Input = i.params
	case "item/tool/requestUserInput":
		i.questions = userQuestions(p)
		if about == nil {
			// No item tells this tool.
			about = &tool{id: i.toolID, name: askTool, kind: "userInput"}
			about.input = append(append([]byte(`{"questions":`), p.Get("questions").AppendRaw(nil)...), '}')
			c.begin(t, about, out)
		}
	case "mcpServer/elicitation/request":
		if p.Text("_meta", "codex_approval_kind") == "" {
			i.questions = elicited(p)
			break
		}
		server := p.Text("serverName")
		name := p.Text("_meta", "tool_name")
		request.Action, request.ToolName, request.Detail = p.Text("message"), "mcp__"+server+"__"+name, string(p.Raw("_meta", "tool_params"))
		request.Input = p.Raw("_meta", "tool_params")
		// Which call it is about is not said: the latest of that tool.
		for _, open := range t.tools {
			if open.name == request.ToolName {
				request.ToolCallID, i.toolID = open.id, open.id
			}
		}
	default:
		out.Event(pluginapi.Debug{Level: "warn", Message: "codex asked for " + strconv.Quote(m.Method) + ", which amux does not have"})
		out.Write(c.peer.Refuse(m.ID, jsonrpc.MethodNotFound, "not supported by amux"))
		return nil
	}
	c.open = append(c.open, i)
	if i.asks() {
		required := pluginapi.InputRequired{InteractionID: i.id, Question: i.questions[0].text, Source: "agent", Nested: t.nested()}
		if m.Method == "mcpServer/elicitation/request" {
			required.Source = "tool"
		}
		required.Questions = pluginQuestions(p, i.questions)
		out.Event(required)
		return nil
	}
	if request.Detail == "" {
		request.Detail = request.Action
	}
	out.Event(request)
	return nil
}

// changedPaths are the files of apply_patch.
func changedPaths(input []byte) []string {
	doc, err := jsonl.ParseObject(input)
	if err != nil {
		return nil
	}
	defer doc.Release()
	var paths []string
	for _, change := range doc.Items("changes") {
		paths = append(paths, change.Text("path"))
		if moved := change.Text("kind", "move_path"); moved != "" {
			paths = append(paths, moved)
		}
	}
	return paths
}

func userQuestions(p jsonl.Value) []question {
	var list []question
	for _, q := range p.Items("questions") {
		list = append(list, question{q.Text("id"), q.Text("question")})
	}
	if len(list) == 0 {
		list = append(list, question{"", "codex asks for input"})
	}
	return list
}

// elicited are the fields that an MCP server wants filled in; of another mode
// there is one question, to be confirmed.
func elicited(p jsonl.Value) []question {
	var list []question
	for name := range p.Fields("requestedSchema", "properties") {
		list = append(list, question{name, name})
	}
	if len(list) == 1 {
		list[0].text = p.Text("message")
	}
	if len(list) == 0 {
		text := p.Text("message")
		if text == "" {
			text = p.Text("title")
		}
		list = append(list, question{"", strings.TrimSpace(text + " " + p.Text("url"))})
	}
	return list
}

// pluginQuestions adds to the questions what may be chosen.
func pluginQuestions(p jsonl.Value, questions []question) []pluginapi.Question {
	var list []pluginapi.Question
	for n, q := range questions {
		native := p.Get("questions", strconv.Itoa(n))
		entry := pluginapi.Question{Question: q.text, Header: native.Text("header")}
		for _, option := range native.Items("options") {
			entry.Options = append(entry.Options, option.Text("label"))
		}
		for _, value := range p.Items("requestedSchema", "properties", q.id, "enum") {
			entry.Options = append(entry.Options, value.Text())
		}
		list = append(list, entry)
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

func (c *conversation) reply(i *interaction, result any, out *sdk.Out) error {
	line, err := c.peer.Reply(i.rpcID, result)
	if err != nil {
		return err
	}
	out.Write(line)
	return nil
}

// decide answers an approval.
func (c *conversation) decide(i *interaction, yes bool, out *sdk.Out) error {
	switch i.method {
	case "mcpServer/elicitation/request":
		if yes {
			return c.reply(i, object{"action": "accept", "content": object{}, "_meta": nil}, out)
		}
		return c.reply(i, object{"action": "decline", "content": nil, "_meta": nil}, out)
	case "item/permissions/requestApproval":
		if yes {
			return c.reply(i, object{"permissions": i.params, "scope": "turn"}, out)
		}
		return c.reply(i, object{"permissions": object{}, "scope": "turn"}, out)
	}
	if yes {
		return c.reply(i, object{"decision": "accept"}, out)
	}
	return c.reply(i, object{"decision": "decline"}, out)
}

func (c *conversation) approve(id string, data []byte, out *sdk.Out) error {
	i := c.take(id)
	if i == nil {
		c.noInteraction(id, out)
		return nil
	}
	if doc, err := jsonl.ParseObject(data); err == nil {
		if doc.IsObject("updated_input") {
			out.Event(pluginapi.Debug{Level: "warn", Message: "codex takes a tool's input as it is: the changed input is not used"})
		}
		doc.Release()
	}
	if err := c.decide(i, true, out); err != nil {
		return err
	}
	if i.asks() {
		out.Event(pluginapi.InputAnswered{InteractionID: id, Nested: i.thread.nested()})
		return nil
	}
	out.Event(pluginapi.ApprovalGranted{InteractionID: id, Nested: i.thread.nested()})
	if tool := i.thread.tool(i.toolID); tool != nil {
		c.shellStart(i.thread, tool, out)
	}
	return nil
}

// deny refuses. The protocol has no place for a reason: it is told to the agent
// as a message in its turn, before the refusal, so that it is there when the
// model reads that.
func (c *conversation) deny(id, reason string, out *sdk.Out) error {
	i := c.take(id)
	if i == nil {
		c.noInteraction(id, out)
		return nil
	}
	if reason != "" && i.thread == c.main && c.turnID != "" && !i.asks() {
		message := sdk.UUID(c.state.Salt, "deny", id)
		c.ours[message] = true
		if err := c.call("turn/steer", object{
			"threadId": c.main.id, "expectedTurnId": c.turnID, "clientUserMessageId": message,
			"input": []any{newText("The user denied this: " + reason)},
		}, out); err != nil {
			return err
		}
	}
	if i.method == "item/tool/requestUserInput" {
		out.Write(c.peer.Refuse(i.rpcID, jsonrpc.InvalidRequest, "the user did not answer"))
	} else if err := c.decide(i, false, out); err != nil {
		return err
	}
	if i.asks() {
		out.Event(pluginapi.InputAnswered{InteractionID: id, Cancelled: true, Nested: i.thread.nested()})
		if tool := i.thread.tool(i.toolID); tool != nil {
			c.fail(i.thread, tool, "the user did not answer", out)
		}
	} else {
		out.Event(pluginapi.ApprovalDenied{InteractionID: id, Reason: reason, Nested: i.thread.nested()})
	}
	return nil
}

// answer answers questions. data is an object question → answer (several as an
// array), or the plain answer to the first.
func (c *conversation) answer(id string, data []byte, out *sdk.Out) error {
	i := c.take(id)
	if i == nil {
		c.noInteraction(id, out)
		return nil
	}
	if !i.asks() {
		// An approval is no question: it stays open.
		c.open = append(c.open, i)
		out.Event(pluginapi.Debug{Level: "warn", Message: "the agent waits for an approval, not for an answer: " + id})
		return nil
	}
	answers := readAnswers(i.questions, data)
	var err error
	if i.method == "mcpServer/elicitation/request" {
		content := object{}
		for question, list := range answers {
			if question != "" {
				content[question] = strings.Join(list, ", ")
			}
		}
		err = c.reply(i, object{"action": "accept", "content": content, "_meta": nil}, out)
	} else {
		content := object{}
		for question, list := range answers {
			content[question] = object{"answers": list}
		}
		err = c.reply(i, object{"answers": content}, out)
	}
	if err != nil {
		return err
	}
	out.Event(pluginapi.InputAnswered{InteractionID: id, Nested: i.thread.nested()})
	if tool := i.thread.tool(i.toolID); tool != nil {
		output, err := json.Marshal(answers)
		if err != nil {
			return err
		}
		c.result(i.thread, tool, output, nil, out)
	}
	return nil
}

// readAnswers finds the answers by the questions' ids.
func readAnswers(questions []question, data []byte) map[string][]string {
	answers := map[string][]string{}
	doc, err := jsonl.ParseObject(data)
	if err != nil {
		answers[questions[0].id] = []string{string(data)}
		return answers
	}
	defer doc.Release()
	for name, value := range doc.Fields() {
		id := name
		for _, q := range questions {
			if q.text == name {
				id = q.id
			}
		}
		switch {
		case value.IsString():
			answers[id] = []string{value.Text()}
		case value.IsArray():
			for _, one := range value.Items() {
				answers[id] = append(answers[id], one.Text())
			}
		default:
			answers[id] = []string{string(value.Raw())}
		}
	}
	return answers
}

func (c *conversation) noInteraction(id string, out *sdk.Out) {
	out.Event(pluginapi.Debug{Level: "warn", Message: "codex asks no question " + strconv.Quote(id) + " any more"})
}

// resolved says that the CLI does not wait any more: we have answered, or it
// asks no longer.
func (c *conversation) resolved(rpcID string, out *sdk.Out) {
	for _, i := range c.open {
		if string(i.rpcID) == rpcID {
			c.withdraw(i.id, out)
			return
		}
	}
}

func (c *conversation) withdraw(id string, out *sdk.Out) {
	i := c.take(id)
	switch {
	case i == nil:
	case i.asks():
		out.Event(pluginapi.InputAnswered{InteractionID: id, Cancelled: true, Nested: i.thread.nested()})
	default:
		out.Event(pluginapi.ApprovalDenied{InteractionID: id, Reason: "withdrawn by the agent", Nested: i.thread.nested()})
	}
}

func (c *conversation) withdrawAll(out *sdk.Out) {
	for _, i := range slices.Clone(c.open) {
		c.withdraw(i.id, out)
	}
}
