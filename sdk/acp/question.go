package acp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/jsonrpc"
	"github.com/amux-dev/amux/sdk/turn"
)

// questions are what the agent asks: whether it may use a tool, or a form to fill.
type questions struct {
	*link
	config *Questions
	tools  *tools
	ids    map[string]bool // tool calls that are only a question about another one
}

// risks by kind: reading is low, what runs code is high. All others are medium.
var risks = map[string]string{"read": "low", "search": "low", "think": "low", "execute": "high", "delete": "high"}

// choice is one of the answers that the agent offers.
type choice struct{ id, kind string }

// asked is what the answer to a permission needs.
type asked struct {
	id      json.RawMessage
	choices []choice
}

// permission is the agent asking whether it may use a tool.
func (qs *questions) permission(m *jsonrpc.Message, out *sdk.Out) {
	var choices []choice
	for _, o := range m.Params.Items("options") {
		choices = append(choices, choice{o.Text("optionId"), o.Text("kind")})
	}
	// The answer goes to an id of the agent's, which counts its own requests.
	q := &turn.Question{ID: "permission-" + strings.Trim(string(m.ID), `"`), Risk: "medium", Note: asked{m.ID, choices}}
	told := m.Params.Get("toolCall")
	known := qs.tools.calls[told.Text("toolCallId")]
	var input json.RawMessage
	if known != nil {
		input = known.Input
	}
	call, t := qs.about(told)
	if call == nil {
		call, t = qs.tools.tell(told, out)
	}
	if len(input) > 0 && qs.config.InputFirst {
		call.Input = input
	}
	if t != nil {
		detail := call.Text
		qs.tools.ready(call, t, out)
		q.ToolID, q.Tool, q.Action, q.Detail = t.ID, t.Name, t.Name, subject(call, t.Detail, detail)
		q.Input = call.input()
		q.ToolKind, q.Paths = toolKind(call, t.Detail, q.Detail)
		if risk := risks[call.Kind]; risk != "" {
			q.Risk = risk
		}
	}
	qs.Ask(q, out)
}

// toolKind says how rules read a question, and which files it is about.
func toolKind(call *Call, d turn.Detail, detail string) (kind string, paths []string) {
	kind = d.ToolKind()
	switch {
	case kind == "" && (call.Kind == "edit" || call.Kind == "delete" || call.Kind == "move"):
		kind = pluginapi.ToolFile
	case kind == "" && call.Kind == "execute":
		return pluginapi.ToolCommand, nil
	case kind == "" && call.Kind == "fetch" && detail == call.Field("url"):
		return pluginapi.ToolFetch, nil
	}
	if kind != pluginapi.ToolFile {
		return kind, nil
	}
	paths = slices.Clone(call.paths)
	if d.Path != "" && !slices.Contains(paths, d.Path) {
		paths = append(paths, d.Path)
	}
	if len(paths) == 1 && paths[0] == detail {
		paths = nil
	}
	return kind, paths
}

// about finds the tool of a question that has another id.
func (qs *questions) about(told jsonl.Value) (*Call, *turn.Tool) {
	id := told.Text("toolCallId")
	if qs.config.Asks == nil || qs.tools.calls[id] != nil {
		return nil, nil
	}
	for _, known := range slices.Sorted(maps.Keys(qs.tools.calls)) {
		call := qs.tools.calls[known]
		if t := qs.Tool(call.ID); t != nil && qs.config.Asks(told, *call) {
			qs.ids[id] = true
			if told.IsArray("content") {
				call.content(told)
			}
			return call, t
		}
	}
	return nil, nil
}

// subject is the line that somebody has to judge.
func subject(call *Call, d turn.Detail, text string) string {
	switch {
	case d.Command != "":
		return d.Command
	case d.Path != "":
		return d.Path
	case call.Title != "":
		return call.Title
	}
	return text
}

// choose answers a permission with the first option of the kinds, by kind and
// not by place: agents list them in different orders. Without one it is
// cancelled.
func (qs *questions) choose(q *turn.Question, kinds string, out *sdk.Out) {
	if f, ok := q.Note.(form); ok {
		switch {
		case kinds == "":
			qs.reply(f.id, map[string]any{"action": "cancel"}, out)
		case f.yes != "" && strings.HasPrefix(kinds, "allow"):
			qs.reply(f.id, map[string]any{"action": "accept", "content": map[string]any{f.fields[0].name: f.yes}}, out)
		default:
			qs.reply(f.id, map[string]any{"action": "decline"}, out)
		}
		return
	}
	note := q.Note.(asked)
	outcome := map[string]any{"outcome": "cancelled"}
search:
	for kind := range strings.FieldsSeq(kinds) {
		for _, o := range note.choices {
			if o.kind == kind {
				outcome = map[string]any{"outcome": "selected", "optionId": o.id}
				break search
			}
		}
	}
	qs.reply(note.id, map[string]any{"outcome": outcome}, out)
}

func (qs *questions) approve(id string, out *sdk.Out) {
	if q := qs.Take(id, out); q != nil {
		if f, ok := q.Note.(form); ok && f.yes == "" {
			qs.PutBack(q, "the agent waits for an answer, not for an approval", out)
			return
		}
		qs.choose(q, "allow_once allow_always", out)
		qs.Granted(q, out)
	}
}

// answer takes the user's answer to a form.
func (qs *questions) answer(id string, data []byte, out *sdk.Out) {
	if q := qs.Take(id, out); q != nil {
		if f, ok := q.Note.(form); ok && f.yes == "" {
			qs.fill(q, f, data, out)
			return
		}
		qs.PutBack(q, "the agent waits for an approval, not for an answer", out)
	}
}

// cancel answers all open questions, as the protocol requires at the end of a turn.
func (qs *questions) cancel(out *sdk.Out) {
	qs.Withdraw(func(q *turn.Question) bool {
		qs.choose(q, "", out)
		return true
	}, out)
}

func (qs *questions) deny(id, reason string, out *sdk.Out) {
	if q := qs.Take(id, out); q != nil {
		qs.choose(q, "reject_once reject_always", out)
		qs.Denied(q, reason, out)
		if t := qs.Tool(q.ToolID); t != nil && qs.config.SilentDenial {
			qs.EndTool(t, turn.Result{Failed: true, CutOff: true, Text: "denied by the user"}, out)
		}
	}
}
