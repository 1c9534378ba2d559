package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/plugins/internal/streamjson"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// conversation is the codec of one process of the CLI.
type conversation struct {
	turn.Base
	control streamjson.Control
	model   decoder
	spent   spending
	work    work

	// From the start.
	salt       string
	blocks     []json.RawMessage // attachments, for the first prompt
	resumed    bool
	forks      bool
	forkedFrom string

	// What the CLI has said.
	sessions   int
	mode       string
	apiError   string                      // the kind of a failed request, from its synthetic message
	retryDelay *int64                      // how long to wait, if the provider said it when limiting
	compacted  *pluginapi.ContextCompacted // waits for its summary
}

// Converse begins the conversation with one process.
func (adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	opts := start.GetOptions()
	c := &conversation{
		Base:    turn.Base{Agent: agentID, Guidance: authGuidance, Refusals: refusals, Start: start, Tested: testedVersion},
		resumed: opts.GetResume() != "" || opts.GetContinueLast(),
		forks:   opts.GetFork(),
	}
	c.Effort = opts.GetEffort()
	c.model.w, c.model.spent = &c.Writer, &c.spent
	c.control = streamjson.Control{Base: &c.Base, Question: question}
	c.spent.resumed = c.resumed
	if c.forks {
		c.forkedFrom = opts.GetResume()
	}
	var state planState
	if len(start.GetState()) > 0 {
		if err := json.Unmarshal(start.GetState(), &state); err != nil {
			return nil, fmt.Errorf("read the plan's state: %w", err)
		}
	}
	c.salt = state.Salt + "/" + strconv.FormatUint(uint64(start.GetAttempt()), 10)
	c.blocks = state.Blocks
	return c, nil
}

// Handle turns one input into outputs.
func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_STDOUT:
		c.stdout(in.Data, out)
	case pb.InputKind_INPUT_PROMPT:
		c.prompt(in.Id, in.Data, out)
	case pb.InputKind_INPUT_END:
		c.CloseStdin(out)
	case pb.InputKind_INPUT_TIMER:
		if in.Id == settleTimer && c.work.settled() {
			c.settle(out)
		}
	case pb.InputKind_INPUT_EXIT:
		c.flushCompacted("", out)
		c.Base.Handle(in, out)
	default:
		if !c.control.Handle(in, out) {
			c.Base.Handle(in, out)
		}
	}
	return nil
}

// stdout handles a line of the CLI.
func (c *conversation) stdout(line []byte, out *sdk.Out) {
	if c.compacted == nil && len(line) > 0 && c.model.fastDelta(line, out) {
		return
	}
	turn.ReadLine(line, out, c.line)
}

// line handles a parsed line; false means that something in it is not known.
func (c *conversation) line(line jsonl.Value, out *sdk.Out) bool {
	kind := string(line.Bytes("type"))
	if c.compacted != nil {
		switch kind {
		case "stream_event", "assistant", "system", "result":
			c.flushCompacted("", out)
		}
	}
	switch kind {
	case "stream_event":
		known, whole := c.model.streamEvent(line, out)
		if whole {
			c.StepEnd(out)
		}
		return known
	case "assistant":
		return c.assistantLine(line, out)
	case "user":
		return c.user(line, out)
	case "system":
		return c.system(line, out)
	case "result":
		c.result(line, out)
	case "control_request":
		c.control.Asked(line, out)
	case "control_response":
		_, known := c.control.Response(line, out)
		return known
	case "control_cancel_request":
		c.control.Cancelled(line, out)
	case "command_lifecycle":
		if c.work.lifecycle(line) {
			c.settle(out)
		}
	case "rate_limit_event":
		// Sent to subscribers. The time of the end is a clock's, which is not known here.
		if line.Text("rate_limit_info", "status") == "rejected" {
			out.Event(pluginapi.RateLimited{})
		}
	default:
		_, known := ignored[kind]
		return known
	}
	return true
}

