package qwen

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/plugins/internal/streamjson"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// conversation is the codec of one process of the CLI.
type conversation struct {
	turn.Base
	control streamjson.Control

	resumed, forks bool
	forkedFrom     string
	effort         string
	files          []string // attachments, for the first prompt

	mode     string
	toolLast bool // a tool of the main agent has ended, and nothing came after

	// Of the message that is being streamed: how many of its blocks have come,
	// whose assistant lines will say them again.
	streamedText, streamedThinking int
	blocks                         map[int64]*turn.Tool // by index, of the main conversation

	apiError string // the text of a failed request, which the result says again

	// Tokens: what was told, what the CLI has counted before this process.
	told     usage
	baseline usage
	counted  bool // baseline is known
}

type usage struct{ input, output, cacheRead int64 }

// linger: when it is interrupted just as a command starts, the CLI was seen not to
// exit by itself.
const linger = 10 * time.Second

// refusals are what the CLI prints when it refuses to start, or ends.
var refusals = []turn.Refusal{
	{Text: "No saved session found", Code: pluginapi.CodeSessionNotFound},
	{Text: "No auth type is selected", Code: pluginapi.CodeAuth},
	{Text: "Reached max session turns", Code: pluginapi.CodeTurnLimit},
	{Text: "is already in use", Code: pluginapi.CodeValidation, Hint: "the session id is taken: resume the session, or let amux choose an id"},
	{Text: "Run aborted: tool-call budget", Code: pluginapi.CodeTurnLimit, Hint: "raise model.maxToolCalls in qwen's settings.json"},
	{Text: "Run aborted: wall-clock budget", Code: pluginapi.CodeTimeout, Hint: "raise model.maxWallTimeSeconds in qwen's settings.json"},
	{Text: "per-turn tool-call limit", Code: pluginapi.CodeTurnLimit, Hint: "raise model.maxToolCallsPerTurn in qwen's settings.json"},
	{Text: "Session token limit exceeded", Code: pluginapi.CodeBudgetExceeded, Hint: "raise model.sessionTokenLimit in qwen's settings.json"},
}

// Converse begins the conversation with one process.
func (Adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	opts := start.GetOptions()
	c := &conversation{
		Base:    turn.Base{Agent: agentID, Guidance: authGuidance, Refusals: refusals, Linger: linger, Start: start, Tested: testedVersion},
		resumed: opts.GetResume() != "" || opts.GetContinueLast(),
		forks:   opts.GetFork(),
		effort:  opts.GetEffort(),
		blocks:  map[int64]*turn.Tool{},
	}
	c.Effort = c.effort
	c.control = streamjson.Control{Base: &c.Base, Numbered: true, Question: question}
	c.counted = !c.resumed
	if c.forks {
		c.forkedFrom = opts.GetResume()
	}
	if len(start.GetState()) > 0 {
		var state planState
		if err := json.Unmarshal(start.GetState(), &state); err != nil {
			return nil, fmt.Errorf("read the plan's state: %w", err)
		}
		c.files = state.Files
	}
	return c, nil
}

// Handle turns one input into outputs.
func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_START:
		// Only after this handshake the CLI takes control requests.
		c.control.Request("initialize", "", "", out)
	case pb.InputKind_INPUT_STDOUT:
		turn.ReadLine(in.Data, out, c.line)
	case pb.InputKind_INPUT_PROMPT:
		c.Enqueue(in.Id, in.Data)
		c.next(out)
	default:
		if !c.control.Handle(in, out) {
			c.Base.Handle(in, out)
		}
	}
	return nil
}

// initialized: prompts may go.
func (c *conversation) initialized(out *sdk.Out) {
	if c.effort != "" {
		c.control.Request("set_effort", "effort", c.effort, out)
	}
	c.Ready()
	c.next(out)
}

// next writes the prompt that is next, if the CLI is ready for it.
func (c *conversation) next(out *sdk.Out) {
	p, ok := c.Dequeue()
	if !ok {
		return
	}
	b := append([]byte(nil), `{"type":"user","session_id":"","message":{"role":"user","content":`...)
	if len(c.files) == 0 {
		b = pluginapi.AppendString(b, string(p.Text))
	} else {
		b = append(b, '[')
		for _, text := range append(c.files, string(p.Text)) {
			b = append(b, `{"type":"text","text":`...)
			b = append(pluginapi.AppendString(b, text), `},`...)
		}
		b[len(b)-1] = ']'
		c.files = nil
	}
	out.Write(append(b, `},"parent_tool_use_id":null}`+"\n"...))
}

