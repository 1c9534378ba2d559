// Package render turns the events of a run into text for people.
//
// The assistant's text goes to Out, everything else to Err, so that a file which
// Out was redirected to holds the answer and nothing else. If both are the same
// terminal, line ends that are needed between the two go to Err. What an agent
// wrote is stripped of control sequences.
//
// An agent may withdraw a message: a connection breaks, and it asks the model again. A
// file or a pipe therefore gets the text of a message only when the agent can no longer
// withdraw it. A terminal gets the text as it comes, and a line when it is withdrawn.
//
// What is written depends on the options and the events alone, not on the time
// or on how the text was cut into deltas. A Renderer is for one goroutine.
package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Options say what is written and how.
type Options struct {
	Out, Err io.Writer
	Color    bool // Err takes colours
	Width    int  // of lines about tools; 0: no limit
	// Terminal says that Err is one: a line about a tool begins when the tool does.
	Terminal bool
	// Live says that Out is a terminal: text is written as it comes.
	Live bool
	// Shared says that Out is the same terminal as Err.
	Shared bool
	// Quiet shows only what asks for an answer.
	Quiet bool
	// Prompts shows the user's messages too.
	Prompts bool
	// Debug shows the agent's own logs and everything minor.
	Debug bool
	// Line is where answers and prompts are typed; nil: behind what is written.
	Line Line
	// Markdown shows the answers of the agent as Markdown, where there is a Line.
	Markdown bool
}

// Line is an input line at the foot of the terminal.
type Line interface {
	// Question begins an answer.
	Question(label string)
	// Preview shows text that is written when more of it is there.
	Preview(text string)
}

// Renderer writes the events of one run.
type Renderer struct {
	o   Options
	err error // of writing to Out

	text     Sanitizer
	thinking Sanitizer
	buf      []byte

	outMid, errMid bool // the cursor is in the middle of a line
	said           bool // a message was written
	inMessage      bool // text of the open message was written
	holding        bool // the text of a message waits
	whole          bool // that message has ended
	held           []byte
	thought        bool // thinking of the open block was written
	thinkingLine   bool // and nothing else since
	markdown       *markdown
	unshown        []byte // the start of a line of Markdown
	openTool       string // the tool whose line waits for its result
	tools          map[string]tool
}

type tool struct {
	line   string
	unsure bool // a command whose exit code the agent does not report
}

// New returns a Renderer.
func New(o Options) *Renderer {
	r := &Renderer{o: o, tools: map[string]tool{}}
	if o.Markdown && o.Line != nil {
		r.markdown = &markdown{width: o.Width}
	}
	return r
}

// Color reports whether Err takes colours.
func (r *Renderer) Color() bool { return r.o.Color }

// Err returns the first error of a write to Out: its reader has gone.
func (r *Renderer) Err() error { return r.err }

// event has the fields that are shown, of all types.
type event struct {
	pluginapi.Nested
	toolUse
	failure
	request
	ending
	RunID      string          `json:"run_id"`
	Agent      string          `json:"agent"`
	Delta      string          `json:"delta"`
	Text       string          `json:"text"`
	Thinking   string          `json:"thinking"`
	Level      string          `json:"level"`
	Line       string          `json:"line"`
	PctUsed    *float64        `json:"pct_used"`
	FilePath   string          `json:"file_path"`
	Items      json.RawMessage `json:"items"`
	To         string          `json:"to"`
	Capability string          `json:"capability"`
}

// decode reads the fields of an event.
func decode(t pluginapi.Type, raw []byte) (e event, ok bool) {
	switch t {
	case code.EventTextDelta, code.EventThinkingDelta:
		if delta, ok := plainDelta(raw); ok {
			e.Delta = string(delta)
			return e, true
		}
	case code.EventMessageStop: // which repeats the whole message
		if head, text, ok := lastText(raw, "text"); ok && json.Unmarshal(slices.Concat(head, []byte("}")), &e) == nil {
			e.Text = string(text)
			return e, true
		}
	}
	return e, json.Unmarshal(raw, &e) == nil
}

