package main

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/plugins/internal/streamjson"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/sessionfile"
	"github.com/amux-dev/amux/sdk/turn"
)

var sessionIDRule = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// ReadSession gives a stored session as events: the active branch, or with
// all_branches everything, sub-agents too.
func (adapter) ReadSession(ctx context.Context, q *pluginapi.SessionQuery, yield func(pluginapi.Payload, time.Time) bool) error {
	id := q.GetSessionId()
	notFound := pluginapi.Errorf(pluginapi.CodeSessionNotFound, "claude has no session %q", id)
	if !sessionIDRule.MatchString(id) {
		return notFound
	}
	files := sessionFiles(q.GetCaller(), nil, id)
	if len(files) == 0 {
		return notFound
	}
	r := &sessionReader{ctx: ctx, id: id, path: files[0].Path, Stored: turn.Stored{Yield: yield}}
	r.model.w = &r.Writer
	if err := r.index(q.GetAllBranches()); err != nil {
		return err
	}
	return r.read(q.GetAllBranches())
}

// node is a line of the conversation's tree.
type node struct {
	message uint64 // hash of the API message's id; 0: none
	parent  int32  // index of a node; -1: none
	flags   uint8
}

const (
	nodeActive = 1 << iota
	nodeSidechain
	nodeResult // the results of tools
	nodeLeaf   // may be the end of the conversation
)

// sessionReader reads one session, twice: first for its tree, then for its lines.
type sessionReader struct {
	turn.Stored
	model decoder
	ctx   context.Context
	id    string
	path  string

	nodes  []node
	byLine []int32 // line → node; -1: no part of the tree
	start  pluginapi.SessionStart

	title     string
	hasTitle  bool // a person gave it
	costTotal float64
	usage     *pluginapi.TokenUsage // of the API message being read
	usageID   string
	parent    string // tool_call_id, while a sub-agent's file is read
}

