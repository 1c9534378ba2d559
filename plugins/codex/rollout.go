package main

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/sessionfile"
	"github.com/amux-dev/amux/sdk/turn"
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
	r := &sessionReader{Stored: turn.Stored{Yield: yield}, ctx: ctx, id: id, pending: map[string]*pendingCall{}}
	r.w, r.main = &r.Writer, r.thread(id)
	for _, s := range chain {
		if err := r.segment(s); err != nil {
			return err
		}
		if r.Stopped {
			return nil
		}
	}
	r.endTurn()
	if r.begun {
		r.End(r.id)
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
	turn.Stored
	decoder
	ctx context.Context
	id  string

	begun   bool
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

func (r *sessionReader) segment(s segment) error {
	lines, err := sessionfile.Open(s.file.path)
	if err != nil {
		return err
	}
	defer lines.Close()
	for n := 0; !r.Stopped && lines.Next(); n++ {
		if n%1024 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if lines.Long {
			r.Long(lines.Offset, lines.Length)
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
			r.At = at
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
		r.StartTurn()
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
	difference := total.less(r.main.spent.total)
	r.main.spent.total = total
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
		r.thought(t, id, text, r)
	case "CommandExecution":
		r.storedCommand(id, item)
	case "FileChange":
		r.storedPatch(item)
	case "McpToolCall":
		r.end(r.mcpStart(t, item, r), mcpResult(item))
	case "WebSearch":
		r.whole(id, searchTool, inputObject("query", item.Text("query")), turn.Result{Output: item.Get("action").AppendRaw(nil)})
	case "ContextCompaction":
		// The line "compacted" tells it.
	}
}

// end gives a tool its result; one that has ended before is told once.
func (r *sessionReader) end(tool *turn.Tool, result turn.Result) {
	if tool != nil {
		r.EndTool(tool, result, r)
	}
}

// whole tells a tool from its beginning to its end.
func (r *sessionReader) whole(id, name string, input json.RawMessage, result turn.Result) {
	r.end(r.begin(r.main, id, name, input, turn.Detail{}, r), result)
}

func (r *sessionReader) storedCommand(id string, item jsonl.Value) {
	var words []string
	for _, word := range item.Items("command") {
		words = append(words, word.Text())
	}
	command := strings.Join(words, " ")
	if len(words) == 3 && (words[1] == "-lc" || words[1] == "-c") {
		command = words[2]
	}
	tool := r.shellStart(r.main, id, command, filePath(item.Text("cwd")), true, r)
	if tool == nil {
		return
	}
	if item.Text("status") == declined {
		r.end(tool, failed(notAllowed))
		return
	}
	var duration *int64
	seconds, hasTime := item.Int("duration", "secs")
	if nanos, ok := item.Int("duration", "nanos"); ok && hasTime {
		ms := seconds*1000 + nanos/1e6
		duration = &ms
	}
	var reads []string
	for _, action := range item.Items("parsed_cmd") {
		if action.Text("type") == "read" {
			reads = append(reads, filePath(action.Text("path")))
		}
	}
	r.end(tool, shellResult(tool, item.Text("aggregated_output"), number(item, "exit_code"), duration, item.Text("status") != "completed", reads))
}

// filePath is the path of a file URL; other text stays.
func filePath(text string) string {
	if u, err := url.Parse(text); err == nil && u.Scheme == "file" {
		return u.Path
	}
	return text
}

func (r *sessionReader) storedPatch(item jsonl.Value) {
	tool := r.patchStart(r.main, item, r)
	if tool == nil {
		return
	}
	if item.Text("status") != "completed" {
		r.end(tool, failed(cmp.Or(strings.TrimSpace(item.Text("stderr")), "the patch was not applied")))
		return
	}
	result := turn.Result{Output: pluginapi.AppendString(nil, item.Text("stdout"))}
	for file, change := range item.Fields("changes") {
		size := int64(len(change.Bytes("content")))
		result.Files = append(result.Files, fileEvent(tool, change.Text("type"), file, change.Text("unified_diff"), &size))
	}
	r.end(tool, result)
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
				r.Prompt(p.Text("id"), text)
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
		r.thought(r.main, p.Text("id"), strings.Join(parts, "\n\n"), r)
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
	if call := r.settle(id); call != nil {
		r.whole(id, call.name, call.input, turn.Result{Output: output.AppendRaw(nil)})
	}
}

func (r *sessionReader) lost(id string) {
	if call := r.settle(id); call != nil {
		r.whole(id, call.name, call.input, failed("the session has no result of this tool"))
	}
}

func (r *sessionReader) endTurn() {
	for len(r.calls) > 0 {
		r.lost(r.calls[0])
	}
	r.EndTurn()
}