// plainDelta reads an event that has a delta behind its head and nothing else, as nearly
// all have: a long answer has a million of them. The delta may be part of the event.
func plainDelta(raw []byte) (delta []byte, ok bool) {
	head, delta, ok := lastText(raw, "delta")
	return delta, ok && !bytes.Contains(head, []byte(`"parent_id"`))
}

// lastText takes an event apart whose last member is a text: what is before it, and the text, which may be
// part of the event.
func lastText(raw []byte, name string) (head, text []byte, ok bool) {
	key := `,"` + name + `":`
	at := bytes.Index(raw, []byte(key+`"`)) // no string has that: its quotes are escaped
	if at < 0 || raw[len(raw)-1] != '}' || bytes.Count(raw[:at], []byte("{")) != 1 {
		return nil, nil, false
	}
	head, value := raw[:at], raw[at+len(key):len(raw)-1]
	if text, whole := bytes.CutSuffix(value[1:], []byte(`"`)); whole && utf8.Valid(text) {
		if text, ok = unescaped(text); ok {
			return head, text, true
		}
	}
	var decoded string
	ok = json.Unmarshal(value, &decoded) == nil // not, if anything follows
	return head, []byte(decoded), ok
}

// unescaped is the text of a string of JSON, of which most have no escape, or a line end: to decode them all
// would take a fifth of amux logs. It leaves rare escapes to the library.
func unescaped(text []byte) ([]byte, bool) {
	at := bytes.IndexByte(text, '\\')
	if at < 0 {
		return text, bytes.IndexByte(text, '"') < 0
	}
	plain := make([]byte, 0, len(text))
	for ; at >= 0; at = bytes.IndexByte(text, '\\') {
		if at+1 == len(text) || bytes.IndexByte(text[:at], '"') >= 0 {
			return nil, false
		}
		plain = append(plain, text[:at]...)
		switch c := text[at+1]; c {
		case 'n':
			plain = append(plain, '\n')
		case 't':
			plain = append(plain, '\t')
		case '"', '\\', '/':
			plain = append(plain, c)
		default:
			return nil, false
		}
		text = text[at+2:]
	}
	return append(plain, text...), bytes.IndexByte(text, '"') < 0
}

// take takes a piece of the agent's message, of which there may be a million.
func take(r *Renderer, text []byte) {
	if r.whole && !undecided[code.EventTextDelta] {
		r.release()
	}
	if r.holding {
		r.held = append(r.held, text...)
		return
	}
	r.say(string(text))
}

// toolUse are the fields of what an agent does with a tool.
type toolUse struct {
	ToolCallID string          `json:"tool_call_id"`
	ToolName   string          `json:"tool_name"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output"`
	ExitCode   *int            `json:"exit_code"`
	Aborted    bool            `json:"aborted"`
}

// failure are the fields of what went wrong, and of the next attempt.
type failure struct {
	Error       string         `json:"error"`
	Message     string         `json:"message"`
	Guidance    string         `json:"guidance"`
	Reason      string         `json:"reason"`
	Code        pluginapi.Code `json:"code"`
	Recoverable bool           `json:"recoverable"`
	Attempt     int            `json:"attempt"`
	Approve     string         `json:"approve"`
	MaxAttempts *int           `json:"max_attempts"`
	DelayMS     *int64         `json:"delay_ms"`
	RetryAfter  *int64         `json:"retry_after_ms"`
}

// request are the fields of what an agent asks.
type request struct {
	Action    string               `json:"action"`
	Detail    string               `json:"detail"`
	RiskLevel string               `json:"risk_level"`
	Question  string               `json:"question"`
	Context   string               `json:"context"`
	Questions []pluginapi.Question `json:"questions"`
}

