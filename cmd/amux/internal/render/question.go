package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

const (
	// mostLines is how many lines of one part of a question are shown where the rest is a
	// key away, mostColumns how long a line is.
	mostLines   = 30
	mostColumns = 2000
)

// Question is the text of what an agent asks, whole: what it wants to do, where, what the
// rules say. It ends with a line break. from, if not empty, says which run asks.
func Question(q host.Question, from string, color bool) string {
	return showQuestion(q, from, "", color)
}

// QuestionLine is a question in one line.
func QuestionLine(q host.Question) string {
	var e event
	if json.Unmarshal(q.Event, &e) != nil {
		return q.ID
	}
	if !q.Approval {
		return oneLine(e.Question)
	}
	what := oneLine(e.Detail)
	if text, _ := argument(e.Input); what == "" && text != "" {
		what = text
	}
	return strings.TrimSpace(e.name() + " " + what)
}

// name is what an approval is about.
func (e *event) name() string {
	if e.ToolName != "" {
		return oneLine(e.ToolName)
	}
	return oneLine(e.Action)
}

// showQuestion shows a question; more says how to see what does not fit, and is empty if
// everything is to be shown.
func showQuestion(q host.Question, from, more string, color bool) string {
	var e struct {
		event
		Paths    []string `json:"paths"`
		ToolKind string   `json:"tool_kind"`
	}
	v := view{more: more, color: color}
	if from != "" {
		from = " · " + oneLine(from)
	}
	if json.Unmarshal(q.Event, &e) != nil {
		v.line(yellow, "? "+oneLine(q.ID)+" is malformed"+from)
		v.block("event: ", "", string(q.Event))
		return v.b.String()
	}
	if !q.Approval {
		v.line(yellow, "? "+oneLine(e.Question)+from)
		v.block("", "", e.Context)
		for _, part := range e.Questions {
			if part.Question != e.Question {
				v.block("", "", part.Question)
			}
			if part.Header != "" && part.Header != part.Question {
				v.block("", dim, part.Header)
			}
			for i, option := range part.Options {
				v.block(fmt.Sprintf("%d ", i+1), "", option)
			}
		}
		return v.b.String()
	}
	head := "? " + e.name() + " asks for approval"
	if e.RiskLevel != "" {
		head += " (" + oneLine(e.RiskLevel) + " risk)"
	}
	v.line(yellow, head+from)
	v.action(e.event, e.ToolKind, e.Paths, q)
	// Further left than anything of the agent's, which cannot look like it.
	if q.Why != "" {
		v.b.WriteString("  " + v.style(dim, "rules: ") + oneLine(q.Why) + "\n")
	}
	if len(q.Rules) > 0 {
		v.b.WriteString("  " + v.style(dim, "a allows for the rest of the run: ") + oneLine(strings.Join(q.Rules, ", ")) + "\n")
	}
	return v.b.String()
}

// view is a question that is being written.
type view struct {
	b     strings.Builder
	more  string // how to see what is left out; empty: nothing is
	color bool
}

func (v *view) style(style, text string) string {
	if !v.color || style == "" || text == "" {
		return text
	}
	return style + text + reset
}

func (v *view) line(style, text string) { v.b.WriteString(v.style(style, String(text)) + "\n") }

// block writes text that may have several lines behind a label.
func (v *view) block(label, style, text string) {
	text = strings.Trim(String(text), "\n")
	if label != "" || text != "" {
		v.lines(label, strings.Split(text, "\n"), func(string) string { return style })
	}
}

// lines writes lines, and counts those that do not fit.
func (v *view) lines(label string, lines []string, style func(line string) string) {
	left := 0
	if v.more != "" && len(lines) > mostLines {
		left = len(lines) - mostLines
		lines = lines[:mostLines]
	}
	for i, line := range lines {
		indent := "    " + v.style(dim, label)
		if i > 0 {
			indent = "      "
		}
		rest := ""
		if v.more != "" && utf8.RuneCountInString(line) > mostColumns {
			runes := []rune(line)
			line = string(runes[:mostColumns])
			rest = v.style(yellow, "… "+count(int64(len(runes)-mostColumns), "more character")+", "+v.more)
		}
		v.b.WriteString(indent + v.style(style(line), line) + rest + "\n")
	}
	if left > 0 {
		v.b.WriteString("      " + v.style(yellow, "… "+count(int64(left), "more line")+", "+v.more) + "\n")
	}
}

// The arguments of tools whose meaning is known by their names, whatever the agent.
var (
	commandKeys = []string{"command", "cmd", "script"}
	folderKeys  = []string{"cwd", "workdir", "working_directory"}
	diffKeys    = []string{"diff", "patch", "unified_diff"}
	editKeys    = [][2]string{{"old_string", "new_string"}, {"old_text", "new_text"}, {"oldText", "newText"}}
)

