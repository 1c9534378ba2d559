package acpagent

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// form asks the client to fill in a form (elicitation/create).
type form struct {
	SessionID acp.SessionId `json:"sessionId"`
	Mode      string        `json:"mode"` // form
	Message   string        `json:"message"`
	Schema    formSchema    `json:"requestedSchema"`
}

type formSchema struct {
	Type       string               `json:"type"` // object
	Properties map[string]formField `json:"properties"`
	Required   []string             `json:"required"`
}

// formField is a text, one of several values, or several of them.
type formField struct {
	Type        string       `json:"type"` // string, array
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	OneOf       []formValue  `json:"oneOf,omitempty"`
	Items       *formChoices `json:"items,omitempty"`
}

type formChoices struct {
	AnyOf []formValue `json:"anyOf"`
}

type formValue struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// filled is what the client did with a form.
type filled struct {
	Action  string                     `json:"action"` // accept, decline, cancel
	Content map[string]json.RawMessage `json:"content"`
}

// formOf is the form of a question of the agent, with one field for each of its parts.
func formOf(id acp.SessionId, e pluginapi.InputRequired) form {
	f := form{SessionID: id, Mode: "form", Message: e.Question, Schema: formSchema{Type: "object", Properties: map[string]formField{}}}
	if e.Context != "" {
		f.Message = strings.TrimSpace(f.Message + "\n" + e.Context)
	}
	for n, q := range partsOf(e) {
		field := formField{Type: "string", Title: q.Question}
		if q.Header != "" && q.Header != q.Question {
			field.Title, field.Description = q.Header, q.Question
		}
		values := make([]formValue, 0, len(q.Options))
		for _, option := range q.Options {
			values = append(values, formValue{option, option})
		}
		switch {
		case len(values) > 0 && q.Multiple:
			field.Type, field.Items = "array", &formChoices{values}
		case len(values) > 0:
			field.OneOf = values
		}
		f.Schema.Properties[fieldName(n)] = field
		f.Schema.Required = append(f.Schema.Required, fieldName(n))
	}
	if f.Message == "" {
		f.Message = f.Schema.Properties[fieldName(0)].Title
	}
	return f
}

// partsOf are the questions that are asked at once, at least one.
func partsOf(e pluginapi.InputRequired) []pluginapi.Question {
	if len(e.Questions) > 0 {
		return e.Questions
	}
	return []pluginapi.Question{{Question: e.Question}}
}

func fieldName(n int) string { return "answer_" + strconv.Itoa(n+1) }

// answerOf is a filled form as the answer of a run: see host.Run.Answer. It is empty if
// something is missing.
func answerOf(e pluginapi.InputRequired, content map[string]json.RawMessage) string {
	answers := map[string]string{}
	last := ""
	for n, q := range partsOf(e) {
		var one string
		var several []string
		raw := content[fieldName(n)]
		switch {
		case json.Unmarshal(raw, &one) == nil:
		case json.Unmarshal(raw, &several) == nil:
			one = strings.Join(several, ", ")
		}
		if one == "" {
			return ""
		}
		answers[q.Question], last = one, one
	}
	if len(e.Questions) == 0 {
		return last
	}
	data, err := json.Marshal(answers)
	if err != nil {
		return ""
	}
	return string(data)
}

// fill has the client fill in a form. If it does not, the question stays open.
func (s *session) fill(ctx context.Context, r app.Recorded, q host.Question, e pluginapi.InputRequired) {
	answer, err := acp.SendRequest[filled](s.agent.client.conn, ctx, acp.ClientMethodElicitationCreate, formOf(s.id, e))
	switch {
	case ctx.Err() != nil:
		return
	case err != nil: // it cannot show this form
		s.tell(q.ID, e)
		return
	}
	switch answer.Action {
	case "accept":
		text := answerOf(e, answer.Content)
		if text == "" {
			s.tell(q.ID, e)
			return
		}
		err = r.Answer(ctx, q.ID, text)
	case "decline":
		err = r.Deny(ctx, q.ID, "")
	}
	s.late(err)
}