// ending are the fields of the end of a run.
type ending struct {
	State      string           `json:"state"`
	Turns      int              `json:"turns"`
	Tokens     pluginapi.Tokens `json:"tokens"`
	Cost       *pluginapi.Money `json:"cost"`
	DurationMS int64            `json:"duration_ms"`
}

// Event writes one event: its type and its whole JSON object.
func (r *Renderer) Event(t pluginapi.Type, raw []byte) {
	if r.o.Quiet || skipped[t] && !r.o.Debug {
		return
	}
	if t == code.EventTextDelta {
		if delta, ok := plainDelta(raw); ok {
			take(r, delta)
			return
		}
	}
	e, ok := decode(t, raw)
	if !ok {
		return // fields of unexpected types: nothing to show
	}
	nested := e.ParentID != ""
	if !nested && t != code.EventTextDelta && t != code.EventDebug && (!undecided[t] || t == code.EventStreamFallback) {
		r.showRest()
	}
	if r.whole && !nested && !undecided[t] {
		r.release()
	}
	switch t {
	case code.EventMessageStart:
		if !nested && !r.o.Live {
			r.release()
			r.holding = true
		}
	case code.EventTextDelta:
		if !nested {
			take(r, []byte(e.Delta))
		}
	case code.EventMessageStop:
		switch {
		case nested:
		case r.holding && e.Aborted:
			r.drop()
		case r.holding:
			if r.whole = true; e.Text != "" {
				r.held = append(r.held[:0], e.Text...)
			}
		default:
			if !r.inMessage {
				r.say(e.Text)
			}
			r.endMessage()
		}
	case code.EventStreamFallback:
		switch {
		case nested || e.Capability == "thinking":
		case r.o.Live:
			r.note(yellow, "the text above was withdrawn: "+oneLine(e.Reason))
		case r.whole:
			r.drop()
		}
	case code.EventThinkingDelta:
		if !nested {
			r.think(e.Delta)
		}
	case code.EventThinkingStop:
		if !nested {
			if !r.thought {
				r.think(e.Thinking)
			}
			r.endThinking()
			r.thought = false
		}
	case code.EventToolCallReady:
		r.beginTool(e)
	case code.EventShellExit:
		if t, ok := r.tools[e.ToolCallID]; ok && e.ExitCode == nil {
			t.unsure = true
			r.tools[e.ToolCallID] = t
		}
	case code.EventToolResult:
		r.endTool(e, "→", output(e.Output), "")
	case code.EventToolError:
		r.endTool(e, "✗", oneLine(e.Error), red)
	case code.EventImageOutput:
		if e.FilePath != "" {
			r.note(dim, "image: "+oneLine(e.FilePath))
		}
	case code.EventTodoUpdate:
		r.todo(e.Items)
	case code.EventUserMessage:
		if r.o.Prompts && !nested {
			r.line(bold, "> "+oneLine(e.Text))
		}
	case code.EventDebug:
		switch {
		case e.Level == "warn":
			r.note(yellow, "warning: "+oneLine(e.Message))
		case r.o.Debug || e.Level == "info":
			r.note(dim, oneLine(e.Message))
		}
	case code.EventLog:
		r.note(dim, "log: "+oneLine(e.Line))
	case code.EventError:
		if e.Recoverable {
			r.note(yellow, "warning: "+oneLine(e.Message))
		}
	case code.EventAuthError:
		if e.Guidance != "" {
			r.note(yellow, oneLine(e.Guidance))
		}
	case code.EventRetry:
		text := fmt.Sprintf("try %d", e.Attempt)
		if e.Code != "" { // of ours, not of the agent's
			r.drop()
			text = fmt.Sprintf("the agent is started again, attempt %d", e.Attempt)
		}
		if e.MaxAttempts != nil {
			text += fmt.Sprintf(" of %d", *e.MaxAttempts)
		}
		r.note(yellow, text+delay(e.DelayMS)+": "+oneLine(e.Reason))
	case code.EventRateLimited:
		r.note(yellow, "rate limited"+delay(e.RetryAfter))
	case code.EventContextLimitWarning:
		if e.PctUsed != nil {
			r.note(yellow, fmt.Sprintf("%.0f %% of the context is used", *e.PctUsed))
		}
	case code.EventContextCompacted:
		r.note(dim, "the context was compacted")
	case code.EventApprovalsChanged:
		r.note(dim, "approvals from now on: "+oneLine(e.Approve))
	case code.EventApprovalDenied:
		text := "denied"
		if e.Reason != "" {
			text += ": " + oneLine(e.Reason)
		}
		r.note(yellow, text)
	case code.EventInterrupted:
		r.note(yellow, "interrupted")
	case code.EventPaused, code.EventResumed:
		r.note(dim, string(t))
	case code.EventTurnEnd:
		r.release()
	case code.EventRunEnd:
		r.end(e)
	}
}

