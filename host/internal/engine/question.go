package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Question is what an agent asks: for permission, or for an answer.
type Question struct {
	ID       string
	Approval bool
	Tool     string // or the action
	Action   string
	Detail   string
	Kind     string // a pluginapi.Tool… constant, or empty
	Paths    []string
	Input    json.RawMessage // of a tool that is about one file; else nil
	Event    json.RawMessage // if the answered ones are collected; else nil

	previewing bool // the host has looked what it would change, or another host has
	previewed  bool // and an event says so

	judged   bool // the host has answered, or left it to people
	answered bool // the host has; what it said is not back from the journal yet
}

// Questions are those that wait for an answer, in the order in which they were asked.
// It is the one way from events to what is open: a live run's ledger has one, and who
// follows the events of another process's run feeds one from the file. The zero value
// has none.
type Questions struct {
	open []*Question
	// Answered, if not nil, collects the ids of those that events say are answered. Then
	// those that are open keep their events.
	Answered map[string]bool
}

// Learn takes in an event. Those that neither ask nor answer change nothing.
func (q *Questions) Learn(t pluginapi.Type, data []byte) {
	switch t {
	case code.EventApprovalRequest, code.EventInputRequired, code.EventApprovalGranted, code.EventApprovalDenied, code.EventInputAnswered:
	case code.EventRetry:
		// An adapter may have written one, of the agent's own, which has no code.
		var e struct{ Code string }
		if json.Unmarshal(data, &e) == nil && e.Code != "" {
			q.Reset()
		}
		return
	default:
		return
	}
	var e struct {
		InteractionID string `json:"interaction_id"`
		ToolName      string `json:"tool_name"`
		Detail        string `json:"detail"`
		Action        string `json:"action"`
		ToolKind      string `json:"tool_kind"`
		Paths         []string
		Input         json.RawMessage
	}
	if json.Unmarshal(data, &e) != nil {
		return // a field of another shape than ours: the event stays, we learn nothing
	}
	if t != code.EventApprovalRequest && t != code.EventInputRequired {
		q.Close(e.InteractionID)
		if q.Answered != nil {
			q.Answered[e.InteractionID] = true
		}
		return
	}
	asked := &Question{
		ID: e.InteractionID, Approval: t == code.EventApprovalRequest, Tool: cmp.Or(e.ToolName, e.Action), Action: e.Action,
		Detail: cmp.Or(e.Detail, e.Action), Kind: e.ToolKind, Paths: e.Paths,
	}
	if asked.Approval && asked.Kind == "" {
		asked.Kind = guessKind(asked.Tool, asked.Detail, e.Input)
	}
	if q.Answered == nil && asked.Approval && asked.Kind == pluginapi.ToolFile && len(asked.Paths) <= 1 {
		asked.Input = bytes.Clone(e.Input)
	}
	if q.Answered != nil {
		asked.Event = bytes.Clone(bytes.TrimSpace(data))
	}
	delete(q.Answered, asked.ID)
	if i := q.index(asked.ID); i >= 0 {
		q.open[i] = asked
	} else {
		q.open = append(q.open, asked)
	}
}

// Open are the questions that wait. The slice is not to be changed.
func (q *Questions) Open() []*Question { return q.open }

// Close takes a question away, whoever has answered it.
func (q *Questions) Close(id string) {
	if i := q.index(id); i >= 0 {
		q.open = slices.Concat(q.open[:i], q.open[i+1:])
	}
}

// preview is the event of a preview; none if its question does not wait any more, or has
// one: two hosts may have looked, one after the other.
func (q *Questions) preview(p *journal.Preview) (pluginapi.ApprovalPreview, bool) {
	i := q.index(p.ID)
	if i < 0 || q.open[i].previewed {
		return pluginapi.ApprovalPreview{}, false
	}
	q.open[i].previewing, q.open[i].previewed = true, true
	return pluginapi.ApprovalPreview{InteractionID: p.ID, Path: p.Path, Diff: p.Diff, Truncated: p.Truncated}, true
}

// Reset forgets the questions of a process that has ended.
func (q *Questions) Reset() {
	q.open = nil
	clear(q.Answered)
}

func (q *Questions) index(id string) int {
	return slices.IndexFunc(q.open, func(asked *Question) bool { return asked.ID == id })
}

// clone is a copy that does not change with q.
func (q *Questions) clone() Questions {
	var c Questions
	for _, asked := range q.open {
		copied := *asked
		c.open = append(c.open, &copied)
	}
	return c
}

// guessKind is for adapters that do not say what kind of tool asks.
func guessKind(tool, detail string, input json.RawMessage) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(input, &fields) // no object has no fields
	for _, name := range []string{"command", "cmd", "script"} {
		raw, ok := fields[name]
		if !ok {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) == nil && text == detail {
			return pluginapi.ToolShell
		}
		return pluginapi.ToolCommand
	}
	switch strings.ToLower(tool) {
	case "bash", "sh", "zsh", "shell":
		return pluginapi.ToolShell
	case "powershell", "pwsh", "cmd", "exec", "execute", "terminal", "command", "run_command", "run_shell_command", "exec_command", "run_terminal_cmd":
		return pluginapi.ToolCommand
	}
	return ""
}
