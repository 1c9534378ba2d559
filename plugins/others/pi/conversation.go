package pi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// conversation is the codec of one process of the CLI.
type conversation struct {
	turn.Base
	resumed    bool
	forkedFrom string
	state      planState
	version    string

	commands int
	steps    int
	inStep   bool
	failure  *pluginapi.Outcome // of the last request of the model
	cost     *pluginapi.Money   // of this turn
}

// refusals are complaints by which the CLI refuses to start.
var refusals = []turn.Refusal{
	{Text: "No session found", Code: pluginapi.CodeSessionNotFound},
	{Text: "No API key found", Code: pluginapi.CodeAuth},
	{Text: "No models available", Code: pluginapi.CodeAuth},
	{Text: "not found. Use --list-models", Code: pluginapi.CodeValidation},
	{Text: "Unknown option", Code: pluginapi.CodeAgentNotInstalled, Hint: "this pi is too old; amux is tested with " + testedVersion},
}

// Converse begins the conversation with one process.
func (Adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	o := start.GetOptions()
	c := &conversation{
		Base:    turn.Base{Agent: agentID, Guidance: authGuidance, Refusals: refusals, Linger: 10 * time.Second},
		resumed: o.GetResume() != "" || o.GetContinueLast(), version: start.GetProgramVersion(),
	}
	c.Effort = o.GetEffort()
	if o.GetFork() {
		c.forkedFrom = o.GetResume()
	}
	if len(start.GetState()) > 0 {
		if err := json.Unmarshal(start.GetState(), &c.state); err != nil {
			return nil, fmt.Errorf("read the plan's state: %w", err)
		}
	}
	return c, nil
}

// Handle turns one input into outputs.
func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_START:
		// The CLI says nothing by itself; its answer says that it is there.
		return c.command("get_state", nil, out)
	case pb.InputKind_INPUT_STDOUT:
		doc, err := jsonl.ParseObject(in.Data)
		if err != nil {
			out.Log("stdout", in.Data)
			return nil
		}
		defer doc.Release()
		known, err := c.line(doc.Value, out)
		if !known {
			out.Log("stdout", in.Data)
		}
		return err
	case pb.InputKind_INPUT_PROMPT:
		c.Enqueue(in.Id, in.Data)
		return c.next(out)
	case pb.InputKind_INPUT_INTERRUPT:
		if c.Busy() {
			return c.command("abort", nil, out)
		}
	default:
		c.Base.Handle(in, out)
	}
	return nil
}

// command writes a command of ours.
func (c *conversation) command(kind string, fields map[string]any, out *sdk.Out) error {
	c.commands++
	line := map[string]any{"id": "amux-" + strconv.Itoa(c.commands), "type": kind}
	for name, value := range fields {
		line[name] = value
	}
	data, err := json.Marshal(line)
	if err == nil {
		out.Write(append(data, '\n'))
	}
	return err
}

// next writes the prompt that is next, if the CLI is ready for it.
func (c *conversation) next(out *sdk.Out) error {
	p, ok := c.Dequeue()
	if !ok {
		return nil
	}
	fields := map[string]any{"message": strings.Join(c.state.Files, "") + string(p.Text)}
	if len(c.state.Images) > 0 {
		fields["images"] = c.state.Images
	}
	c.state = planState{}
	c.steps, c.failure, c.cost = 0, nil, nil
	return c.command("prompt", fields, out)
}

// ignored are the lines that are known and give no event, with the reason.
var ignored = map[string]string{
	"agent_end":                     "agent_settled follows when nothing more will come",
	"entry_appended":                "the session's own book-keeping",
	"queue_update":                  "amux keeps the prompts that wait",
	"thinking_level_changed":        "set by amux",
	"model_changed":                 "set by amux",
	"compaction_start":              "compaction_end tells it",
	"auto_retry_end":                "what follows tells it",
	"summarization_retry_scheduled": "a request on the side",
	"extension_ui_request":          "what extensions would show on a screen",
}

func (c *conversation) line(line jsonl.Value, out *sdk.Out) (known bool, err error) {
	switch kind := string(line.Bytes("type")); kind {
	case "response":
		return true, c.response(line, out)
	case "session":
		// The head of the mode json, in which there is no get_state.
		c.begun(line.Text("id"), "", out)
		if parent := line.Text("parentSession"); parent != "" && c.forkedFrom == "" {
			out.Event(pluginapi.SessionFork{SessionID: c.Session, ForkedFrom: parent})
		}
	case "agent_start":
		c.TurnStart(out)
	case "turn_start":
		c.endStep(out)
		c.inStep = true
		out.Event(pluginapi.StepStart{TurnIndex: c.Turns(), StepIndex: c.steps, StepType: "model_request"})
	case "turn_end":
		c.endStep(out)
	case "message_start":
		// The system prompt, the user's own, results of tools: told elsewhere.
	case "message_update":
		return c.update(line.Get("assistantMessageEvent"), out), nil
	case "message_end":
		if message := line.Get("message"); message.Text("role") == "assistant" {
			c.messageEnd(message, out)
		}
	case "tool_execution_start":
		if t := c.StartTool(line.Text("toolCallId"), line.Text("toolName"), "", out); t != nil {
			c.ready(t, line.Get("args"), out)
		}
	case "tool_execution_update":
		if t := c.Tool(line.Text("toolCallId")); t != nil {
			c.Printed(t, contentText(line.Get("partialResult", "content")), out)
		}
	case "tool_execution_end":
		c.toolEnd(line, out)
	case "auto_retry_start":
		c.retry(line, out)
	case "compaction_end":
		out.Event(pluginapi.ContextCompacted{Summary: line.Text("result", "summary")})
	case "session_info_changed":
		if title := line.Text("name"); title != "" {
			out.Event(pluginapi.SessionTitle{Title: title})
		}
	case "agent_settled":
		return true, c.settled(line.Bool("aborted"), out)
	default:
		_, known := ignored[kind]
		return known, nil
	}
	return true, nil
}