// action shows what a tool will do: a command and its folder, the paths and the change of
// an edit, then all other arguments.
func (v *view) action(e event, kind string, paths []string, q host.Question) {
	cwd := q.Cwd
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(e.Input, &fields) // other JSON has no fields, and is shown below
	take := func(keys ...string) (text string, ok bool) {
		for _, key := range keys {
			if json.Unmarshal(fields[key], &text) == nil && text != "" {
				delete(fields, key)
				return text, true
			}
		}
		return "", false
	}
	command, given := take(commandKeys...)
	if !given && kind == pluginapi.ToolShell {
		command = e.Detail
	}
	if e.Detail != command && e.Detail != e.ToolName && e.Detail != e.Action && !slices.Contains(paths, e.Detail) {
		v.block("", "", e.Detail)
	}
	if command != "" {
		v.block("$ ", bold, command)
		if folder, ok := take(folderKeys...); ok {
			cwd = folder
		}
	}
	if (command != "" || kind == pluginapi.ToolCommand) && cwd != "" {
		v.block("in ", "", cwd)
	}
	for _, file := range paths {
		v.block("", bold, file)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if text := ""; json.Unmarshal(fields[key], &text) == nil && slices.Contains(paths, text) {
			delete(fields, key)
		}
	}
	changed := v.changes(fields)
	if q.Diff != "" {
		for _, key := range host.WholeFileKeys {
			delete(fields, key)
		}
		changed = strings.Split(strings.Trim(String(q.Diff), "\n"), "\n")
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		v.block(oneLine(key)+": ", "", fieldText(fields[key]))
	}
	if fields == nil && len(e.Input) > 0 && string(e.Input) != "null" {
		v.block("input: ", "", fieldText(e.Input))
	}
	v.diff(changed)
}

// changes takes the change of an edit out of the arguments: a diff, or old and new text.
func (v *view) changes(fields map[string]json.RawMessage) (lines []string) {
	for _, key := range diffKeys {
		if text := ""; json.Unmarshal(fields[key], &text) == nil && text != "" {
			delete(fields, key)
			return strings.Split(strings.Trim(String(text), "\n"), "\n")
		}
	}
	if lines, ok := edit(fields); ok {
		return lines
	}
	var edits []map[string]json.RawMessage
	if json.Unmarshal(fields["edits"], &edits) != nil || len(edits) == 0 {
		return nil
	}
	for i, one := range edits {
		part, ok := edit(one)
		if !ok || len(one) > 0 { // an edit of an unknown form is shown as it is
			return nil
		}
		if i > 0 {
			lines = append(lines, "@@")
		}
		lines = append(lines, part...)
	}
	delete(fields, "edits")
	return lines
}

// edit takes old and new text out of the arguments.
func edit(fields map[string]json.RawMessage) (lines []string, ok bool) {
	for _, pair := range editKeys {
		var texts [2]string
		if json.Unmarshal(fields[pair[0]], &texts[0]) != nil || json.Unmarshal(fields[pair[1]], &texts[1]) != nil {
			continue
		}
		for i, key := range pair {
			delete(fields, key)
			texts[i] = String(texts[i])
		}
		return diff(texts[0], texts[1]), true
	}
	return nil, false
}

// diff writes a diff, in colours.
func (v *view) diff(lines []string) {
	if len(lines) == 0 {
		return
	}
	v.lines("  ", lines, patchStyle)
}

// fieldText is an argument: a string itself, anything else as JSON.
func fieldText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var short bytes.Buffer
	if json.Compact(&short, raw) != nil {
		return string(raw)
	}
	return short.String()
}

// AskApproval shows what the agent wants to do, and leaves the cursor where the answer
// goes.
func (r *Renderer) AskApproval(q host.Question, from string) {
	r.endThinking()
	r.fresh()
	r.errWrite(showQuestion(q, from, "d shows all", r.o.Color))
	r.AskAgain(q)
}

// AskAgain leaves the cursor where the answer to an approval goes.
func (r *Renderer) AskAgain(q host.Question) {
	r.fresh()
	more := ""
	if len(q.Rules) > 0 {
		more = "[a]lways, "
	}
	if q.Editable {
		more += "[e]dit, "
	}
	r.ask("allow? [y]es, [n]o, " + more + "[d]etails, [?]: ")
}

// Command is the argument of a tool that runs a command, and its name; both are empty if
// there is none.
func Command(input map[string]json.RawMessage) (key, command string) {
	for _, key := range commandKeys {
		if json.Unmarshal(input[key], &command) == nil && command != "" {
			return key, command
		}
	}
	return "", ""
}