// index reads the tree and marks what will be read.
func (r *sessionReader) index(all bool) error {
	lines, err := sessionfile.Open(r.path)
	if err != nil {
		return err
	}
	defer lines.Close()
	var places sessionfile.Index
	last := int32(-1) // the last node of the main conversation
	r.start = pluginapi.SessionStart{SessionID: r.id}
	for n := 0; lines.Next(); n++ {
		if n%1024 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		place := int32(-1)
		if !lines.Long {
			if doc, err := jsonl.ParseObject(lines.Line); err == nil {
				place = r.indexLine(doc.Value, &places, last)
				doc.Release()
			}
		}
		r.byLine = append(r.byLine, place)
		if place >= 0 && r.nodes[place].flags&nodeSidechain == 0 {
			last = place
		}
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	if all {
		for i := range r.nodes {
			r.nodes[i].flags |= nodeActive
		}
	} else {
		r.markActive()
	}
	return nil
}

// indexLine adds a line to the tree and returns its node, -1 for another line.
func (r *sessionReader) indexLine(line jsonl.Value, places *sessionfile.Index, last int32) int32 {
	uuid := line.Bytes("uuid")
	if len(uuid) == 0 || len(r.nodes) == math.MaxInt32 {
		return -1
	}
	kind := string(line.Bytes("type"))
	n := node{parent: -1}
	parent := line.Bytes("parentUuid")
	if len(parent) == 0 {
		// Compaction begins a new root that names what it goes on from.
		parent = line.Bytes("logicalParentUuid")
	}
	if len(parent) > 0 {
		var known bool
		if n.parent, known = places.Get(parent); !known {
			n.parent = last // its line could not be read: the one before it is near
		}
	}
	if line.Bool("isSidechain") {
		n.flags |= nodeSidechain
	}
	switch kind {
	case "assistant":
		n.flags |= nodeLeaf
		n.message = sessionfile.Hash(line.Bytes("message", "id"))
		if model := line.Bytes("message", "model"); r.start.Model == "" && string(model) != "<synthetic>" {
			r.start.Model = string(model)
		}
	case "user":
		n.flags |= nodeLeaf
		if string(line.Bytes("message", "content", "0", "type")) == "tool_result" {
			n.flags |= nodeResult
		}
	}
	if r.At.IsZero() {
		r.At, _ = sessionfile.Time(line)
	}
	if r.start.Version == "" {
		r.start.Version = line.Text("version")
	}
	if r.start.ForkedFrom == "" {
		r.start.ForkedFrom = line.Text("forkedFrom", "sessionId")
	}
	place := int32(len(r.nodes))
	r.nodes = append(r.nodes, n)
	places.Put(uuid, place)
	return place
}

// markActive marks the branch that the session stands on: from its last line
// back to the root. Of several tools that ran at once only one is on that path,
// so the rest of each message on it, and the results of its tools, join.
func (r *sessionReader) markActive() {
	leaf := int32(-1)
	for i := int32(len(r.nodes)) - 1; i >= 0; i-- {
		if f := r.nodes[i].flags; f&nodeLeaf != 0 && f&nodeSidechain == 0 {
			leaf = i
			break
		}
	}
	messages := map[uint64]bool{}
	// A parent comes before its children, so that a loop in a broken file ends.
	for i := leaf; i >= 0; {
		n := &r.nodes[i]
		n.flags |= nodeActive
		if n.message != 0 {
			messages[n.message] = true
		}
		if n.parent >= i {
			break
		}
		i = n.parent
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.flags&(nodeActive|nodeSidechain) != 0 {
			continue
		}
		if n.message != 0 && messages[n.message] ||
			n.flags&nodeResult != 0 && n.parent >= 0 && r.nodes[n.parent].flags&nodeActive != 0 {
			n.flags |= nodeActive
		}
	}
}

// read emits the events of the marked lines.
func (r *sessionReader) read(all bool) error {
	lines, err := sessionfile.Open(r.path)
	if err != nil {
		return err
	}
	defer lines.Close()
	begun := false
	// The file may grow meanwhile; what is not in the tree is left out.
	for n := 0; n < len(r.byLine) && !r.Stopped && lines.Next(); n++ {
		if n%1024 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if lines.Long {
			r.Long(lines.Offset, lines.Length)
			continue
		}
		place := r.byLine[n]
		if place >= 0 && r.nodes[place].flags&nodeActive == 0 {
			continue
		}
		if place < 0 && !isNote(lines.Line) {
			continue
		}
		doc, err := jsonl.ParseObject(lines.Line)
		if err != nil {
			continue
		}
		if at, ok := sessionfile.Time(doc.Value); ok {
			r.At = at
		}
		if !begun {
			begun = true
			r.Event(r.start)
		}
		r.line(doc.Value)
		doc.Release()
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	r.flushUsage()
	r.EndTurn()
	if all && !r.Stopped {
		if err := r.subagents(); err != nil {
			return err
		}
	}
	if begun {
		r.End(r.id)
	}
	return r.ctx.Err()
}

// isNote reports whether a line outside the tree may matter. The others are the
// CLI's own notes, some of them big.
func isNote(line []byte) bool {
	head := line[:min(len(line), 200)]
	return bytes.Contains(head, []byte(`-title"`)) || bytes.Contains(head, []byte(`"cost-state"`))
}

// line emits the events of one line.
func (r *sessionReader) line(line jsonl.Value) {
	switch line.Text("type") {
	case "user":
		r.user(line)
	case "assistant":
		r.message(line)
	case "custom-title":
		r.hasTitle = true
		r.sessionTitle(line.Text("customTitle"))
	case "ai-title":
		if !r.hasTitle {
			r.sessionTitle(firstText(line, "aiTitle", "title"))
		}
	case "cost-state":
		if total, ok := line.Float("totalCostUSD"); ok && total > r.costTotal {
			r.Event(pluginapi.Cost{Cost: pluginapi.Money{USD: math.Round((total-r.costTotal)*1e10) / 1e10}})
			r.costTotal = total
		}
	}
}

func (r *sessionReader) sessionTitle(title string) {
	if title != "" && title != r.title {
		r.title = title
		r.Event(pluginapi.SessionTitle{Title: title})
	}
}

func (r *sessionReader) user(line jsonl.Value) {
	content := line.Get("message", "content")
	switch {
	case line.Bool("isCompactSummary"):
		r.Event(pluginapi.ContextCompacted{Summary: streamjson.Text(content)})
		return
	case line.Bool("isMeta"):
		return
	}
	results := 0
	for _, block := range content.Items() {
		if block.Text("type") == "tool_result" {
			results++
		}
	}
	if results > 0 {
		extra := line.Get("toolUseResult")
		if results > 1 {
			extra = jsonl.Value{}
		}
		for _, block := range content.Items() {
			if block.Text("type") == "tool_result" {
				r.model.toolResult(block, extra, r.parent, r)
			}
		}
		return
	}
	if strings.HasPrefix(streamjson.Text(content), interruptedText) {
		r.Event(pluginapi.Interrupted{})
		return
	}
	if text := streamjson.Text(content); strings.HasPrefix(text, "<task-notification>") {
		r.notification(text)
		return
	}
	text := promptText(content)
	if text == "" {
		return
	}
	if r.parent == "" && !line.Bool("isSidechain") {
		r.flushUsage()
		r.Prompt(line.Text("uuid"), text)
		return
	}
	r.Event(pluginapi.UserMessage{ID: line.Text("uuid"), Text: text, Nested: pluginapi.Nested{ParentID: r.parent}})
}

// notification is how the CLI tells the model that background work has ended.
func (r *sessionReader) notification(text string) {
	tag := func(name string) string {
		_, rest, _ := strings.Cut(text, "<"+name+">")
		value, _, found := strings.Cut(rest, "</"+name+">")
		if !found {
			return ""
		}
		return strings.TrimSpace(value)
	}
	r.model.taskEnded(tag("tool-use-id"), tag("status"), cmp.Or(tag("result"), tag("summary")), r)
}

func (r *sessionReader) message(line jsonl.Value) {
	message := line.Get("message")
	if message.Text("model") == "<synthetic>" {
		text := streamjson.Text(message.Get("content"))
		switch {
		case line.Bool("isApiErrorMessage"):
			r.Event(pluginapi.ErrorEvent{Code: pluginapi.CodeAgentFailed, Message: text})
			return
		case text == "No response requested.":
			return
		}
	}
	// Each block is a line and repeats the usage of its message.
	if id := message.Text("id"); id != r.usageID || id == "" {
		r.flushUsage()
		r.usageID = id
	}
	if usage := message.Get("usage"); usage.IsObject() && message.Text("model") != "<synthetic>" {
		r.usage = &pluginapi.TokenUsage{
			InputTokens:      usage.IntPtr("input_tokens"),
			OutputTokens:     usage.IntPtr("output_tokens"),
			ThinkingTokens:   usage.IntPtr("output_tokens_details", "thinking_tokens"),
			CacheReadTokens:  usage.IntPtr("cache_read_input_tokens"),
			CacheWriteTokens: usage.IntPtr("cache_creation_input_tokens"),
			Model:            message.Text("model"),
		}
	}
	r.model.assistantOf(line, r.parent, r)
}

func (r *sessionReader) flushUsage() {
	if r.usage != nil {
		r.Event(*r.usage)
		r.usage = nil
	}
}

// subagents emits what the session's sub-agents did; their lines have files of
// their own.
func (r *sessionReader) subagents() error {
	dir := filepath.Join(strings.TrimSuffix(r.path, ".jsonl"), "subagents")
	files, _ := filepath.Glob(filepath.Join(dir, "agent-*.jsonl"))
	slices.Sort(files)
	for _, file := range files {
		if err := r.subagent(file); err != nil {
			return err
		}
	}
	return nil
}

func (r *sessionReader) subagent(file string) error {
	meta, err := sessionfile.Read(strings.TrimSuffix(file, ".jsonl")+".meta.json", 4<<20)
	if err != nil {
		return nil
	}
	doc, err := jsonl.ParseObject(meta)
	if err != nil {
		return nil
	}
	r.parent = doc.Text("toolUseId")
	doc.Release()
	if r.parent == "" {
		return nil
	}
	defer func() { r.parent = "" }()
	lines, err := sessionfile.Open(file)
	if err != nil {
		return nil
	}
	defer lines.Close()
	for n := 0; !r.Stopped && lines.Next(); n++ {
		if n%1024 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		doc, err := jsonl.ParseObject(lines.Line)
		if err != nil {
			continue
		}
		if at, ok := sessionfile.Time(doc.Value); ok {
			r.At = at
		}
		r.line(doc.Value)
		doc.Release()
	}
	r.flushUsage()
	return lines.Err()
}