func (c *conversation) begun(id, model string, out *sdk.Out) {
	if c.Session != "" {
		return
	}
	c.Session = id
	out.Event(pluginapi.SessionStart{SessionID: id, Model: model, Resumed: c.resumed, ForkedFrom: c.forkedFrom, Version: c.version})
	switch {
	case c.forkedFrom != "":
		out.Event(pluginapi.SessionFork{SessionID: id, ForkedFrom: c.forkedFrom})
	case c.resumed:
		out.Event(pluginapi.SessionResume{SessionID: id})
	}
}

func (c *conversation) endStep(out *sdk.Out) {
	if c.inStep {
		c.inStep = false
		out.Event(pluginapi.StepEnd{TurnIndex: c.Turns(), StepIndex: c.steps})
		c.steps++
	}
}

// response answers a command of ours.
func (c *conversation) response(line jsonl.Value, out *sdk.Out) error {
	command, ok := line.Text("command"), line.Bool("success")
	switch {
	case command == "get_state" && ok && c.Session == "":
		data := line.Get("data")
		c.begun(data.Text("sessionId"), data.Text("model", "id"), out)
		c.Ready()
		return c.next(out)
	case ok:
	case command == "prompt" && c.Busy() && !c.InTurn():
		// It was not taken: no turn will follow.
		c.TurnStart(out)
		message := line.Text("error")
		c.failure = failure.Of(failure.Status(message), message)
		return c.settled(false, out)
	default:
		out.Event(pluginapi.ErrorEvent{Code: pluginapi.CodeAgentFailed, Message: command + ": " + line.Text("error"), Recoverable: true})
	}
	return nil
}

// update is a piece of what the model says.
func (c *conversation) update(event jsonl.Value, out *sdk.Out) bool {
	main := c.Main()
	switch string(event.Bytes("type")) {
	case "text_start", "thinking_start":
		main.End(out)
	case "text_delta":
		main.Text("", event.Text("delta"), out)
	case "thinking_delta":
		main.Think(event.Text("delta"), out)
	case "text_end", "thinking_end":
		main.End(out)
	case "toolcall_start":
		// Some providers tell the id only at the end.
		if id := event.Text("id"); id != "" {
			c.StartTool(id, event.Text("toolName"), "", out)
		}
	case "toolcall_delta":
		if t := c.Newest(); t != nil && !t.Ready() {
			t.Input(event.Text("delta"), out)
		}
	case "toolcall_end":
		call := event.Get("toolCall")
		if t := c.StartTool(call.Text("id"), call.Text("name"), "", out); t != nil {
			c.ready(t, call.Get("arguments"), out)
		}
	case "start", "done", "error":
		// The message as a whole, which message_end tells.
	default:
		return false
	}
	return true
}

// messageEnd has the message whole, and what it took.
func (c *conversation) messageEnd(message jsonl.Value, out *sdk.Out) {
	c.Main().End(out)
	usage := message.Get("usage")
	if total, _ := usage.Int("totalTokens"); total > 0 {
		out.Event(pluginapi.TokenUsage{
			InputTokens: usage.IntPtr("input"), OutputTokens: usage.IntPtr("output"), ThinkingTokens: usage.IntPtr("reasoning"),
			CacheReadTokens: usage.IntPtr("cacheRead"), CacheWriteTokens: usage.IntPtr("cacheWrite"), Model: message.Text("model"),
		})
	}
	if usd, ok := usage.Float("cost", "total"); ok && usd > 0 {
		out.Event(pluginapi.Cost{Cost: pluginapi.Money{USD: usd}})
		if c.cost == nil {
			c.cost = &pluginapi.Money{}
		}
		c.cost.USD += usd
	}
	c.failure = nil
	if message.Text("stopReason") == "error" {
		text := message.Text("errorMessage")
		c.failure = failure.Of(failure.Status(text), text)
	}
}

func (c *conversation) retry(line jsonl.Value, out *sdk.Out) {
	attempt, _ := line.Int("attempt")
	text := line.Text("errorMessage")
	event := pluginapi.Retry{Attempt: int(attempt), Reason: text, DelayMS: line.IntPtr("delayMs")}
	if most, ok := line.Int("maxAttempts"); ok {
		n := int(most)
		event.MaxAttempts = &n
	}
	out.Event(event)
	if failure.Status(text) == 429 {
		out.Event(pluginapi.RateLimited{RetryAfterMS: event.DelayMS})
	}
}

// settled ends the turn: nothing more will come by itself.
func (c *conversation) settled(aborted bool, out *sdk.Out) error {
	if !c.InTurn() {
		return nil
	}
	outcome := c.failure
	if aborted {
		outcome = turn.Aborted()
	}
	c.endStep(out)
	c.TurnEnd(outcome, c.cost, out)
	c.Done()
	if err := c.next(out); err != nil {
		return err
	}
	c.Settle(out)
	return nil
}