// undecided are types that may come between a message and its withdrawal.
var undecided = map[pluginapi.Type]bool{
	code.EventToolCallStart: true, code.EventToolInputDelta: true, code.EventStreamFallback: true, code.EventStepEnd: true, code.EventRetry: true,
	code.EventTokenUsage: true, code.EventCost: true, code.EventLog: true,
}

// skipped are types that are not shown.
var skipped = map[pluginapi.Type]bool{
	code.EventToolInputDelta: true, code.EventShellStdoutDelta: true, code.EventShellStderrDelta: true,
	code.EventFilePatch: true, code.EventFileWrite: true, code.EventFileCreate: true, code.EventFileRead: true, code.EventLog: true,
}

const (
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	reset  = "\x1b[0m"
)

func (r *Renderer) style(style, text string) string {
	if !r.o.Color || style == "" || text == "" {
		return text
	}
	return style + text + reset
}

func (r *Renderer) errWrite(text string) {
	if text == "" {
		return
	}
	_, _ = io.WriteString(r.o.Err, text) // there is nowhere to report an error
}

// fresh moves to a new line of Err, and of the terminal if Out is the same.
func (r *Renderer) fresh() {
	if r.errMid || r.o.Shared && r.outMid {
		r.errWrite("\n")
	}
	r.errMid = false
	if r.o.Shared {
		r.outMid = false
	}
	r.openTool = ""
}

// line writes a whole line to Err.
func (r *Renderer) line(style, text string) {
	r.endThinking()
	r.fresh()
	r.errWrite(r.style(style, String(text)) + "\n")
}

// note writes a line of amux's own.
func (r *Renderer) note(style, text string) {
	if r.o.Width > 0 {
		text = clip(text, r.o.Width)
	}
	r.line(style, text)
}

// say writes text of the assistant.
func (r *Renderer) say(text string) {
	r.buf = r.text.Append(r.buf[:0], text)
	if len(r.buf) == 0 {
		return
	}
	r.endThinking()
	if r.errMid {
		r.fresh()
	}
	if !r.inMessage && r.said && !r.o.Shared {
		r.buf = append([]byte{'\n'}, r.buf...) // a blank line between two messages
	}
	r.inMessage, r.said = true, true
	if r.markdown != nil {
		r.showMarkdown()
		return
	}
	r.write(string(r.buf))
	r.outMid = r.buf[len(r.buf)-1] != '\n'
}

// showMarkdown shows the whole lines of what was said, and the rest as a preview.
func (r *Renderer) showMarkdown() {
	r.unshown = append(r.unshown, r.buf...)
	end := bytes.LastIndexByte(r.unshown, '\n') + 1
	var shown strings.Builder
	for line := range strings.Lines(string(r.unshown[:end])) {
		shown.WriteString(r.markdown.line(strings.TrimSuffix(line, "\n")))
	}
	r.unshown = append(r.unshown[:0], r.unshown[end:]...)
	r.write(shown.String())
	from := max(0, len(r.unshown)-mostPreview)
	for from > 0 && from < len(r.unshown) && !utf8.RuneStart(r.unshown[from]) {
		from++
	}
	r.o.Line.Preview(r.markdown.held() + string(r.unshown[from:]))
}

