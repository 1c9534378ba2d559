package main

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/sessionfile"
)

// ReadSession gives a stored session as events: the turns as they stand, with
// what it was forked from; with all_branches also what was taken back.
func (adapter) ReadSession(ctx context.Context, q *pluginapi.SessionQuery, yield func(pluginapi.Payload, time.Time) bool) error {
	id := q.GetSessionId()
	notFound := pluginapi.Errorf(pluginapi.CodeSessionNotFound, "codex has no session %q", id)
	if !threadID.MatchString(id) {
		return notFound
	}
	chain := segments(q.GetCaller(), id)
	if len(chain) == 0 {
		return notFound
	}
	if q.GetAllBranches() {
		chain = everything(q.GetCaller(), chain)
	}
	r := &sessionReader{ctx: ctx, id: id, yield: yield, pending: map[string]*pendingCall{}}
	r.decoder.threads = map[string]*thread{}
	r.main = r.thread(id)
	for _, s := range chain {
		if err := r.segment(s); err != nil {
			return err
		}
		if r.stopped {
			return nil
		}
	}
	r.endTurn()
	if r.begun && !r.stopped {
		r.Event(pluginapi.SessionEnd{SessionID: r.id, TurnCount: r.turns})
	}
	return ctx.Err()
}

// everything are all files of a thread, each whole, after those it was forked
// from.
func everything(caller *pluginapi.Caller, chain []segment) []segment {
	thread := chain[len(chain)-1].file.thread
	var all []segment
	for _, s := range chain {
		if s.file.thread != thread {
			all = append(all, s)
		}
	}
	files := rollouts(caller, thread)
	for i := len(files) - 1; i >= 0; i-- {
		all = append(all, segment{file: files[i]})
	}
	return all
}

// sessionReader reads one session.
type sessionReader struct {
	decoder
	ctx     context.Context
	id      string
	yield   func(pluginapi.Payload, time.Time) bool
	at      time.Time
	stopped bool

	begun   bool
	turns   int
	inTurn  bool
	items   bool // the file tells items; the model's own words repeat them
	pending map[string]*pendingCall
	calls   []string // ids of pending, in order
}

// pendingCall is a call by the model that no item has told yet.
type pendingCall struct {
	name  string
	input json.RawMessage
}

// maxPending bounds the calls without an answer that are kept.
const maxPending = 256

// Event passes an event to the caller.
func (r *sessionReader) Event(p pluginapi.Payload) {
	if !r.stopped && !r.yield(p, r.at) {
		r.stopped = true
	}
}

func (r *sessionReader) segment(s segment) error {
	lines, err := sessionfile.Open(s.file.path)
	if err != nil {
		return err
	}
	defer lines.Close()
	for n := 0; !r.stopped && lines.Next(); n++ {
		if n%1024 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if lines.Long {
			offset, length := lines.Offset, lines.Length
			r.Event(pluginapi.Log{Source: "session", Offset: &offset, Length: &length})
			continue
		}
		if isNote(lines.Line) {
			continue
		}
		doc, err := jsonl.ParseObject(lines.Line)
		if err != nil {
			continue
		}
		if ordinal, ok := doc.Int("ordinal"); s.until > 0 && ok && ordinal >= s.until {
			doc.Release()
			break
		}
		if at, err := time.Parse(time.RFC3339, doc.Text("timestamp")); err == nil {
			r.at = at
		}
		r.line(doc.Text("type"), doc.Get("payload"))
		doc.Release()
	}
	return lines.Err()
}

// line emits the events of one line.
func (r *sessionReader) line(kind string, p jsonl.Value) {
	switch kind {
	case "session_meta":
		r.items = p.Text("history_mode") == "paginated"
		if !r.begun && r.id == p.Text("id") || !r.begun && p.Text("forked_from_id") == "" {
			r.begun = true
			r.Event(pluginapi.SessionStart{SessionID: r.id, ForkedFrom: p.Text("forked_from_id"), Version: p.Text("cli_version")})
		} else if p.Text("id") == r.id && p.Text("forked_from_id") != "" {
			r.Event(pluginapi.SessionFork{SessionID: r.id, ForkedFrom: p.Text("forked_from_id")})
		}
	case "turn_context":
		r.model = p.Text("model")
	case "response_item":
		r.response(p)
	case "event_msg":
		r.message(p)
	case "compacted":
		r.Event(pluginapi.ContextCompacted{})
	}
}

