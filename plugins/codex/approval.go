package main

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/jsonrpc"
	"github.com/amux-dev/amux/sdk/turn"
)

// request is what the CLI asks of its client, and waits for.
type request struct {
	id        json.RawMessage
	method    string
	thread    *thread
	params    json.RawMessage // what is asked for: permissions
	questions []question      // none for an approval
}

// question is one of several.
type question struct {
	id   string
	text string
}

const (
	askCommand     = "item/commandExecution/requestApproval"
	askFiles       = "item/fileChange/requestApproval"
	askPermissions = "item/permissions/requestApproval"
	askUser        = "item/tool/requestUserInput"
	askForServer   = "mcpServer/elicitation/request"
)

// request is the CLI asking its client.
func (c *conversation) request(m *jsonrpc.Message, out *sdk.Out) {
	if c.Asks(about(m.ID)) {
		return
	}
	p := m.Params
	t := c.thread(p.Text("threadId"))
	r := &request{id: m.ID, method: m.Method, thread: t}
	// The CLI counts its requests from 0 in each process.
	q := &turn.Question{ID: "ask-" + strconv.FormatUint(out.N(), 10), ToolID: p.Text("itemId"), Parent: t.parent, Risk: "medium", Note: r}
	tool := c.Tool(q.ToolID)
	if tool != nil {
		q.Tool = tool.Name
		q.Input, _ = tool.Note.(json.RawMessage)
	}
	switch m.Method {
	case askCommand:
		q.Action, q.Risk, q.Detail, q.ToolKind = because("run a command", p), "high", plainCommand(p), pluginapi.ToolShell
		if q.Tool == "" {
			q.Tool, q.Input = shellTool, inputObject("command", q.Detail, "cwd", p.Text("cwd"))
		}
	case askFiles:
		q.Action, q.Tool, q.ToolKind, q.Paths = because("change files", p), patchTool, pluginapi.ToolFile, changedPaths(q.Input)
		q.Detail = strings.Join(q.Paths, ", ")
	case askPermissions:
		r.params = p.Raw("permissions")
		q.Action, q.Detail, q.Input = "get more permissions", p.Text("reason"), r.params
	case askUser:
		r.questions, q.Source = userQuestions(p), "agent"
		if tool == nil {
			// No item tells this tool.
			input := append(p.Get("questions").AppendRaw([]byte(`{"questions":`)), '}')
			c.begin(t, q.ToolID, askTool, input, turn.Detail{}, out)
		}
	case askForServer:
		if p.Text("_meta", "codex_approval_kind") == "" {
			r.questions = elicited(p)
			break
		}
		q.Tool, q.Input = "mcp__"+p.Text("serverName")+"__"+p.Text("_meta", "tool_name"), p.Raw("_meta", "tool_params")
		q.Action, q.Detail = p.Text("message"), string(q.Input)
		// Which call it is about is not said: the latest of that tool.
		if open := c.Newest(q.Tool); open != nil {
			q.ToolID = open.ID
		}
	default:
		out.Event(pluginapi.Debug{Level: "warn", Message: "codex asked for " + strconv.Quote(m.Method) + ", which amux does not have"})
		out.Write(c.peer.Refuse(m.ID, jsonrpc.MethodNotFound, "not supported by amux"))
		return
	}
	if len(r.questions) > 0 {
		q.Questions = pluginQuestions(p, r.questions)
	} else {
		q.Detail = cmp.Or(q.Detail, q.Action)
	}
	c.Ask(q, out)
}

// about finds the question that is asked by a request.
func about(id json.RawMessage) func(*turn.Question) bool {
	return func(q *turn.Question) bool { return string(q.Note.(*request).id) == string(id) }
}

// because is an action with the reason that the agent gives.
func because(action string, p jsonl.Value) string {
	if reason := p.Text("reason"); reason != "" {
		return action + ": " + reason
	}
	return action
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

// decision is the answer to an approval.
func (r *request) decision(yes bool) any {
	switch {
	case r.method == askForServer && yes:
		return object{"action": "accept", "content": object{}, "_meta": nil}
	case r.method == askForServer:
		return object{"action": "decline", "content": nil, "_meta": nil}
	case r.method == askPermissions && yes:
		return object{"permissions": r.params, "scope": "turn"}
	case r.method == askPermissions:
		return object{"permissions": object{}, "scope": "turn"}
	case yes:
		return object{"decision": "accept"}
	}
	return object{"decision": "decline"}
}

func (c *conversation) reply(r *request, result any, out *sdk.Out) error {
	line, err := c.peer.Reply(r.id, result)
	out.Write(line)
	return err
}

func (c *conversation) approve(id string, data []byte, out *sdk.Out) error {
	q := c.Take(id, out)
	if q == nil {
		return nil
	}
	if doc, err := jsonl.ParseObject(data); err == nil {
		if doc.IsObject("updated_input") {
			out.Event(pluginapi.Debug{Level: "warn", Message: "codex takes a tool's input as it is: the changed input is not used"})
		}
		doc.Release()
	}
	r := q.Note.(*request)
	if err := c.reply(r, r.decision(true), out); err != nil {
		return err
	}
	c.Granted(q, out)
	if tool := c.Tool(q.ToolID); tool != nil && len(q.Questions) == 0 {
		c.Run(tool, out)
	}
	return nil
}

// deny refuses. The protocol has no place for a reason: it is told to the agent
// as a message in its turn, before the refusal, so that it is there when the
// model reads that.
func (c *conversation) deny(id, reason string, out *sdk.Out) error {
	q := c.Take(id, out)
	if q == nil {
		return nil
	}
	r, asks := q.Note.(*request), len(q.Questions) > 0
	if reason != "" && r.thread == c.main && c.turnID != "" && !asks {
		message := sdk.UUID(c.state.Salt, "deny", id)
		c.ours[message] = true
		if err := c.call("turn/steer", object{
			"threadId": c.main.id, "expectedTurnId": c.turnID, "clientUserMessageId": message,
			"input": []any{newText("The user denied this: " + reason)},
		}, out); err != nil {
			return err
		}
	}
	if r.method == askUser {
		out.Write(c.peer.Refuse(r.id, jsonrpc.InvalidRequest, "the user did not answer"))
	} else if err := c.reply(r, r.decision(false), out); err != nil {
		return err
	}
	c.Denied(q, reason, out)
	if tool := c.Tool(q.ToolID); tool != nil && asks {
		c.EndTool(tool, failed("the user did not answer"), out)
	}
	return nil
}

// answer answers questions. data is an object question → answer (several as an
// array), or the plain answer to the first.
func (c *conversation) answer(id string, data []byte, out *sdk.Out) error {
	q := c.Take(id, out)
	switch {
	case q == nil:
		return nil
	case len(q.Questions) == 0:
		c.PutBack(q, "the agent waits for an approval, not for an answer", out)
		return nil
	}
	r := q.Note.(*request)
	answers := readAnswers(r.questions, data)
	content := object{}
	result := object{"answers": content}
	if r.method == askForServer {
		result = object{"action": "accept", "content": content, "_meta": nil}
	}
	for question, list := range answers {
		switch {
		case r.method != askForServer:
			content[question] = object{"answers": list}
		case question != "":
			content[question] = strings.Join(list, ", ")
		}
	}
	if err := c.reply(r, result, out); err != nil {
		return err
	}
	c.Granted(q, out)
	if tool := c.Tool(q.ToolID); tool != nil {
		output, err := json.Marshal(answers)
		if err != nil {
			return err
		}
		c.EndTool(tool, turn.Result{Output: output}, out)
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
