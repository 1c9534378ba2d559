package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

const (

	// When background work ends, the CLI begins a turn of its own to tell the
	// model, a moment later. It is not idle in between.
	settleTimer = "settle"
	settleDelay = 2 * time.Second
)

// conversation is the codec of one process of the CLI.
type conversation struct {
	decoder

	// From the start.
	salt       string
	blocks     []json.RawMessage // attachments, for the first prompt
	resumed    bool
	forkedFrom string
	forks      bool

	// What the CLI has said.
	session      string // the session begun, as system/init names it
	sessions     int
	mode         string
	turnsStarted int
	turnsEnded   int
	results      int
	stepOpen     bool
	steps        int // of this turn
	interrupted  bool
	apiError     string                      // the kind of a failed request, from its synthetic message
	retryDelay   *int64                      // how long to wait, if the provider said it when limiting
	failed       bool                        // the last turn's outcome
	compacted    *pluginapi.ContextCompacted // waits for its summary

	// Money so far.
	costTotal *float64
	hasDeltas bool
	runCost   *pluginapi.Money

	// What keeps it from being idle.
	pending    []string // ids of prompts that no turn has finished
	lifecycles bool     // the CLI tells what becomes of prompts
	tasks      int      // in the background
	notified   bool     // background work has ended; a turn about it may come
	settling   bool
	idle       bool

	// What was written.
	prompts  int
	requests int
	asked    map[string]string // our control requests: id → subtype
	open     []*interaction
	ended    bool // stdin is closed
	stopped  bool // amux ends the process

	start  *pluginapi.Start
	stderr turn.Stderr
}

// Converse begins the conversation with one process.
func (adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	opts := start.GetOptions()
	c := &conversation{
		start:   start,
		resumed: opts.GetResume() != "" || opts.GetContinueLast(),
		forks:   opts.GetFork(),
		asked:   map[string]string{},
	}
	c.effort = opts.GetEffort()
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
	case pb.InputKind_INPUT_STDERR:
		out.Log("stderr", in.Data)
		c.stderr.Add(in.Data)
	case pb.InputKind_INPUT_PROMPT:
		c.prompt(in.Id, in.Data, out)
	case pb.InputKind_INPUT_APPROVE:
		c.approve(in.Id, in.Data, out)
	case pb.InputKind_INPUT_DENY:
		c.deny(in.Id, string(in.Data), out)
	case pb.InputKind_INPUT_ANSWER:
		c.answer(in.Id, in.Data, out)
	case pb.InputKind_INPUT_INTERRUPT:
		c.request("interrupt", "", "", out)
	case pb.InputKind_INPUT_SET_MODEL:
		c.request("set_model", "model", string(in.Data), out)
	case pb.InputKind_INPUT_END:
		if !c.ended {
			c.ended = true
			out.CloseStdin()
		}
	case pb.InputKind_INPUT_TIMER:
		if in.Id == settleTimer && c.settling {
			c.settling, c.notified = false, false
			c.settle(out)
		}
	case pb.InputKind_INPUT_STOP_REQUESTED, pb.InputKind_INPUT_TIMEOUT:
		c.stopped = true
	case pb.InputKind_INPUT_SPAWN_FAILED:
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeSpawn), Message: string(in.Data)})
	case pb.InputKind_INPUT_EXIT:
		c.exit(in.Exit, out)
	}
	return nil
}

// stdout handles a line of the CLI.
func (c *conversation) stdout(line []byte, out *sdk.Out) {
	if c.compacted == nil && len(line) > 0 && c.fastDelta(line, out) {
		return
	}
	doc, err := jsonl.ParseObject(line)
	if err != nil {
		out.Log("stdout", line)
		return
	}
	defer doc.Release()
	if !c.line(doc.Value, out) {
		out.Log("stdout", line)
	}
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
		if !c.streamEvent(line, out) {
			return false
		}
		if c.stepOpen && string(line.Bytes("event", "type")) == "message_stop" && line.Text("parent_tool_use_id") == "" {
			c.stepEnd(out)
		}
	case "assistant":
		return c.assistantLine(line, out)
	case "user":
		return c.user(line, out)
	case "system":
		return c.system(line, out)
	case "result":
		c.result(line, out)
	case "control_request":
		c.controlRequest(line, out)
	case "control_response":
		return c.controlResponse(line, out)
	case "control_cancel_request":
		c.withdraw(line.Text("request_id"), out)
	case "command_lifecycle":
		c.lifecycle(line, out)
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
		case contentText(line.Get("message", "content")) == "No response requested.":
			return true // what the CLI puts where a turn was cut off
		}
	}
	return c.assistant(line, out)
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
			summary = contentText(content)
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
			c.withdrawTool(block.Text("tool_use_id"), out)
			c.toolResult(block, account, parent, out)
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
		if !c.interrupted {
			c.interrupted = true
			out.Event(pluginapi.Interrupted{})
		}
	case line.Bool("isSynthetic"), line.Bool("isMeta"):
		// What the CLI tells the model.
	case slices.Contains(c.pending, line.Text("uuid")):
	default:
		out.Event(pluginapi.UserMessage{ID: line.Text("uuid"), Text: text})
	}
}

