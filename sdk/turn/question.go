package turn

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// Question is what an agent asks and waits for: an approval, or an answer if it
// has Questions.
type Question struct {
	// ID names it to users. It must be unique in the run.
	ID        string
	ToolID    string
	Parent    string
	Action    string
	Detail    string
	Tool      string
	Input     json.RawMessage
	Risk      string   // low, medium, high
	ToolKind  string   // one of pluginapi's Tool… constants, or empty
	Paths     []string // of the files that the tool will touch
	Questions []pluginapi.Question
	Source    string // of the questions; empty: a tool
	Note      any    // the adapter's own
}

func (q *Question) nest() pluginapi.Nested { return pluginapi.Nested{ParentID: q.Parent} }

// Questions are those that are open. The zero value is ready.
type Questions struct{ open []*Question }

// Ask tells of a question, once.
func (qs *Questions) Ask(q *Question, out *sdk.Out) {
	if qs.Asks(func(o *Question) bool { return o.ID == q.ID }) {
		return
	}
	qs.open = append(qs.open, q)
	if len(q.Questions) > 0 {
		out.Event(pluginapi.InputRequired{
			InteractionID: q.ID, Question: q.Questions[0].Question, Context: q.Detail, Source: cmp.Or(q.Source, "tool"),
			Questions: q.Questions, Nested: q.nest(),
		})
		return
	}
	out.Event(pluginapi.ApprovalRequest{
		InteractionID: q.ID, Action: q.Action, Detail: q.Detail, ToolName: q.Tool,
		ToolCallID: q.ToolID, Input: q.Input, RiskLevel: q.Risk, ToolKind: q.ToolKind, Paths: q.Paths, Nested: q.nest(),
	})
}

// Asks reports whether a question is open that the filter takes.
func (qs *Questions) Asks(which func(*Question) bool) bool {
	return slices.ContainsFunc(qs.open, which)
}

// take removes an open question; nil: there is none of that id.
func (qs *Questions) take(id string) *Question {
	for i, q := range qs.open {
		if q.ID == id {
			qs.open = slices.Delete(qs.open, i, i+1)
			return q
		}
	}
	return nil
}

// Take removes an open question; nil, and a warning to the user, if there is none
// of that id.
func (b *Base) Take(id string, out *sdk.Out) *Question {
	q := b.take(id)
	if q == nil {
		out.Event(pluginapi.Debug{Level: "warn", Message: b.Agent + " asks no question " + strconv.Quote(id) + " any more"})
	}
	return q
}

// PutBack opens a question again that was answered in the wrong way.
func (qs *Questions) PutBack(q *Question, why string, out *sdk.Out) {
	qs.open = append(qs.open, q)
	out.Event(pluginapi.Debug{Level: "warn", Message: why + ": " + q.ID})
}

// Granted says that a question was answered with yes, or at all.
func (qs *Questions) Granted(q *Question, out *sdk.Out) {
	if len(q.Questions) > 0 {
		out.Event(pluginapi.InputAnswered{InteractionID: q.ID, Nested: q.nest()})
	} else {
		out.Event(pluginapi.ApprovalGranted{InteractionID: q.ID, Nested: q.nest()})
	}
}

// Denied says that a question was answered with no.
func (qs *Questions) Denied(q *Question, reason string, out *sdk.Out) {
	if len(q.Questions) > 0 {
		out.Event(pluginapi.InputAnswered{InteractionID: q.ID, Cancelled: true, Nested: q.nest()})
	} else {
		out.Event(pluginapi.ApprovalDenied{InteractionID: q.ID, Reason: reason, Nested: q.nest()})
	}
}

const withdrawn = "withdrawn by the agent"

// Withdraw ends the open questions that the filter takes: the agent does not wait
// for their answers any more.
func (qs *Questions) Withdraw(which func(*Question) bool, out *sdk.Out) {
	for _, q := range slices.Clone(qs.open) {
		if which(q) {
			qs.Denied(qs.take(q.ID), withdrawn, out)
		}
	}
}

// WithdrawTool ends the questions about a tool that has its result.
func (qs *Questions) WithdrawTool(toolID string, out *sdk.Out) {
	qs.Withdraw(func(q *Question) bool { return q.ToolID == toolID && toolID != "" }, out)
}

// WithdrawAll ends all open questions.
func (qs *Questions) WithdrawAll(out *sdk.Out) {
	qs.Withdraw(func(*Question) bool { return true }, out)
}

// Answers reads what a user answers to questions: an object question → answer
// (several answers to one question as an array), or the plain answer to the first.
// It gives one text a question, "" where there is no answer.
func Answers(questions []pluginapi.Question, data []byte) []string {
	answers := make([]string, len(questions))
	doc, err := jsonl.ParseObject(data)
	if err != nil {
		if len(answers) > 0 {
			answers[0] = string(data)
		}
		return answers
	}
	defer doc.Release()
	for key, answer := range doc.Fields() {
		i := slices.IndexFunc(questions, func(q pluginapi.Question) bool { return q.Question == key })
		if i < 0 {
			continue
		}
		switch {
		case answer.IsString():
			answers[i] = answer.Text()
		case answer.IsArray():
			var several []string
			for _, one := range answer.Items() {
				several = append(several, one.Text())
			}
			answers[i] = strings.Join(several, ", ")
		default:
			answers[i] = string(answer.Raw())
		}
	}
	return answers
}