// mostPreview bounds the preview of a line, in bytes.
const mostPreview = 8 << 10

// showRest shows what has no end yet.
func (r *Renderer) showRest() {
	if r.markdown == nil || len(r.unshown) == 0 && r.markdown.held() == "" {
		return
	}
	rest := ""
	if len(r.unshown) > 0 {
		rest = r.markdown.line(string(r.unshown))
		r.unshown = r.unshown[:0]
	}
	r.write(rest + r.markdown.end())
	r.o.Line.Preview("")
}

// write writes to Out.
func (r *Renderer) write(text string) {
	if text == "" {
		return
	}
	if _, err := io.WriteString(r.o.Out, text); err != nil && r.err == nil {
		r.err = err
	}
}

// Flush writes the text that waits until the agent can no longer withdraw it. Call it
// when no event follows for now.
func (r *Renderer) Flush() { r.release() }

// release writes the text that waits.
func (r *Renderer) release() {
	if !r.holding {
		return
	}
	r.holding, r.whole = false, false
	r.say(string(r.held))
	forget(r)
	r.endMessage()
}

// mostHeld is the most room that is kept for the text of the next message.
const mostHeld = 4 << 20

// forget empties the text that waits.
func forget(r *Renderer) {
	if r.held = r.held[:0]; cap(r.held) > mostHeld {
		r.held = nil
	}
}

// drop discards the text that waits, and notes that.
func (r *Renderer) drop() {
	n := int64(utf8.RuneCount(r.held))
	forget(r)
	r.holding, r.whole = false, false
	if n > 0 {
		r.note(yellow, "left out "+count(n, "character")+" of an answer that was cut off")
	}
}

func (r *Renderer) endMessage() {
	r.text = Sanitizer{}
	r.showRest()
	if r.markdown != nil {
		r.markdown.fence = ""
	}
	if r.inMessage && r.outMid {
		r.write("\n")
		r.outMid = false
	}
	r.inMessage = false
}

// think writes thinking, dim, as it comes.
func (r *Renderer) think(text string) {
	r.buf = r.thinking.Append(r.buf[:0], text)
	if len(r.buf) == 0 {
		return
	}
	if !r.thinkingLine {
		r.fresh()
	}
	r.thought, r.thinkingLine = true, true
	// Styled piece by piece, so that nothing else on the terminal is ever dim.
	r.errWrite(r.style(dim, string(r.buf)))
	r.errMid = r.buf[len(r.buf)-1] != '\n'
}

// endThinking ends the line of thinking, if one is open.
func (r *Renderer) endThinking() {
	if r.thinkingLine {
		r.thinkingLine = false
		r.thinking = Sanitizer{}
		r.fresh()
	}
}

// beginTool writes the line about a tool as far as it is known; on a terminal the
// result follows on the same line, unless something else came between.
func (r *Renderer) beginTool(e event) {
	line := "● " + oneLine(e.ToolName)
	if e.ParentID != "" {
		line = "  " + line
	}
	room := max(20, r.o.Width*2/3)
	if arg, path := argument(e.Input); arg != "" {
		if path && r.o.Width > 0 {
			arg = clipStart(arg, max(12, room-Columns(line)-1))
		}
		line += " " + arg
	}
	if r.o.Width > 0 {
		line = clip(line, room)
	}
	r.tools[e.ToolCallID] = tool{line: line}
	if !r.o.Terminal {
		return
	}
	r.endThinking()
	r.fresh()
	r.errWrite(r.style(cyan, line))
	r.errMid, r.openTool = true, e.ToolCallID
}