// assistantLine is a message of the model, or one that the CLI has made up.
func (c *conversation) assistantLine(line jsonl.Value, out *sdk.Out) bool {
	if line.Text("message", "model") == "<synthetic>" {
		switch {
		case line.IsString("error") || line.Bool("is_api_error_message"):
			// The result says it again, with more.
			c.apiError = line.Text("error")
			return true
		case streamjson.Text(line.Get("message", "content")) == "No response requested.":
			return true // what the CLI puts where a turn was cut off
		}
	}
	return c.model.assistant(line, out)
}

const interruptedText = "[Request interrupted by user"

// user is a line in the user's place: results of tools, and what the CLI itself
// puts there.
func (c *conversation) user(line jsonl.Value, out *sdk.Out) bool {
	content := line.Get("message", "content")
	parent := line.Text("parent_tool_use_id")
	if c.compacted != nil {
		summary := ""
		if !line.Bool("isReplay") {
			summary = streamjson.Text(content)
		}
		c.flushCompacted(summary, out)
		if summary != "" {
			return true
		}
	}
	known := true
	if !content.IsArray() {
		c.userText(line, parent, content.Text(), out)
		return true
	}
	extra := line.Get("tool_use_result")
	results := 0
	for _, block := range content.Items() {
		if string(block.Bytes("type")) == "tool_result" {
			results++
		}
	}
	for _, block := range content.Items() {
		switch string(block.Bytes("type")) {
		case "tool_result":
			account := extra
			if results > 1 {
				account = jsonl.Value{} // which of them it is about is not said
			}
			c.WithdrawTool(block.Text("tool_use_id"), out)
			c.model.toolResult(block, account, parent, out)
		case "text":
			c.userText(line, parent, block.Text("text"), out)
		case "image", "document":
			// Only in messages that somebody wrote; their text stands for them.
		default:
			known = false
		}
	}
	return known
}

// userText is text in the user's place.
func (c *conversation) userText(line jsonl.Value, parent, text string, out *sdk.Out) {
	switch {
	case line.Bool("isReplay"):
		// Our own prompt come back, or what a slash command printed.
	case parent != "":
		// The prompt of a sub-agent, which subagent_spawn told.
	case strings.HasPrefix(text, interruptedText):
		c.Interrupt(out)
	case line.Bool("isSynthetic"), line.Bool("isMeta"):
		// What the CLI tells the model.
	case slices.Contains(c.work.pending, line.Text("uuid")):
	default:
		out.Event(pluginapi.UserMessage{ID: line.Text("uuid"), Text: text})
	}
}

// prompt writes a prompt of the user.
func (c *conversation) prompt(id string, text []byte, out *sdk.Out) {
	c.Prompted()
	if id == "" {
		id = strconv.Itoa(c.Prompts)
	}
	uuid := sdk.UUID(c.salt, id)
	c.work.pending = append(c.work.pending, uuid)
	out.Write(userLine(uuid, c.blocks, text))
	c.blocks = nil
}

// turnStart is at system/init, which the CLI prints for each turn.
func (c *conversation) turnStart(out *sdk.Out) {
	c.work.turnStart(out)
	c.NextTurn(out)
}

// settle says that the CLI is idle as soon as nothing will make it speak.
func (c *conversation) settle(out *sdk.Out) {
	if !c.InTurn() && c.work.done(out) {
		c.Idle(out)
	}
}

// refusals are what the CLI prints when it refuses to start.
var refusals = []turn.Refusal{
	{Text: "No conversation found", Code: pluginapi.CodeSessionNotFound},
	{Text: "--resume requires a valid session", Code: pluginapi.CodeSessionNotFound},
	{Text: "is already in use", Code: pluginapi.CodeValidation, Hint: "the session id is taken: resume the session, or let amux choose an id"},
	{Text: "Invalid MCP configuration", Code: pluginapi.CodeConfig},
	{Text: "Error parsing streaming input line", Code: pluginapi.CodeInternal},
	{Text: "Please run /login", Code: pluginapi.CodeAuth},
}