// line handles a parsed line; false means that something in it is not known.
func (c *conversation) line(line jsonl.Value, out *sdk.Out) bool {
	switch string(line.Bytes("type")) {
	case "stream_event":
		return c.streamEvent(line, out)
	case "assistant":
		return c.assistant(line, out)
	case "user":
		return c.user(line, out)
	case "system":
		return c.system(line, out)
	case "result":
		c.result(line, out)
	case "control_request":
		c.control.Asked(line, out)
	case "control_response":
		subtype, known := c.control.Response(line, out)
		if known && subtype == "initialize" {
			c.initialized(out)
		}
		return known
	case "control_cancel_request":
		c.control.Cancelled(line, out)
	default:
		return false
	}
	return true
}

// ignored are the lines that are known and give no event, with the reason.
var ignored = map[string]string{
	"stream_event/goal_state":    "a goal that the agent keeps for itself; printed in every turn",
	"system/task_started":        "the tool's result says that it goes on in the background",
	"stream_event/message_stop":  "the assistant lines before it have ended what it ends",
	"stream_event/tool_progress": "that a tool still runs, every ten seconds; its result says what it did",
}

func (c *conversation) system(line jsonl.Value, out *sdk.Out) bool {
	switch string(line.Bytes("subtype")) {
	case "init":
		c.init(line, out)
	case "retry":
		c.retry(line.Get("data"), out)
	case "task_notification":
		// The end of what goes on in the background.
		data := line.Get("data")
		if t := c.Tool(data.Text("tool_use_id")); t != nil {
			status := data.Text("status")
			summary := data.Text("summary")
			if summary == "" {
				summary = status
			}
			c.EndTool(t, turn.Result{Failed: status != "completed", Text: summary}, out)
		}
	default:
		_, known := ignored["system/"+string(line.Bytes("subtype"))]
		return known
	}
	return true
}

// maxCommands bounds the slash commands that give events.
const maxCommands = 256

// init begins a turn; the first one begins the session.
func (c *conversation) init(line jsonl.Value, out *sdk.Out) {
	mode := line.Text("permission_mode")
	if id := line.Text("session_id"); id != c.Session {
		first := c.Session == ""
		c.Session = id
		start := pluginapi.SessionStart{SessionID: id, Model: line.Text("model"), Version: line.Text("qwen_code_version")}
		if first {
			start.Resumed, start.ForkedFrom = c.resumed, c.forkedFrom
		}
		for _, tool := range line.Items("tools") {
			start.Tools = append(start.Tools, tool.Text())
		}
		out.Event(start)
		switch {
		case first && c.forkedFrom != "":
			out.Event(pluginapi.SessionFork{SessionID: id, ForkedFrom: c.forkedFrom})
		case first && c.resumed && !c.forks:
			out.Event(pluginapi.SessionResume{SessionID: id})
		}
		for i, command := range line.Items("slash_commands") {
			if name := command.Text(); first && name != "" && i < maxCommands {
				out.Event(pluginapi.SkillLoaded{SkillName: name, Source: "command"})
			}
		}
		for _, server := range line.Items("mcp_servers") {
			if status := server.Text("status"); first && status != "connected" && status != "" {
				out.Event(pluginapi.Debug{Level: "warn", Message: fmt.Sprintf("mcp server %q: %s", server.Text("name"), status)})
			}
		}
	} else if mode != c.mode && mode != "" {
		out.Event(pluginapi.ModeChanged{Mode: mode})
	}
	if mode != "" {
		c.mode = mode
	}
	c.TurnStart(out)
}

// retry is a failed request that the CLI makes again. Only where the provider
// limits it says how long it waits.
func (c *conversation) retry(data jsonl.Value, out *sdk.Out) {
	if !data.Bool("preserveText") {
		c.Main().Abandon(data.Text("reason"), out)
		c.streamedText, c.streamedThinking = 0, 0
		clear(c.blocks)
	}
	attempt, _ := data.Int("attempt")
	event := pluginapi.Retry{Attempt: int(attempt), Reason: data.Text("reason"), DelayMS: data.IntPtr("delayMs")}
	if most, ok := data.Int("maxRetries"); ok {
		n := int(most)
		event.MaxAttempts = &n
	}
	out.Event(event)
	if event.DelayMS != nil {
		out.Event(pluginapi.RateLimited{RetryAfterMS: event.DelayMS})
	}
}

