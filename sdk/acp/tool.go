package acp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// tools are those of the turn.
type tools struct {
	*link
	config *Tools
	calls  map[string]*Call // by id
}

// Call is what was told of a tool so far.
type Call struct {
	ID, Title, Kind string
	Input           json.RawMessage // rawInput; nil: none that says anything
	Path            string          // of the first location
	Text            string          // of the content
	Diff            *Diff           // the first in the content
	name            string
	paths           []string // of all locations and changes
}

func (call *Call) touches(path string) {
	if path != "" && !slices.Contains(call.paths, path) {
		call.paths = append(call.paths, path)
	}
}

// Diff is a change of a file.
type Diff struct {
	Path, Old, New string
	Created        bool
}

// Field reads a text of the input by the first key that it has.
func (call *Call) Field(keys ...string) string {
	doc, err := jsonl.ParseObject(call.Input)
	if err != nil {
		return ""
	}
	defer doc.Release()
	for _, key := range keys {
		if text := doc.Text(key); text != "" {
			return text
		}
	}
	return ""
}

func (call *Call) content(v jsonl.Value) {
	var texts []string
	for _, item := range v.Items("content") {
		switch item.Text("type") {
		case "content":
			if item.IsString("content", "text") {
				texts = append(texts, item.Text("content", "text"))
			}
		case "diff":
			call.Diff = &Diff{
				Path: item.Text("path"), Old: item.Text("oldText"), New: item.Text("newText"),
				Created: item.Text("oldText") == "",
			}
			call.touches(call.Diff.Path)
		}
	}
	call.Text = strings.Join(texts, "\n")
}

// input is what the tool was given, as far as the agent tells.
func (call *Call) input() json.RawMessage {
	if len(call.Input) > 0 {
		return call.Input
	}
	key, value := "title", strings.TrimPrefix(call.Title, call.name+": ")
	switch {
	case call.Kind == "execute":
		key = "command"
	case call.Path != "":
		key, value = "path", call.Path
	}
	b := append([]byte(`{"`+key+`":`), pluginapi.AppendString(nil, value)...)
	return append(b, '}')
}

// tell takes in what an update or a request says of a tool.
func (ts *tools) tell(v jsonl.Value, out *sdk.Out) (*Call, *turn.Tool) {
	id := v.Text("toolCallId")
	call := ts.calls[id]
	if call == nil {
		call = &Call{ID: id, Kind: v.Text("kind")}
		if ts.config.Name != nil {
			call.name = ts.config.Name(v)
		}
		if call.name == "" {
			call.name = v.Text("name")
		}
		if call.name == "" {
			call.name = call.Kind
		}
		if call.name == "" {
			call.name = "other"
		}
		ts.calls[id] = call
	}
	if title := v.Text("title"); title != "" {
		call.Title = title
	}
	if kind := v.Text("kind"); kind != "" && kind != "other" {
		call.Kind = kind
	}
	t := ts.StartTool(id, call.name, "", out)
	// What is told after the input is whole is another view of it.
	if v.Len("rawInput") > 0 && (t == nil || !t.Ready()) {
		call.Input = v.Raw("rawInput")
	}
	if path := v.Text("locations", "0", "path"); path != "" {
		call.Path = path
	}
	for _, location := range v.Items("locations") {
		call.touches(location.Text("path"))
	}
	if v.IsArray("content") {
		call.content(v)
	}
	return call, t
}

// detail is what the tool is for.
func (ts *tools) detail(call *Call) turn.Detail {
	if ts.config.Detail != nil {
		if d := ts.config.Detail(call.name, *call); d.Kind != turn.Other {
			return d
		}
	}
	path := call.Path
	if call.Diff != nil {
		path = call.Diff.Path
	}
	if path == "" {
		path = call.Field("path", "filePath", "file_path", "absolute_path")
	}
	switch call.Kind {
	case "execute":
		command := call.Field("command")
		if command == "" {
			return turn.Detail{Kind: turn.Shell, Command: call.Title, Described: true}
		}
		return turn.Detail{Kind: turn.Shell, Command: command}
	case "read":
		if path != "" {
			return turn.Detail{Kind: turn.Read, Path: path}
		}
	case "delete":
		return turn.Detail{Kind: turn.Delete, Path: path}
	case "edit":
		whole := call.Field("content", "file_text")
		switch {
		case call.Diff != nil && call.Diff.Created:
			whole = call.Diff.New
		case call.Diff != nil:
			return turn.Detail{Kind: turn.Edit, Path: path, Diff: hunk(call.Diff.Old, call.Diff.New)}
		case whole == "":
			return turn.Detail{Kind: turn.Edit, Path: path}
		}
		n := int64(len(whole))
		return turn.Detail{Kind: turn.Write, Path: path, Bytes: &n}
	}
	return turn.Detail{}
}

// update takes a tool_call or tool_call_update.
func (ts *tools) update(update jsonl.Value, out *sdk.Out) {
	call, t := ts.tell(update, out)
	if t == nil {
		return // told after its end
	}
	status := update.Text("status")
	switch status {
	case "in_progress", "completed", "failed":
		ts.ready(call, t, out)
	default:
		if ts.config.Whole {
			ts.ready(call, t, out)
		}
	}
	if !t.Ready() {
		return
	}
	switch status {
	case "completed", "failed":
		ts.WithdrawTool(t.ID, out)
		t.Detail = ts.detail(call)
		r := turn.Result{Text: call.Text, Failed: status == "failed", Output: output(update, call)}
		if t.Detail.Kind == turn.Shell {
			r.Stdout, r.Quiet = ts.printed(call, update), true
		}
		r.Created = call.Diff != nil && call.Diff.Created
		if ts.config.Complete != nil {
			ts.config.Complete(update, t.Detail, &r)
		}
		if r.Failed && r.Text == "" {
			r.Text = call.Title
		}
		ts.EndTool(t, r, out)
	default:
		if update.Len("content") > 0 {
			ts.Printed(t, ts.printed(call, update), out)
		}
	}
}

// printed is what a command has printed so far.
func (ts *tools) printed(call *Call, update jsonl.Value) string {
	if ts.config.Output != nil {
		return ts.config.Output(update)
	}
	return call.Text
}

// ready tells the tool's input, which is whole by now.
func (ts *tools) ready(call *Call, t *turn.Tool, out *sdk.Out) {
	if !t.Ready() {
		ts.ReadyTool(t, call.input(), ts.detail(call), out)
		// What describes the tool before it runs is not part of its output.
		call.Text = ""
	}
}

// output is the tool's answer: its own, or else the text.
func output(update jsonl.Value, call *Call) json.RawMessage {
	if raw := update.Raw("rawOutput"); len(raw) > 0 && string(raw) != "null" {
		return raw
	}
	return pluginapi.AppendString(nil, call.Text)
}