// prompt writes a prompt of the user.
func (c *conversation) prompt(id string, text []byte, out *sdk.Out) {
	c.prompts++
	if id == "" {
		id = strconv.Itoa(c.prompts)
	}
	uuid := sdk.UUID(c.salt, id)
	c.pending = append(c.pending, uuid)
	c.idle = false
	out.Write(userLine(uuid, c.blocks, text))
	c.blocks = nil
}

// lifecycle says what became of a prompt: queued, started, completed, cancelled.
// A prompt folded into a running turn is completed before the turn's result, the
// turn's own one after it.
func (c *conversation) lifecycle(line jsonl.Value, out *sdk.Out) {
	c.lifecycles = true
	switch line.Text("state") {
	case "queued", "started":
	default:
		c.promptDone(line.Text("command_uuid"))
		c.settle(out)
	}
}

func (c *conversation) promptDone(uuid string) {
	if i := slices.Index(c.pending, uuid); i >= 0 {
		c.pending = slices.Delete(c.pending, i, i+1)
	}
}

func (c *conversation) inTurn() bool { return c.turnsStarted > c.turnsEnded }

// turnStart is at system/init, which the CLI prints for each turn.
func (c *conversation) turnStart(out *sdk.Out) {
	if c.settling {
		out.SetTimer(settleTimer, 0)
	}
	c.settling, c.notified, c.idle = false, false, false
	c.steps = 0
	out.TurnStarted()
	out.Event(pluginapi.TurnStart{TurnIndex: c.turnsStarted})
	c.turnsStarted++
}

// settle says that the CLI is idle as soon as nothing will make it speak: no
// turn, no prompt it still has to take, no background work, no turn about work
// that has just ended.
func (c *conversation) settle(out *sdk.Out) {
	if c.inTurn() || c.idle || len(c.pending) > 0 || c.tasks > 0 || c.results == 0 {
		return
	}
	if c.notified {
		if !c.settling {
			c.settling = true
			out.SetTimer(settleTimer, settleDelay)
		}
		return
	}
	c.idle = true
	out.Idle()
}

// turnIndex is that of the turn that goes on.
func (c *conversation) turnIndex() int { return max(c.turnsStarted-1, 0) }

func (c *conversation) stepStart(out *sdk.Out) {
	if c.stepOpen {
		c.stepEnd(out)
	}
	c.stepOpen = true
	out.Event(pluginapi.StepStart{TurnIndex: c.turnIndex(), StepIndex: c.steps, StepType: "model_request"})
}

func (c *conversation) stepEnd(out *sdk.Out) {
	c.stepOpen = false
	out.Event(pluginapi.StepEnd{TurnIndex: c.turnIndex(), StepIndex: c.steps})
	c.steps++
}

// exit is the end of the process. Its exit code follows the last result and says
// nothing that the results did not.
func (c *conversation) exit(exit *pluginapi.Exit, out *sdk.Out) {
	asked := exit.GetAsked() || c.stopped
	cutOff := c.inTurn() || c.results == 0 && c.prompts > 0
	died := !asked && !c.ended && (exit.GetSignal() != "" || exit.GetCode() != 0 && !c.failed)
	startFailed := c.results == 0 && exit.GetCode() != 0

	c.flushCompacted("", out)
	c.closeStreams(out)
	c.withdrawAll(true, out)
	c.closeTools(true, "the agent ended before the tool did", out)
	if c.stepOpen {
		c.stepEnd(out)
	}
	switch {
	case (cutOff || startFailed) && asked:
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeAborted), Message: "claude was stopped"})
	case cutOff || died || startFailed:
		d := turn.Death{
			Agent: agentID, Exit: exit, Stderr: &c.stderr, Began: c.results > 0 || c.session != "",
			Start: c.start, Tested: testedVersion,
		}
		if startFailed {
			d.Refusals = refusals
		}
		d.Tell(authGuidance, out)
	case c.results == 0:
		out.Outcome(&pluginapi.Outcome{})
	}
	if c.session != "" {
		out.Event(pluginapi.SessionEnd{SessionID: c.session, TurnCount: c.turnsEnded, Cost: c.runCost})
	}
}

// refusals are complaints by which the CLI refuses to start.
var refusals = []turn.Refusal{
	{Text: "No conversation found", Code: pluginapi.CodeSessionNotFound},
	{Text: "--resume requires a valid session", Code: pluginapi.CodeSessionNotFound},
	{Text: "is already in use", Code: pluginapi.CodeValidation, Hint: "the session id is taken: resume the session, or let amux choose an id"},
	{Text: "Invalid MCP configuration", Code: pluginapi.CodeConfig},
	{Text: "Error parsing streaming input line", Code: pluginapi.CodeInternal},
	{Text: "Please run /login", Code: pluginapi.CodeAuth},
}
