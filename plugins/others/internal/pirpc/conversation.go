// Package pirpc is a codec for the RPC mode of Pi, which omp has in its own words:
// commands and their answers as JSON lines on stdio, and every event of the agent
// beside them. conversation.go reads the lines, tool.go knows the tools, sessions.go
// reads what the agents leave on disk. What differs between the two is in Dialect.
package pirpc

import (
	"encoding/json"
	"fmt"
	"math"
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

// Dialect is how an agent speaks the protocol. The zero value of each field but
// Agent is Pi's way.
type Dialect struct {
	// Agent is its name in messages, Guidance how to sign in, Refusals its
	// complaints on stderr.
	Agent    string
	Guidance []string
	Refusals []turn.Refusal
	// Tested is the version that the adapter was tested with.
	Tested string
	// Ignored are lines that are known and give no event, with the reason, besides
	// Pi's.
	Ignored map[string]string
	// AgentEnds: the turn ends with agent_end; agent_settled does not follow.
	AgentEnds bool
	// Detail is what a tool is for, where it is not what Pi's tool of that name is;
	// an empty one: it is the same.
	Detail func(name string, input jsonl.Value) turn.Detail
	// Complete adds to the result of a tool what only this agent tells; text is all
	// that the tool answered.
	Complete func(t *turn.Tool, result jsonl.Value, r *turn.Result)
	// Output takes from what a command has printed so far what is the agent's own.
	Output func(text string) string
}

// conversation is the codec of one process of the CLI.
type conversation struct {
	turn.Base
	dialect    Dialect
	resumed    bool
	forkedFrom string
	state      state
	version    string

	commands int
	provider string             // of the model that it began with
	models   []string           // asked for before the CLI was there
	setting  int                // models that it was asked for and has not answered yet
	failure  *pluginapi.Outcome // of the last request of the model
	cost     *pluginapi.Money   // of this turn
	images   int                // of the prompt that was written
}

// Converse begins the conversation with one process, for a plan that was made with
// Attach.
func Converse(dialect Dialect, start *pluginapi.Start) (sdk.Conversation, error) {
	o := start.GetOptions()
	c := &conversation{
		Base:    turn.Base{Agent: dialect.Agent, Guidance: dialect.Guidance, Refusals: dialect.Refusals, Linger: 10 * time.Second, Start: start, Tested: dialect.Tested},
		dialect: dialect,
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
	case pb.InputKind_INPUT_SET_MODEL:
		c.models = append(c.models, string(in.Data))
		return c.setModels(out)
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

// setModels writes the models that were asked for. One without a provider is of the
// provider that the CLI started with.
func (c *conversation) setModels(out *sdk.Out) error {
	if c.Session == "" {
		return nil
	}
	for _, name := range c.models {
		provider, id, named := strings.Cut(name, "/")
		if !named {
			provider, id = c.provider, name
		}
		if err := c.command("set_model", map[string]any{"provider": provider, "modelId": id}, out); err != nil {
			return err
		}
		c.setting++
	}
	c.models = nil
	return nil
}

// next writes the prompt that is next, if the CLI is ready for it: it takes its
// commands up at once, so that a prompt would overtake the model that it is for.
func (c *conversation) next(out *sdk.Out) error {
	if c.setting > 0 {
		return nil
	}
	p, ok := c.Dequeue()
	if !ok {
		return nil
	}
	fields := map[string]any{"message": strings.Join(c.state.Files, "") + string(p.Text)}
	if c.images = len(c.state.Images); c.images > 0 {
		fields["images"] = c.state.Images
	}
	c.state = state{}
	c.failure, c.cost = nil, nil
	return c.command("prompt", fields, out)
}

// ignored are the lines that are known and give no event, with the reason.
var ignored = map[string]string{
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
		c.StepStart(out)
	case "turn_end":
		c.StepEnd(out)
	case "message_start":
		// The system prompt, the user's own, results of tools: told elsewhere. But an
		// image that it cannot decode it replaces by a remark to the model.
		if message := line.Get("message"); message.Text("role") == "user" && c.images > 0 {
			text := contentText(message.Get("content"))
			for n := min(strings.Count(text, imageOmitted), c.images); n > 0; n-- {
				out.Event(pluginapi.ErrorEvent{
					Code: pluginapi.CodeCapability, Recoverable: true, Message: c.dialect.Agent + " left out an image, which it cannot decode or make small enough",
					Hint: "save the image again as PNG or JPEG",
				})
			}
			c.images = 0
		}
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
			c.Printed(t, c.dialect.output(contentText(line.Get("partialResult", "content"))), out)
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
	case "notice":
		level := "info"
		if line.Text("level") == "warning" || line.Text("level") == "error" {
			level = "warn"
		}
		out.Event(pluginapi.Debug{Level: level, Message: line.Text("message")})
	case "auto_compaction_end":
		if !line.Bool("skipped") && !line.Bool("aborted") {
			out.Event(pluginapi.ContextCompacted{Summary: line.Text("result", "summary")})
		}
	case "agent_end":
		if c.dialect.AgentEnds && line.Bool("isTerminal") {
			return true, c.settled(false, out)
		}
	case "agent_settled":
		return true, c.settled(line.Bool("aborted"), out)
	default:
		_, known := ignored[kind]
		_, own := c.dialect.Ignored[kind]
		return known || own, nil
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

// imageOmitted begins the remark in an image's place.
const imageOmitted = "[Image omitted: "

// response answers a command of ours.
func (c *conversation) response(line jsonl.Value, out *sdk.Out) error {
	command, ok := line.Text("command"), line.Bool("success")
	switch {
	case command == "get_state" && ok && c.Session == "":
		data := line.Get("data")
		c.provider = data.Text("model", "provider")
		c.begun(data.Text("sessionId"), data.Text("model", "id"), out)
		c.Ready()
		if err := c.setModels(out); err != nil {
			return err
		}
		return c.next(out)
	case command == "set_model" && c.setting > 0:
		if c.setting--; !ok {
			out.Event(pluginapi.ErrorEvent{Code: pluginapi.CodeAgentFailed, Message: command + ": " + line.Text("error"), Recoverable: true})
		}
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
		// message_end tells whether the message holds, or what comes next.
	case "toolcall_start":
		// Some tell the id in the message so far, and some providers only at the end.
		id, name := event.Text("id"), event.Text("toolName")
		if id == "" {
			n, _ := event.Int("contentIndex")
			call := event.Get("partial", "content", strconv.FormatInt(n, 10))
			id, name = call.Text("id"), call.Text("name")
		}
		if id != "" {
			c.StartTool(id, name, "", out)
		}
	case "toolcall_delta":
		if t := c.Newest(""); t != nil && !t.Ready() {
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
	if reason := message.Text("stopReason"); reason == "error" || reason == "aborted" {
		c.Main().Abort(out)
	} else {
		c.Main().End(out)
	}
	usage := message.Get("usage")
	if total, _ := usage.Int("totalTokens"); total > 0 {
		out.Event(tokens(message))
	}
	if usd, ok := usage.Float("cost", "total"); ok && usd > 0 {
		out.Event(pluginapi.Cost{Cost: pluginapi.Money{USD: usd}})
		if c.cost == nil {
			c.cost = &pluginapi.Money{}
		}
		c.cost.USD += usd
	}
	c.failure = nil
	switch message.Text("stopReason") {
	case "error":
		text := message.Text("errorMessage")
		status, ok := message.Int("errorStatus")
		if !ok {
			status = int64(failure.Status(text))
		}
		c.failure = failure.Of(int(status), text)
	case "aborted":
		c.failure = turn.Aborted()
	}
}

// tokens are those of a message.
func tokens(message jsonl.Value) pluginapi.TokenUsage {
	usage := message.Get("usage")
	u := pluginapi.TokenUsage{
		InputTokens: usage.IntPtr("input"), OutputTokens: usage.IntPtr("output"), ThinkingTokens: usage.IntPtr("reasoning"),
		CacheReadTokens: usage.IntPtr("cacheRead"), CacheWriteTokens: usage.IntPtr("cacheWrite"), Model: message.Text("model"),
	}
	if u.ThinkingTokens == nil {
		u.ThinkingTokens = usage.IntPtr("reasoningTokens")
	}
	return u
}

func (c *conversation) retry(line jsonl.Value, out *sdk.Out) {
	attempt, _ := line.Int("attempt")
	text := line.Text("errorMessage")
	event := pluginapi.Retry{Attempt: int(attempt), Reason: text}
	if delay, ok := line.Float("delayMs"); ok {
		ms := int64(math.Round(delay))
		event.DelayMS = &ms
	}
	if most, ok := line.Int("maxAttempts"); ok {
		n := int(most)
		event.MaxAttempts = &n
	}
	c.Main().Abandon(text, out)
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
	c.StepEnd(out)
	c.TurnEnd(outcome, c.cost, out)
	c.Done()
	if err := c.next(out); err != nil {
		return err
	}
	c.Settle(out)
	return nil
}
