package acp

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/jsonrpc"
	"github.com/amux-dev/amux/sdk/turn"
)

// form is what an agent asks by elicitation/create: a question for each field.
type form struct {
	id     json.RawMessage
	fields []field
	yes    string // the answer that approves, of a form that asks for an approval
}

// Approval is what a form asks permission for.
type Approval struct {
	Tool, Detail, ToolKind, Risk string
	Input                        json.RawMessage
	Yes                          string // the answer that approves
}

// field is one value of a form.
type field struct {
	name     string
	kind     string // string, number, integer, boolean, array
	required bool
	values   []choice // to choose from, several for an array: id is the value, kind its title
}

// elicit asks the user what the agent wants to know.
func (qs *questions) elicit(m *jsonrpc.Message, out *sdk.Out) {
	message := m.Params.Text("message")
	if m.Params.Text("mode") != "form" {
		// Not offered in the handshake.
		out.Event(pluginapi.Debug{Level: "warn", Message: qs.Agent + " asks to open " + m.Params.Text("url") + ", which amux does not do: " + message})
		qs.reply(m.ID, map[string]any{"action": "decline"}, out)
		return
	}
	schema := m.Params.Get("requestedSchema")
	var required []string
	for _, name := range schema.Items("required") {
		required = append(required, name.Text())
	}
	asked := form{id: append(json.RawMessage(nil), m.ID...)}
	var questions []pluginapi.Question
	for name, property := range schema.Fields("properties") {
		f := field{name: name, kind: property.Text("type"), required: slices.Contains(required, name)}
		q := pluginapi.Question{Header: name, Question: name, Multiple: f.kind == "array"}
		for _, key := range []string{"description", "title"} {
			if text := property.Text(key); text != "" {
				q.Question = text
			}
		}
		if slices.ContainsFunc(questions, func(o pluginapi.Question) bool { return o.Question == q.Question }) {
			q.Question += " (" + name + ")" // answers name their question
		}
		f.values = values(property)
		for _, v := range f.values {
			q.Options = append(q.Options, v.kind)
		}
		asked.fields = append(asked.fields, f)
		questions = append(questions, q)
	}
	id := "elicitation-" + strings.Trim(string(m.ID), `"`)
	if a, ok := qs.approval(message, asked); ok {
		asked.yes = a.Yes
		qs.Ask(&turn.Question{
			ID: id, Action: a.Tool, Tool: a.Tool, Detail: a.Detail, Risk: a.Risk, ToolKind: a.ToolKind, Input: a.Input, Note: asked,
		}, out)
		return
	}
	if len(questions) == 0 {
		questions = []pluginapi.Question{{Question: message, Options: []string{"accept", "decline"}}}
	}
	qs.Ask(&turn.Question{
		ID: id, Detail: message, ToolID: m.Params.Text("toolCallId"),
		Questions: questions, Note: asked,
	}, out)
}

// approval reads a form that asks for an approval: it has one field, one of whose values
// approves.
func (qs *questions) approval(message string, asked form) (a Approval, ok bool) {
	if qs.config.Approval == nil || len(asked.fields) != 1 {
		return a, false
	}
	a, ok = qs.config.Approval(message)
	return a, ok && slices.ContainsFunc(asked.fields[0].values, func(v choice) bool { return v.id == a.Yes })
}

// values are those that a field may have; nil: any.
func values(property jsonl.Value) []choice {
	if property.Text("type") == "boolean" {
		return []choice{{"true", "yes"}, {"false", "no"}}
	}
	var all []choice
	for _, p := range []jsonl.Value{property, property.Get("items")} {
		for _, v := range p.Items("enum") {
			all = append(all, choice{v.Text(), v.Text()})
		}
		for _, key := range []string{"oneOf", "anyOf"} {
			for _, v := range p.Items(key) {
				title := v.Text("title")
				if title == "" {
					title = v.Text("const")
				}
				all = append(all, choice{v.Text("const"), title})
			}
		}
	}
	return all
}

// fill answers a form.
func (qs *questions) fill(q *turn.Question, f form, data []byte, out *sdk.Out) {
	answers := turn.Answers(q.Questions, data)
	if len(f.fields) == 0 {
		action := "accept"
		if len(answers) > 0 && strings.EqualFold(answers[0], "decline") {
			action = "decline"
		}
		qs.reply(f.id, map[string]any{"action": action, "content": map[string]any{}}, out)
		qs.Granted(q, out)
		return
	}
	content := map[string]any{}
	for i, field := range f.fields {
		if answers[i] == "" {
			if field.required {
				qs.PutBack(q, "an answer to "+strconv.Quote(q.Questions[i].Question)+" is required", out)
				return
			}
			continue
		}
		value, why := field.value(answers[i])
		if why != "" {
			qs.PutBack(q, strconv.Quote(answers[i])+" is no answer to "+strconv.Quote(q.Questions[i].Question)+": "+why, out)
			return
		}
		content[field.name] = value
	}
	qs.reply(f.id, map[string]any{"action": "accept", "content": content}, out)
	qs.Granted(q, out)
}

// value is an answer as the form wants it, or why there is no such answer.
func (f field) value(answer string) (value any, why string) {
	if f.kind == "array" {
		several := []string{}
		for part := range strings.SplitSeq(answer, ",") {
			one, why := f.chosen(strings.TrimSpace(part))
			if why != "" {
				return nil, why
			}
			several = append(several, one)
		}
		return several, ""
	}
	one, why := f.chosen(answer)
	if why != "" {
		return nil, why
	}
	switch f.kind {
	case "boolean":
		return one == "true", ""
	case "integer":
		n, err := strconv.ParseInt(one, 10, 64)
		if err != nil {
			return nil, "expected a whole number"
		}
		return n, ""
	case "number":
		if !json.Valid([]byte(one)) {
			return nil, "expected a number"
		}
		n, err := strconv.ParseFloat(one, 64)
		if err != nil {
			return nil, "expected a number"
		}
		return n, ""
	}
	return one, ""
}

// chosen finds a value by itself or by its title.
func (f field) chosen(answer string) (value, why string) {
	if len(f.values) == 0 {
		return answer, ""
	}
	var titles []string
	for _, v := range f.values {
		if strings.EqualFold(answer, v.kind) || answer == v.id {
			return v.id, ""
		}
		titles = append(titles, v.kind)
	}
	return "", "expected one of " + strings.Join(titles, ", ")
}

// withdrawn takes back a question that the agent no longer waits for.
func (qs *questions) withdrawn(id []byte, out *sdk.Out) {
	qs.Withdraw(func(q *turn.Question) bool {
		waits := q.Note
		if f, ok := waits.(form); ok {
			waits = asked{id: f.id}
		}
		a, ok := waits.(asked)
		if !ok || string(a.id) != string(id) {
			return false
		}
		out.Write(qs.peer.Refuse(a.id, jsonrpc.RequestCancelled, "cancelled"))
		return true
	}, out)
}
