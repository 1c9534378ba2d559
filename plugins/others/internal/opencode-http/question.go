package opencodehttp

import (
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// questions are what waits for the user: permissions that a tool asks for, and what the
// model asks.
type questions struct {
	base   *turn.Base
	server *server
	open   map[string]bool  // those that have no answer
	held   []*turn.Question // until their tool is ready
}

const (
	// heldTimer asks a question whose tool does not become ready.
	heldTimer = "held"
	heldTime  = time.Second
)

// permission is asked for by a tool, often before the server has told its input.
func (qs *questions) permission(parent string, p jsonl.Value, out *sdk.Out) {
	q := &turn.Question{
		ID: p.Text("id"), ToolID: p.Text("tool", "callID"), Parent: parent, Action: p.Text("permission"), Risk: "medium",
	}
	var patterns []string
	for _, pattern := range p.Items("patterns") {
		patterns = append(patterns, pattern.Text())
	}
	q.Detail = strings.Join(patterns, "\n")
	switch q.Action {
	case "bash":
		if q.ToolKind = pluginapi.ToolCommand; p.Text("metadata", "command") != "" {
			q.ToolKind = pluginapi.ToolShell
		}
	case "external_directory":
		// Of a command these are folders that it names; the command is asked about by
		// itself.
		q.ToolKind = pluginapi.ToolCommand
	case "edit":
		q.ToolKind, q.Paths = pluginapi.ToolFile, patterns
	case "webfetch":
		q.ToolKind = pluginapi.ToolFetch
	}
	for _, key := range []string{"command", "filepath", "url"} {
		if text := p.Text("metadata", key); text != "" {
			q.Detail = text
		}
	}
	if q.Action == "bash" || q.Action == "external_directory" {
		q.Risk = "high"
	}
	if q.ID == "" || qs.open[q.ID] {
		return
	}
	qs.open[q.ID] = true
	t := qs.base.Tool(q.ToolID)
	if t != nil {
		q.Tool = t.Name
	}
	if t != nil && !t.Ready() {
		q.Input = nil
		qs.held = append(qs.held, q)
		out.SetTimer(heldTimer, heldTime)
		return
	}
	qs.base.Ask(q, out)
}

// release asks the questions that have waited for a tool; "" is for all of them.
func (qs *questions) release(toolID string, out *sdk.Out) {
	var rest []*turn.Question
	for _, q := range qs.held {
		if toolID == "" || q.ToolID == toolID {
			qs.base.Ask(q, out)
		} else {
			rest = append(rest, q)
		}
	}
	if len(qs.held) > 0 && len(rest) == 0 {
		out.SetTimer(heldTimer, 0)
	}
	qs.held = rest
}

// drop forgets the questions of the turn.
func (qs *questions) drop() {
	qs.held = nil
	clear(qs.open)
}

// question is put to the user by the model.
func (qs *questions) question(parent string, p jsonl.Value, out *sdk.Out) {
	q := &turn.Question{ID: p.Text("id"), ToolID: p.Text("tool", "callID"), Parent: parent}
	for _, one := range p.Items("questions") {
		question := pluginapi.Question{Question: one.Text("question"), Header: one.Text("header"), Multiple: one.Bool("multiple")}
		for _, option := range one.Items("options") {
			question.Options = append(question.Options, option.Text("label"))
		}
		q.Questions = append(q.Questions, question)
	}
	if q.ID == "" || len(q.Questions) == 0 || qs.open[q.ID] {
		return
	}
	qs.open[q.ID] = true
	qs.base.Ask(q, out)
}

// take is an open question; nil if it is not open any more.
func (qs *questions) take(id string, out *sdk.Out) *turn.Question {
	q := qs.base.Take(id, out)
	if q != nil {
		delete(qs.open, id)
	}
	return q
}

func (qs *questions) approve(id string, out *sdk.Out) {
	q := qs.take(id, out)
	switch {
	case q == nil:
	case len(q.Questions) > 0:
		qs.open[id] = true
		qs.base.PutBack(q, "the agent waits for an answer, not for an approval", out)
	default:
		qs.server.request("approve", "POST", "/permission/"+id+"/reply", map[string]string{"reply": "once"}, out)
		qs.base.Granted(q, out)
	}
}

func (qs *questions) deny(id, reason string, out *sdk.Out) {
	q := qs.take(id, out)
	switch {
	case q == nil:
		return
	case len(q.Questions) > 0:
		qs.server.request("deny", "POST", "/question/"+id+"/reject", nil, out)
	default:
		message := reason
		if message == "" {
			// Without a word the server would end the turn.
			message = "The user denied this."
		}
		qs.server.request("deny", "POST", "/permission/"+id+"/reply", map[string]string{"reply": "reject", "message": message}, out)
	}
	qs.base.Denied(q, reason, out)
}

// answer gives each question the labels, or the words, that were chosen.
func (qs *questions) answer(id string, data []byte, out *sdk.Out) {
	q := qs.take(id, out)
	switch {
	case q == nil:
		return
	case len(q.Questions) == 0:
		qs.open[id] = true
		qs.base.PutBack(q, "the agent waits for an approval, not for an answer", out)
		return
	}
	answers := make([][]string, len(q.Questions))
	for i, text := range turn.Answers(q.Questions, data) {
		answers[i] = []string{}
		switch {
		case text == "":
		case q.Questions[i].Multiple:
			answers[i] = strings.Split(text, ", ") // as turn.Answers joins them
		default:
			answers[i] = append(answers[i], text)
		}
	}
	qs.server.request("answer", "POST", "/question/"+id+"/reply", map[string]any{"answers": answers}, out)
	qs.base.Granted(q, out)
}

// replied is the end of a question. Those with an answer of ours are closed; the
// others were answered elsewhere, or refused together with another one.
func (qs *questions) replied(id string, yes bool, out *sdk.Out) {
	if !qs.open[id] {
		return
	}
	for i, q := range qs.held {
		if q.ID == id {
			qs.held = append(qs.held[:i:i], qs.held[i+1:]...)
			delete(qs.open, id)
			return
		}
	}
	q := qs.take(id, out)
	switch {
	case q == nil:
	case yes:
		qs.base.Granted(q, out)
	default:
		qs.base.Denied(q, "answered elsewhere, or denied with another request", out)
	}
}
