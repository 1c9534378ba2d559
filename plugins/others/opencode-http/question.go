package opencodehttp

import (
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// permission is asked for by a tool, often before the server has told its input.
func (c *conversation) permission(parent string, p jsonl.Value, out *sdk.Out) {
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
	if q.ID == "" || c.open[q.ID] {
		return
	}
	c.open[q.ID] = true
	t := c.Tool(q.ToolID)
	if t != nil {
		q.Tool = t.Name
	}
	if t != nil && !t.Ready() {
		q.Input = nil
		c.held = append(c.held, q)
		out.SetTimer(heldTimer, heldTime)
		return
	}
	c.Ask(q, out)
}

// release asks the questions that have waited for a tool; "" is for all of them.
func (c *conversation) release(toolID string, out *sdk.Out) {
	var rest []*turn.Question
	for _, q := range c.held {
		if toolID == "" || q.ToolID == toolID {
			c.Ask(q, out)
		} else {
			rest = append(rest, q)
		}
	}
	if len(c.held) > 0 && len(rest) == 0 {
		out.SetTimer(heldTimer, 0)
	}
	c.held = rest
}

// drop forgets the questions of the turn.
func (c *conversation) drop() {
	c.held = nil
	clear(c.open)
}

// question is put to the user by the model.
func (c *conversation) question(parent string, p jsonl.Value, out *sdk.Out) {
	q := &turn.Question{ID: p.Text("id"), ToolID: p.Text("tool", "callID"), Parent: parent}
	for _, one := range p.Items("questions") {
		question := pluginapi.Question{Question: one.Text("question"), Header: one.Text("header"), Multiple: one.Bool("multiple")}
		for _, option := range one.Items("options") {
			question.Options = append(question.Options, option.Text("label"))
		}
		q.Questions = append(q.Questions, question)
	}
	if q.ID == "" || len(q.Questions) == 0 || c.open[q.ID] {
		return
	}
	c.open[q.ID] = true
	c.Ask(q, out)
}

// take is an open question; nil if it is not open any more.
func (c *conversation) take(id string, out *sdk.Out) *turn.Question {
	q := c.Take(id, out)
	if q != nil {
		delete(c.open, id)
	}
	return q
}

func (c *conversation) approve(id string, out *sdk.Out) {
	q := c.take(id, out)
	switch {
	case q == nil:
	case len(q.Questions) > 0:
		c.open[id] = true
		c.PutBack(q, "the agent waits for an answer, not for an approval", out)
	default:
		c.request("approve", "POST", "/permission/"+id+"/reply", map[string]string{"reply": "once"}, out)
		c.Granted(q, out)
	}
}

func (c *conversation) deny(id, reason string, out *sdk.Out) {
	q := c.take(id, out)
	switch {
	case q == nil:
		return
	case len(q.Questions) > 0:
		c.request("deny", "POST", "/question/"+id+"/reject", nil, out)
	default:
		message := reason
		if message == "" {
			// Without a word the server would end the turn.
			message = "The user denied this."
		}
		c.request("deny", "POST", "/permission/"+id+"/reply", map[string]string{"reply": "reject", "message": message}, out)
	}
	c.Denied(q, reason, out)
}

// answer gives each question the labels, or the words, that were chosen.
func (c *conversation) answer(id string, data []byte, out *sdk.Out) {
	q := c.take(id, out)
	switch {
	case q == nil:
		return
	case len(q.Questions) == 0:
		c.open[id] = true
		c.PutBack(q, "the agent waits for an approval, not for an answer", out)
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
	c.request("answer", "POST", "/question/"+id+"/reply", map[string]any{"answers": answers}, out)
	c.Granted(q, out)
}

// replied is the end of a question. Those with an answer of ours are closed; the
// others were answered elsewhere, or refused together with another one.
func (c *conversation) replied(id string, yes bool, out *sdk.Out) {
	if !c.open[id] {
		return
	}
	for i, q := range c.held {
		if q.ID == id {
			c.held = append(c.held[:i:i], c.held[i+1:]...)
			delete(c.open, id)
			return
		}
	}
	q := c.take(id, out)
	switch {
	case q == nil:
	case yes:
		c.Granted(q, out)
	default:
		c.Denied(q, "answered elsewhere, or denied with another request", out)
	}
}