func (c *conversation) streamEvent(line jsonl.Value, out *sdk.Out) bool {
	event := line.Get("event")
	parent := line.Text("parent_tool_use_id")
	s := c.Stream(parent)
	index, _ := event.Int("index")
	switch kind := string(event.Bytes("type")); kind {
	case "message_start":
		s.End(out)
		if parent == "" {
			c.streamedText, c.streamedThinking = 0, 0
			clear(c.blocks)
			c.toolLast = false
		}
	case "content_block_start":
		block := event.Get("content_block")
		switch string(block.Bytes("type")) {
		case "text":
			// It opens with its first words: they tell whether they are the model's.
			s.End(out)
			c.streamedText++
		case "thinking":
			s.End(out)
			s.Think(block.Text("thinking"), out)
			c.streamedThinking++
		case "tool_use":
			c.blocks[index] = c.StartTool(block.Text("id"), block.Text("name"), parent, out)
		default:
			return false
		}
	case "content_block_delta":
		delta := event.Get("delta")
		switch string(delta.Bytes("type")) {
		case "text_delta":
			text := delta.Text("text")
			if strings.HasPrefix(text, apiErrorPrefix) {
				s.Abort(out) // the CLI's own words, in one piece; the result says them again
				break
			}
			s.Text("", text, out)
		case "thinking_delta":
			s.Think(delta.Text("thinking"), out)
		case "input_json_delta":
			if t := c.blocks[index]; t != nil {
				t.Input(delta.Text("partial_json"), out)
			}
		case "signature_delta":
		default:
			return false
		}
	case "content_block_stop":
		s.End(out)
		delete(c.blocks, index)
	default:
		_, known := ignored["stream_event/"+kind]
		return known
	}
	return true
}

// apiErrorPrefix begins the text that the CLI prints in the model's place when a request
// has failed.
const apiErrorPrefix = "[API Error: "

// assistant is a finished block, or several tools of one message. Text and
// thinking of the main conversation have been streamed before.
func (c *conversation) assistant(line jsonl.Value, out *sdk.Out) bool {
	message := line.Get("message")
	parent := line.Text("parent_tool_use_id")
	s := c.Stream(parent)
	c.toolLast = c.toolLast && parent != ""
	known := true
	for _, block := range message.Items("content") {
		switch string(block.Bytes("type")) {
		case "text":
			text := block.Text("text")
			switch {
			case parent != "" && strings.HasPrefix(text, apiErrorPrefix):
				// The sub-agent's tool fails with it.
			case parent == "" && strings.Contains(text, apiErrorPrefix) && (c.streamedText > 0 || strings.HasPrefix(text, apiErrorPrefix)):
				c.apiError = text[strings.Index(text, apiErrorPrefix):]
				c.streamedText = max(c.streamedText-1, 0)
			case parent == "" && c.streamedText > 0:
				c.streamedText--
			default:
				s.End(out)
				s.Text(message.Text("id"), text, out)
				s.End(out)
			}
		case "thinking":
			if parent == "" && c.streamedThinking > 0 {
				c.streamedThinking--
				continue
			}
			s.End(out)
			s.Think(block.Text("thinking"), out)
			s.End(out)
		case "tool_use":
			if t := c.StartTool(block.Text("id"), block.Text("name"), parent, out); t != nil {
				input := block.Get("input")
				c.ReadyTool(t, input.Raw(), detail(t.Name, input), out)
			}
		default:
			known = false
		}
	}
	c.tokens(read(message.Get("usage")), message.Text("model"), out)
	return known
}