func (r *Renderer) endTool(e event, mark, result, style string) {
	t, known := r.tools[e.ToolCallID]
	delete(r.tools, e.ToolCallID)
	if !known {
		t.line = "● " + oneLine(e.ToolName)
	}
	tail := " " + mark + " " + result
	if result == "" {
		tail = " ✓"
		if t.unsure {
			tail = " · ended, exit code unknown"
		}
	}
	if r.o.Width > 0 {
		tail = clip(tail, max(12, r.o.Width-Columns(t.line)))
	}
	if r.openTool == "" || r.openTool != e.ToolCallID {
		r.endThinking()
		r.fresh()
		r.errWrite(r.style(cyan, t.line))
	}
	r.errWrite(r.style(style, tail) + "\n")
	r.errMid, r.openTool = false, ""
}

func (r *Renderer) todo(raw json.RawMessage) {
	var items []pluginapi.TodoItem
	if json.Unmarshal(raw, &items) != nil || len(items) == 0 {
		return
	}
	done, current := 0, ""
	for _, item := range items {
		switch item.Status {
		case code.StateCompleted:
			done++
		case "in_progress":
			if current == "" {
				current = ": " + oneLine(item.Text)
			}
		}
	}
	r.note(dim, fmt.Sprintf("todo %d/%d%s", done, len(items), current))
}

// end writes the last line of a run.
func (r *Renderer) end(e event) {
	if r.holding && e.State != code.StateCompleted {
		r.drop()
	}
	r.release()
	r.endMessage()
	var parts []string
	if e.State != code.StateCompleted {
		parts = append(parts, strings.ReplaceAll(e.State, "_", " "))
	}
	parts = append(parts, Used(e.Turns, e.Tokens, e.Cost), Duration(time.Duration(e.DurationMS)*time.Millisecond))
	if e.RunID != "" {
		parts = append(parts, "run "+ShortID(e.RunID))
	}
	r.line(dim, strings.Join(parts, " · "))
}

// Used says what a run has used: "2 turns · 1,234 tokens in · 345 out · $0.0012".
func Used(turns int, tokens pluginapi.Tokens, cost *pluginapi.Money) string {
	parts := []string{count(int64(turns), "turn")}
	if tokens.Input != nil {
		// All input, cached or not: the three do not overlap.
		in := *tokens.Input
		for _, cached := range []*int64{tokens.CacheRead, tokens.CacheWrite} {
			if cached != nil {
				in += *cached
			}
		}
		parts = append(parts, count(in, "token")+" in")
	}
	if tokens.Output != nil {
		parts = append(parts, Number(*tokens.Output)+" out")
	}
	if cost != nil {
		parts = append(parts, Money(cost.USD))
	}
	return strings.Join(parts, " · ")
}

func delay(ms *int64) string {
	if ms == nil {
		return ""
	}
	return " in " + Duration(time.Duration(*ms)*time.Millisecond)
}

// AskQuestion shows one question of the agent and leaves the cursor where the
// answer goes.
func (r *Renderer) AskQuestion(question, context string, options []string) {
	r.line(yellow, "? "+oneLine(question))
	v := view{more: "amux inspect shows all", color: r.o.Color}
	v.block("", "", context)
	for i, option := range options {
		v.block(fmt.Sprintf("%d ", i+1), "", option)
	}
	r.errWrite(v.b.String())
	r.ask("> ")
}

// AskPrompt leaves the cursor where the next prompt goes.
func (r *Renderer) AskPrompt() {
	if r.o.Line != nil {
		return // it is always there
	}
	r.fresh()
	r.errWrite(r.style(bold, "> "))
	r.errMid = true
}

func (r *Renderer) ask(text string) {
	text = "  " + r.style(bold, text)
	if r.o.Line != nil {
		r.o.Line.Question(text)
		return
	}
	r.errWrite(text)
	r.errMid = true
}

// SetWidth sets the width of lines about tools.
func (r *Renderer) SetWidth(cols int) {
	r.o.Width = cols
	if r.markdown != nil {
		r.markdown.width = cols
	}
}

// Answered reports that the user has ended the line with Enter.
func (r *Renderer) Answered() { r.errMid = false }

// Note writes a line of amux itself.
func (r *Renderer) Note(text string) { r.line(yellow, text) }