// message is what the CLI notes for itself.
func (r *sessionReader) message(p jsonl.Value) {
	switch p.Text("type") {
	case "task_started":
		r.endTurn()
		r.Event(pluginapi.TurnStart{TurnIndex: r.turns})
		r.inTurn = true
	case "task_complete":
		r.endTurn()
	case "turn_aborted":
		r.Event(pluginapi.Interrupted{})
		r.endTurn()
	case "token_count":
		r.usageOf(p.Get("info"))
	case "item_completed":
		r.storedItem(p.Get("item"))
	case "thread_name_updated":
		if name := p.Text("thread_name"); name != "" {
			r.Event(pluginapi.SessionTitle{Title: name})
		}
	case "error":
		r.Event(pluginapi.ErrorEvent{Code: pluginapi.CodeAgentFailed, Message: p.Text("message")})
	}
}

func (r *sessionReader) usageOf(info jsonl.Value) {
	total, ok := readTokens(info.Get("total_token_usage"))
	if !ok {
		return
	}
	difference := total.less(r.main.total)
	r.main.total = total
	if difference.input >= 0 && difference.output >= 0 {
		r.tokens(difference, r)
	}
}

// storedItem is an item as it ended. Files name its parts otherwise than
// app-server does.
func (r *sessionReader) storedItem(item jsonl.Value) {
	id := item.Text("id")
	r.settle(id)
	t := r.main
	switch item.Text("type") {
	case "UserMessage":
		if text := inputText(item.Get("content")); text != "" {
			r.Event(pluginapi.UserMessage{ID: id, Text: text})
		}
	case "AgentMessage", "Plan":
		text := item.Text("text")
		if text == "" {
			text = inputText(item.Get("content"))
		}
		r.messageDone(t, id, text, r)
	case "Reasoning":
		text := joined(item, "summary_text")
		if text == "" {
			text = joined(item, "raw_content")
		}
		r.thinkingDone(t, id, text, r)
	case "CommandExecution":
		r.storedCommand(id, item)
	case "FileChange":
		r.storedPatch(id, item)
	case "McpToolCall":
		open := &tool{id: id, kind: "mcpToolCall", server: item.Text("server"), tool: item.Text("tool"), input: item.Raw("arguments")}
		open.name = "mcp__" + open.server + "__" + open.tool
		r.begin(t, open, r)
		r.Event(pluginapi.McpToolCallStart{ToolCallID: id, Server: open.server, ToolName: open.tool, Input: open.input})
		r.mcpDone(t, open, item, r)
	case "WebSearch":
		open := &tool{id: id, name: searchTool, kind: "webSearch", input: inputObject("query", item.Text("query"))}
		r.begin(t, open, r)
		r.result(t, open, item.Get("action").AppendRaw(nil), nil, r)
	case "ContextCompaction":
		// The line "compacted" tells it.
	}
}

func joined(item jsonl.Value, key string) string {
	var parts []string
	for _, part := range item.Items(key) {
		parts = append(parts, part.Text())
	}
	return strings.Join(parts, "\n\n")
}

func (r *sessionReader) storedCommand(id string, item jsonl.Value) {
	var words []string
	for _, word := range item.Items("command") {
		words = append(words, word.Text())
	}
	open := &tool{id: id, name: shellTool, kind: "commandExecution", command: strings.Join(words, " "), cwd: filePath(item.Text("cwd"))}
	if len(words) == 3 && (words[1] == "-lc" || words[1] == "-c") {
		open.command = words[2]
	}
	open.input = inputObject("command", open.command, "cwd", open.cwd)
	t := r.main
	r.begin(t, open, r)
	if item.Text("status") == declined {
		r.fail(t, open, "it was not allowed to run", r)
		return
	}
	output := item.Text("aggregated_output")
	r.shellStart(t, open, r)
	r.shellOutput(t, open, output, r)
	exit := pluginapi.ShellExit{ToolCallID: id}
	if code, ok := item.Int("exit_code"); ok {
		n := int(code)
		exit.ExitCode = &n
	}
	seconds, hasTime := item.Int("duration", "secs")
	if nanos, ok := item.Int("duration", "nanos"); ok && hasTime {
		ms := seconds*1000 + nanos/1e6
		exit.DurationMS = &ms
	}
	r.Event(exit)
	if item.Text("status") != "completed" {
		r.fail(t, open, shellFailure(exit.ExitCode, output), r)
		return
	}
	for _, action := range item.Items("parsed_cmd") {
		if path := filePath(action.Text("path")); action.Text("type") == "read" && path != "" {
			r.Event(pluginapi.FileRead{ToolCallID: id, Path: path})
		}
	}
	r.result(t, open, pluginapi.AppendString(nil, output), exit.DurationMS, r)
}