func (c *conversation) user(line jsonl.Value, out *sdk.Out) bool {
	parent := line.Text("parent_tool_use_id")
	content := line.Get("message", "content")
	if !content.IsArray() {
		c.userText(parent, content.Text(), out)
		return true
	}
	known := true
	for _, block := range content.Items() {
		switch string(block.Bytes("type")) {
		case "tool_result":
			id := block.Text("tool_use_id")
			c.WithdrawTool(id, out)
			t := c.StartTool(id, "", parent, out)
			if t == nil {
				continue // told twice
			}
			if parent == "" {
				parent = t.Parent()
			}
			c.EndTool(t, result(t, streamjson.Text(block.Get("content")), block.Bool("is_error")), out)
			c.toolLast = c.toolLast || parent == "" && !block.Bool("is_error")
		case "text":
			c.userText(parent, block.Text("text"), out)
		default:
			known = false
		}
	}
	return known
}

// userText is what the CLI itself says in the user's place; the prompts of
// sub-agents are told by subagent_spawn.
func (c *conversation) userText(parent, text string, out *sdk.Out) {
	if parent == "" && text != "" {
		out.Event(pluginapi.UserMessage{Text: text})
	}
}

func read(u jsonl.Value) usage {
	input, _ := u.Int("input_tokens")
	output, _ := u.Int("output_tokens")
	cached, _ := u.Int("cache_read_input_tokens")
	return usage{input, output, cached}
}

func (u usage) minus(o usage) usage {
	return usage{u.input - o.input, u.output - o.output, u.cacheRead - o.cacheRead}
}

func (u usage) plus(o usage) usage {
	return usage{u.input + o.input, u.output + o.output, u.cacheRead + o.cacheRead}
}

// tokens tells what a request of the model took. Most lines have zeros: only the
// last of a message has its figures. The CLI's input has the cached part in it.
func (c *conversation) tokens(u usage, model string, out *sdk.Out) {
	if u.input <= 0 && u.output <= 0 {
		return
	}
	c.told = c.told.plus(u)
	input := max(u.input-u.cacheRead, 0)
	out.Event(pluginapi.TokenUsage{InputTokens: &input, OutputTokens: &u.output, CacheReadTokens: &u.cacheRead, Model: model})
}

// result ends a turn.
func (c *conversation) result(line jsonl.Value, out *sdk.Out) {
	if total := line.Get("usage"); total.IsObject() {
		c.total(read(total), out)
	}
	for _, denial := range line.Items("permission_denials") {
		out.Event(pluginapi.ApprovalDenied{InteractionID: denial.Text("tool_use_id"), Reason: "refused by a rule of the agent's"})
	}
	outcome := failed(line)
	if outcome == nil && c.toolLast && line.Text("result") == "" {
		outcome = halted()
	}
	if outcome == nil && c.apiError != "" {
		// The request failed, but the turn went on.
		out.Event(pluginapi.ErrorEvent{Code: pluginapi.CodeAgentFailed, Message: c.apiError, Recoverable: true})
	}
	c.apiError, c.toolLast = "", false
	c.TurnEnd(outcome, nil, out)
	clear(c.blocks)
	c.streamedText, c.streamedThinking = 0, 0
	c.Done()
	c.next(out)
	c.Settle(out)
}

// total takes the CLI's own count, which has what no line of the model told: its
// requests on the side. It is cumulative, and begins with the past of a session
// that goes on.
func (c *conversation) total(u usage, out *sdk.Out) {
	if !c.counted {
		c.counted = true
		c.baseline = u.minus(c.told)
		return
	}
	c.tokens(u.minus(c.baseline).minus(c.told), "", out)
}

// failed is the outcome of a turn; nil is success.
func failed(line jsonl.Value) *pluginapi.Outcome {
	if !line.Bool("is_error") {
		return nil
	}
	message := line.Text("error", "message")
	if strings.HasPrefix(message, "Operation cancelled") {
		return turn.Aborted()
	}
	message = strings.TrimSuffix(strings.TrimPrefix(message, apiErrorPrefix), "]")
	for _, r := range refusals {
		if strings.Contains(message, r.Text) {
			return &pluginapi.Outcome{Code: string(r.Code), Message: message, Hint: r.Hint}
		}
	}
	return failure.Of(failure.Status(message), message)
}

// halted is the outcome of a turn that the CLI calls a success though it ended after a
// tool without asking the model again: so it stops at model.sessionTokenLimit, and says
// nothing.
func halted() *pluginapi.Outcome {
	return &pluginapi.Outcome{
		Code: string(pluginapi.CodeAgentFailed), Message: "Qwen stopped after a tool without asking the model again, and does not say why",
		Hint: "if qwen's settings.json has model.sessionTokenLimit, raise it",
	}
}
