package acp

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/jsonrpc"
	"github.com/amux-dev/amux/sdk/turn"
)

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
func (c *Call) Field(keys ...string) string {
	doc, err := jsonl.ParseObject(c.Input)
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

// ignored are updates that are known and give no event, with the reason.
var ignored = map[string]string{
	"available_commands_update": "slash commands, which amux passes on as text",
	"user_message_chunk":        "our own prompt come back, or the past of a session",
}

// update handles a session/update; false means that it is not known.
func (c *conversation) update(params jsonl.Value, out *sdk.Out) bool {
	update := params.Get("update")
	kind := string(update.Bytes("sessionUpdate"))
	if c.loading && c.loaded {
		out.SetTimer(quietTimer, quiet)
	}
	switch kind {
	case "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan":
		if !c.Busy() {
			return true // the past of a session, or what setting a mode makes it say
		}
		c.said = true
	}
	switch kind {
	case "agent_message_chunk":
		return c.message(update, out)
	case "agent_thought_chunk":
		if !update.IsString("content", "text") {
			return false
		}
		thought := update.Text("content", "text")
		if c.config.Thought != nil {
			thought = c.config.Thought(thought)
		}
		c.Main().Think(thought, out)
	case "tool_call", "tool_call_update":
		c.tool(update, out)
	case "plan":
		items := []pluginapi.TodoItem{}
		for _, entry := range update.Items("entries") {
			items = append(items, pluginapi.TodoItem{Text: entry.Text("content"), Status: entry.Text("status")})
		}
		out.Event(pluginapi.TodoUpdate{Items: items})
	case "current_mode_update":
		c.modeIs(update.Text("currentModeId"), out)
	case "config_option_update":
		c.options(update)
		if o := c.option("mode"); o != nil {
			c.modeIs(o.value, out)
		}
	case "session_info_update":
		if title := update.Text("title"); title != c.title && c.Busy() {
			c.title = title
			out.Event(pluginapi.SessionTitle{Title: title})
		}
	case "usage_update":
		if used, ok := update.Int("used"); ok {
			if size, ok := update.Int("size"); ok {
				c.context.Used(used, size, out)
			}
		}
		c.money(update.Get("cost"), out)
	case "notice":
		c.notice(update, out)
	case "compaction_summary_chunk":
		c.summary += update.Text("content", "text")
	case "compaction_update":
		c.compaction(update, out)
	default:
		_, known := ignored[kind]
		return known
	}
	return true
}

// notice is what the agent tells its user, beside the conversation.
func (c *conversation) notice(update jsonl.Value, out *sdk.Out) {
	text := update.Text("title")
	if more := update.Text("description"); more != "" {
		text += ": " + more
	}
	level := "info"
	if severity := update.Text("severity"); severity == "warning" || severity == "error" {
		level = "warn"
	}
	out.Event(pluginapi.Debug{Level: level, Message: text})
}

// compaction is a conversation that is made shorter.
func (c *conversation) compaction(update jsonl.Value, out *sdk.Out) {
	switch update.Text("status") {
	case "completed":
		for _, block := range update.Items("summary") {
			c.summary += block.Text("text")
		}
		out.Event(pluginapi.ContextCompacted{Summary: c.summary})
	case "failed":
		out.Event(pluginapi.Debug{Level: "warn", Message: "compaction: " + update.Text("error")})
	case "in_progress":
		return
	}
	c.summary = ""
}

func (c *conversation) modeIs(mode string, out *sdk.Out) {
	if mode == "" || mode == c.mode {
		return
	}
	first := c.mode == ""
	c.mode = mode
	if !first {
		out.Event(pluginapi.ModeChanged{Mode: mode})
	}
}

func (c *conversation) message(update jsonl.Value, out *sdk.Out) bool {
	content := update.Get("content")
	if c.config.ChunkUsage != nil {
		if u, ok := c.config.ChunkUsage(update); ok {
			out.Event(u)
		}
	}
	switch content.Text("type") {
	case "text":
	case "image":
		out.Event(pluginapi.ImageOutput{MimeType: content.Text("mimeType"), Base64: content.Text("data")})
		return true
	case "audio":
		out.Event(pluginapi.Debug{Level: "info", Message: "the agent answers with sound (" + content.Text("mimeType") + "), which amux leaves out"})
		return true
	case "resource_link", "resource":
	default:
		return false
	}
	text := content.Text("text")
	switch content.Text("type") {
	case "resource_link":
		text = "[" + content.Text("name") + "](" + content.Text("uri") + ")"
	case "resource":
		if text = content.Text("resource", "text"); text == "" {
			text = content.Text("resource", "uri")
		}
	}
	if text == "" {
		return true
	}
	if c.config.Aside != nil {
		if event, aside := c.config.Aside(text); aside {
			if retry, again := event.(pluginapi.Retry); again {
				c.Main().Abandon(retry.Reason, out)
			}
			if event != nil {
				out.Event(event)
			}
			return true
		}
	}
	if c.config.ErrorText != nil {
		if o := c.config.ErrorText(text); o != nil {
			c.errorText = o
			return true
		}
	}
	c.Main().Text(update.Text("messageId"), text, out)
	return true
}

// tell takes in what an update or a request says of a tool.
func (c *conversation) tell(v jsonl.Value, out *sdk.Out) (*Call, *turn.Tool) {
	id := v.Text("toolCallId")
	call := c.calls[id]
	if call == nil {
		call = &Call{ID: id, Kind: v.Text("kind")}
		if c.config.Name != nil {
			call.name = c.config.Name(v)
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
		c.calls[id] = call
	}
	if title := v.Text("title"); title != "" {
		call.Title = title
	}
	if kind := v.Text("kind"); kind != "" && kind != "other" {
		call.Kind = kind
	}
	t := c.StartTool(id, call.name, "", out)
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

// detail is what the tool is for.
func (c *conversation) detail(call *Call) turn.Detail {
	if c.config.Detail != nil {
		if d := c.config.Detail(call.name, *call); d.Kind != turn.Other {
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

func (c *conversation) tool(update jsonl.Value, out *sdk.Out) {
	if c.asked[update.Text("toolCallId")] {
		return // how a question ended
	}
	call, t := c.tell(update, out)
	if t == nil {
		return // told after its end
	}
	status := update.Text("status")
	switch status {
	case "in_progress", "completed", "failed":
		c.ready(call, t, out)
	default:
		if c.config.Whole {
			c.ready(call, t, out)
		}
	}
	if !t.Ready() {
		return
	}
	switch status {
	case "completed", "failed":
		c.WithdrawTool(t.ID, out)
		t.Detail = c.detail(call)
		r := turn.Result{Text: call.Text, Failed: status == "failed", Output: output(update, call)}
		if t.Detail.Kind == turn.Shell {
			r.Stdout, r.Quiet = c.printed(call, update), true
		}
		r.Created = call.Diff != nil && call.Diff.Created
		if c.config.Complete != nil {
			c.config.Complete(update, t.Detail, &r)
		}
		if r.Failed && r.Text == "" {
			r.Text = call.Title
		}
		c.EndTool(t, r, out)
	default:
		if update.Len("content") > 0 {
			c.Printed(t, c.printed(call, update), out)
		}
	}
}

// printed is what a command has printed so far.
func (c *conversation) printed(call *Call, update jsonl.Value) string {
	if c.config.Output != nil {
		return c.config.Output(update)
	}
	return call.Text
}

// ready tells the tool's input, which is whole by now.
func (c *conversation) ready(call *Call, t *turn.Tool, out *sdk.Out) {
	if !t.Ready() {
		c.ReadyTool(t, call.input(), c.detail(call), out)
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

// risks by kind: reading is low, what runs code is high. All others are medium.
var risks = map[string]string{"read": "low", "search": "low", "think": "low", "execute": "high", "delete": "high"}

// choice is one of the answers that the agent offers.
type choice struct{ id, kind string }

// permission is the agent asking whether it may use a tool.
func (c *conversation) permission(m *jsonrpc.Message, out *sdk.Out) {
	var choices []choice
	for _, o := range m.Params.Items("options") {
		choices = append(choices, choice{o.Text("optionId"), o.Text("kind")})
	}
	// The answer goes to an id of the agent's, which counts its own requests.
	q := &turn.Question{ID: "permission-" + strings.Trim(string(m.ID), `"`), Risk: "medium", Note: asked{m.ID, choices}}
	told := m.Params.Get("toolCall")
	known := c.calls[told.Text("toolCallId")]
	var input json.RawMessage
	if known != nil {
		input = known.Input
	}
	call, t := c.about(told)
	if call == nil {
		call, t = c.tell(told, out)
	}
	if len(input) > 0 && c.config.InputFirst {
		call.Input = input
	}
	if t != nil {
		detail := call.Text
		c.ready(call, t, out)
		q.ToolID, q.Tool, q.Action, q.Detail = t.ID, t.Name, t.Name, subject(call, t.Detail, detail)
		q.Input = call.input()
		q.ToolKind, q.Paths = toolKind(call, t.Detail, q.Detail)
		if risk := risks[call.Kind]; risk != "" {
			q.Risk = risk
		}
	}
	c.Ask(q, out)
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
func (c *conversation) about(told jsonl.Value) (*Call, *turn.Tool) {
	id := told.Text("toolCallId")
	if c.config.Asks == nil || c.calls[id] != nil {
		return nil, nil
	}
	for _, known := range slices.Sorted(maps.Keys(c.calls)) {
		call := c.calls[known]
		if t := c.Tool(call.ID); t != nil && c.config.Asks(told, *call) {
			c.asked[id] = true
			if told.IsArray("content") {
				call.content(told)
			}
			return call, t
		}
	}
	return nil, nil
}

// asked is what the answer to a permission needs.
type asked struct {
	id      json.RawMessage
	choices []choice
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
func (c *conversation) choose(q *turn.Question, kinds string, out *sdk.Out) {
	if f, ok := q.Note.(form); ok {
		switch {
		case kinds == "":
			c.reply(f.id, map[string]any{"action": "cancel"}, out)
		case f.yes != "" && strings.HasPrefix(kinds, "allow"):
			c.reply(f.id, map[string]any{"action": "accept", "content": map[string]any{f.fields[0].name: f.yes}}, out)
		default:
			c.reply(f.id, map[string]any{"action": "decline"}, out)
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
	line, err := c.peer.Reply(note.id, map[string]any{"outcome": outcome})
	if err == nil {
		out.Write(line)
	}
}

func (c *conversation) approve(id string, out *sdk.Out) error {
	if q := c.Take(id, out); q != nil {
		if f, ok := q.Note.(form); ok && f.yes == "" {
			c.PutBack(q, "the agent waits for an answer, not for an approval", out)
			return nil
		}
		c.choose(q, "allow_once allow_always", out)
		c.Granted(q, out)
	}
	return nil
}

func (c *conversation) deny(id, reason string, out *sdk.Out) error {
	if q := c.Take(id, out); q != nil {
		c.choose(q, "reject_once reject_always", out)
		c.Denied(q, reason, out)
		if t := c.Tool(q.ToolID); t != nil && c.config.SilentDenial {
			c.EndTool(t, turn.Result{Failed: true, CutOff: true, Text: "denied by the user"}, out)
		}
	}
	return nil
}

// hunk is the change from one text to another as one hunk of a unified diff,
// without lines around it.
func hunk(before, after string) string {
	a, b := lines(before), lines(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	a, b = a[head:len(a)-tail], b[head:len(b)-tail]
	if len(a)+len(b) == 0 {
		return ""
	}
	var s strings.Builder
	s.WriteString("@@ -" + span(head, len(a)) + " +" + span(head, len(b)) + " @@\n")
	for _, line := range a {
		s.WriteString("-" + line + "\n")
	}
	for _, line := range b {
		s.WriteString("+" + line + "\n")
	}
	return s.String()
}

func span(before, n int) string {
	if n > 0 {
		before++
	}
	return strconv.Itoa(before) + "," + strconv.Itoa(n)
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