// filePath is the path of a file URL; what is none stays.
func filePath(text string) string {
	if u, err := url.Parse(text); err == nil && u.Scheme == "file" {
		return u.Path
	}
	return text
}

func (r *sessionReader) storedPatch(id string, item jsonl.Value) {
	t := r.main
	open := &tool{id: id, name: patchTool, kind: "fileChange"}
	open.input = append(append([]byte(`{"changes":`), item.Get("changes").AppendRaw(nil)...), '}')
	r.begin(t, open, r)
	if item.Text("status") != "completed" {
		message := strings.TrimSpace(item.Text("stderr"))
		if message == "" {
			message = "the patch was not applied"
		}
		r.fail(t, open, message, r)
		return
	}
	for path, change := range item.Fields("changes") {
		switch change.Text("type") {
		case "add":
			size := int64(len(change.Bytes("content")))
			r.Event(pluginapi.FileCreate{ToolCallID: id, Path: path, ByteCount: &size})
		case "delete":
			r.Event(pluginapi.FileDelete{ToolCallID: id, Path: path})
		default:
			r.Event(pluginapi.FilePatch{ToolCallID: id, Path: path, Diff: change.Text("unified_diff")})
		}
	}
	r.result(t, open, pluginapi.AppendString(nil, item.Text("stdout")), nil, r)
}

// response is what the model said or was told, word by word. Where the file has
// items, it tells the calls that have none: those that the CLI refused, or lost.
func (r *sessionReader) response(p jsonl.Value) {
	switch p.Text("type") {
	case "function_call", "custom_tool_call", "local_shell_call":
		name := p.Text("name")
		if namespace := p.Text("namespace"); namespace != "" {
			name = namespace + "__" + name
		}
		input := json.RawMessage(p.Bytes("arguments"))
		if !json.Valid(input) {
			input = inputObject("input", p.Text("input")+p.Text("arguments"))
		}
		r.call(p.Text("call_id"), name, append(json.RawMessage(nil), input...))
	case "function_call_output", "custom_tool_call_output":
		r.answer(p.Text("call_id"), p.Get("output"))
	case "message":
		if r.items {
			return
		}
		if text := typedText(p.Get("content")); text != "" {
			switch p.Text("role") {
			case "user":
				r.endTurn()
				r.Event(pluginapi.TurnStart{TurnIndex: r.turns})
				r.inTurn = true
				r.Event(pluginapi.UserMessage{ID: p.Text("id"), Text: text})
			case "assistant":
				r.messageDone(r.main, p.Text("id"), text, r)
			}
		}
	case "reasoning":
		if r.items {
			return
		}
		var parts []string
		for _, part := range p.Items("summary") {
			parts = append(parts, part.Text("text"))
		}
		r.thinkingDone(r.main, p.Text("id"), strings.Join(parts, "\n\n"), r)
	}
}

// codeTools are calls whose work is told by items of their own.
var codeTools = map[string]bool{"exec": true, "functions__exec": true, "wait": true, "functions__wait": true}

func (r *sessionReader) call(id, name string, input json.RawMessage) {
	if id == "" || codeTools[name] {
		return
	}
	if len(r.calls) == maxPending {
		r.lost(r.calls[0])
	}
	r.pending[id] = &pendingCall{name, input}
	r.calls = append(r.calls, id)
}

// settle forgets a call that an item has told; it reports whether there was one.
func (r *sessionReader) settle(id string) *pendingCall {
	call := r.pending[id]
	if call == nil {
		return nil
	}
	delete(r.pending, id)
	for i, other := range r.calls {
		if other == id {
			r.calls = append(r.calls[:i], r.calls[i+1:]...)
			break
		}
	}
	return call
}

// answer tells a call that no item has told.
func (r *sessionReader) answer(id string, output jsonl.Value) {
	call := r.settle(id)
	if call == nil {
		return
	}
	open := &tool{id: id, name: call.name, kind: "call", input: call.input}
	r.begin(r.main, open, r)
	r.result(r.main, open, output.AppendRaw(nil), nil, r)
}

func (r *sessionReader) lost(id string) {
	if call := r.settle(id); call != nil {
		open := &tool{id: id, name: call.name, kind: "call", input: call.input}
		r.begin(r.main, open, r)
		r.fail(r.main, open, "the session has no result of this tool", r)
	}
}

func (r *sessionReader) endTurn() {
	for len(r.calls) > 0 {
		r.lost(r.calls[0])
	}
	if r.inTurn {
		r.Event(pluginapi.TurnEnd{TurnIndex: r.turns})
		r.turns++
		r.inTurn = false
	}
}
