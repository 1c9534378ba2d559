package remote

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	codes "github.com/amux-dev/amux/pluginapi/code"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// Converse begins the conversation with one process.
func (Adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	o := start.GetOptions()
	return &conversation{onePrompt: !o.GetConversation(), granted: granted(o), messages: map[string]string{}}, nil
}

type conversation struct {
	onePrompt bool // the other amux ends its run by itself
	granted   bool // it approves what is asked by itself

	// open is what the other side has begun, to be closed here if it dies.
	open      turn.Writer
	messages  map[string]string // id of the last message, by parent
	questions []question
	prompts   []string // written, and not come back as user_message

	began      bool               // events of a run came
	retryAfter uint64             // as last told
	end        *pluginapi.Outcome // what the other run ended with, or why there is none

	stopped    bool
	complaint  string // of the other amux, on stderr
	lastStderr string
}

// question is one that waits for its answer.
type question struct {
	id       string
	parent   string
	approval bool
}

// command is a line to the other amux, besides prompts.
type command struct {
	Type          string          `json:"type"`
	InteractionID string          `json:"interaction_id,omitempty"`
	UpdatedInput  json.RawMessage `json:"updated_input,omitempty"`
	Reason        string          `json:"reason,omitempty"`
	Text          string          `json:"text,omitempty"`
	Model         string          `json:"model,omitempty"`
}

func write(out *sdk.Out, c command) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	out.Write(append(line, '\n'))
	return nil
}

// Handle implements sdk.Conversation.
func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_STDOUT:
		c.line(in.Data, out)
	case pb.InputKind_INPUT_STDERR:
		c.stderr(in.Data, out)
	case pb.InputKind_INPUT_PROMPT:
		c.prompts = append(c.prompts, string(in.Data))
		line := pluginapi.AppendString([]byte(`{"type":"prompt","text":`), string(in.Data))
		out.Write(append(line, '}', '\n'))
	case pb.InputKind_INPUT_APPROVE:
		var given struct {
			UpdatedInput json.RawMessage `json:"updated_input"`
		}
		if len(in.Data) > 0 && json.Unmarshal(in.Data, &given) != nil {
			given.UpdatedInput = nil
		}
		return c.answer(command{Type: "approve", InteractionID: in.Id, UpdatedInput: given.UpdatedInput}, out)
	case pb.InputKind_INPUT_DENY:
		return c.answer(command{Type: "deny", InteractionID: in.Id, Reason: string(in.Data)}, out)
	case pb.InputKind_INPUT_ANSWER:
		return c.answer(command{Type: "answer", InteractionID: in.Id, Text: string(in.Data)}, out)
	case pb.InputKind_INPUT_INTERRUPT:
		return write(out, command{Type: "interrupt"})
	case pb.InputKind_INPUT_SET_MODEL:
		return write(out, command{Type: "set_model", Model: string(in.Data)})
	case pb.InputKind_INPUT_END:
		if !c.onePrompt {
			return write(out, command{Type: "end"})
		}
	case pb.InputKind_INPUT_STOP_REQUESTED, pb.InputKind_INPUT_TIMEOUT:
		c.stopped = true
	case pb.InputKind_INPUT_SPAWN_FAILED:
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeSpawn), Message: string(in.Data)})
	case pb.InputKind_INPUT_EXIT:
		c.exit(in.GetExit(), out)
	}
	return nil
}

// answer carries an answer in, if the other amux does not give its own.
func (c *conversation) answer(line command, out *sdk.Out) error {
	i := slices.IndexFunc(c.questions, func(q question) bool { return q.id == line.InteractionID })
	switch {
	case i >= 0 && !(c.granted && c.questions[i].approval):
		return write(out, line)
	case !c.granted:
		out.Event(pluginapi.Debug{Level: "warn", Message: agentID + " asks no question " + strconv.Quote(line.InteractionID) + " any more"})
	}
	return nil
}

func (c *conversation) stderr(line []byte, out *sdk.Out) {
	out.Log("stderr", line)
	text := strings.ToValidUTF8(string(line[:min(len(line), 4<<10)]), "\ufffd")
	c.lastStderr = text
	if said, ok := strings.CutPrefix(text, "amux: error: "); ok {
		c.complaint = said
	}
}

// known are the types of events that go through.
var known = func() map[pluginapi.Type]bool {
	types := map[pluginapi.Type]bool{}
	for _, t := range pluginapi.Types() {
		types[t] = true
	}
	return types
}()

// line reads a line of the other amux.
func (c *conversation) line(line []byte, out *sdk.Out) {
	doc, err := jsonl.ParseObject(line)
	if err != nil {
		out.Log("stdout", line)
		return
	}
	defer doc.Release()
	t := pluginapi.Type(doc.Text("type"))
	switch {
	case t == "error" && !doc.Exists("run_id") && !c.began:
		c.refusal(doc.Value, out)
	case !doc.IsString("run_id") || !doc.Exists("seq"):
		out.Event(pluginapi.Unknown{Raw: doc.Raw()})
	case pluginapi.HostOnly(t):
		// They tell of the run there; this one has its own.
		c.began = true
		if t == "run_end" {
			c.runEnd(doc.Value, out)
		}
	case t == "user_message" && c.ours(doc.Value):
	default:
		c.began = true
		event, ok := carried(doc.Value)
		if !ok || !known[t] {
			// One that a newer amux has.
			out.Event(pluginapi.Unknown{Raw: doc.Raw()})
			return
		}
		if t == "turn_start" {
			out.TurnStarted()
		}
		out.RawEvent(t, event)
		c.follow(t, doc.Value)
		if t == "turn_end" && len(c.questions) == 0 {
			out.Idle()
		}
	}
}

// carried is the event with what the host there has written under origin. It is false
// for an object whose keys are not ours.
func carried(line jsonl.Value) ([]byte, bool) {
	event, origin := []byte{'{'}, []byte(`"origin":{`)
	add := func(to []byte, key string, value jsonl.Value) []byte {
		if last := to[len(to)-1]; last != '{' {
			to = append(to, ',')
		}
		to = append(pluginapi.AppendString(to, key), ':')
		return value.AppendRaw(to)
	}
	for key, value := range line.Fields() {
		switch key {
		case "type":
		case "run_id", "seq", "time", "agent", "origin":
			origin = add(origin, key, value)
		default:
			if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
				return nil, false
			}
			event = add(event, key, value)
		}
	}
	if len(event) > 1 {
		event = append(event, ',')
	}
	return append(append(event, origin...), '}', '}'), true
}

// ours reports whether it is a prompt of this run, which has its own user_message.
func (c *conversation) ours(message jsonl.Value) bool {
	if message.Exists("parent_id") {
		return false
	}
	i := slices.Index(c.prompts, message.Text("text"))
	if i < 0 {
		return false
	}
	c.prompts = slices.Delete(c.prompts, i, i+1)
	return true
}

// mute takes the events of what is told already.
type mute struct{}

func (mute) Event(pluginapi.Payload) {}

// follow keeps account of what is open.
func (c *conversation) follow(t pluginapi.Type, e jsonl.Value) {
	parent := e.Text("parent_id")
	tool := func() *turn.Tool { return c.open.Tool(e.Text("tool_call_id")) }
	kind := func(d turn.Detail) {
		if open := tool(); open != nil {
			open.Detail = d
		}
	}
	switch t {
	case "message_start":
		c.messages[parent] = e.Text("message_id")
		c.open.Stream(parent).Text(c.messages[parent], "", mute{})
	case "text_delta":
		c.open.Stream(parent).Text(c.messages[parent], e.Text("delta"), mute{})
	case "thinking_start", "thinking_delta":
		c.open.Stream(parent).Think(e.Text("delta"), mute{})
	case "message_stop", "thinking_stop":
		c.open.Stream(parent).End(mute{})
	case "tool_call_start":
		c.open.StartTool(e.Text("tool_call_id"), e.Text("tool_name"), parent, mute{})
	case "shell_start":
		kind(turn.Detail{Kind: turn.Shell})
	case "mcp_tool_call_start":
		kind(turn.Detail{Kind: turn.MCP, Server: e.Text("server"), Tool: e.Text("tool_name")})
	case "shell_exit", "mcp_tool_result", "mcp_tool_error":
		kind(turn.Detail{})
	case "tool_result", "tool_error":
		if open := tool(); open != nil {
			c.open.EndTool(open, turn.Result{}, mute{})
		}
	case "approval_request", "input_required":
		c.questions = append(c.questions, question{e.Text("interaction_id"), parent, t == "approval_request"})
	case "approval_granted", "approval_denied", "input_answered":
		id := e.Text("interaction_id")
		c.questions = slices.DeleteFunc(c.questions, func(q question) bool { return q.id == id })
	case "rate_limited", "rate_limit_error":
		if ms, ok := e.Int("retry_after_ms"); ok && ms > 0 {
			c.retryAfter = uint64(ms)
		}
	}
}

// runEnd takes what the other run has ended with.
func (c *conversation) runEnd(e jsonl.Value, out *sdk.Out) {
	c.end = outcome(e.Text("code"), e.Text("message"))
	c.end.Hint = e.Text("hint")
	if c.end.Code == string(pluginapi.CodeRateLimited) {
		c.end.RetryAfterMs = c.retryAfter
	}
	out.Outcome(c.end)
}

// refusal takes why the other amux has started nothing.
func (c *conversation) refusal(e jsonl.Value, out *sdk.Out) {
	c.end = outcome(e.Text("code"), e.Text("message"))
	if c.end.Code == "" {
		c.end.Code = string(pluginapi.CodeAgentFailed)
	}
	c.fail(c.end, e.Text("hint"), out)
}

// fail emits an outcome that the other side has sent no event for.
func (c *conversation) fail(o *pluginapi.Outcome, hint string, out *sdk.Out) {
	o.Hint = hint
	out.Event(failure.Event(o, nil))
	out.Outcome(o)
}

// outcome keeps the code, if this amux has it.
func outcome(code, message string) *pluginapi.Outcome {
	o := &pluginapi.Outcome{Code: code, Message: message}
	switch pluginapi.Code(code) {
	case pluginapi.CodeRateLimited, pluginapi.CodeOverloaded, pluginapi.CodeNetwork, pluginapi.CodeAgentCrash:
		o.Retryable = true
	}
	if code != "" && !pluginapi.Code(code).Known() {
		o.Code, o.Message = string(pluginapi.CodeAgentFailed), code+": "+message
	}
	return o
}

// exit is the end of the other amux, or of what leads to it.
func (c *conversation) exit(exit *pluginapi.Exit, out *sdk.Out) {
	c.open.AbortStreams(out)
	c.open.CloseTools("the other amux ended before the tool did", out)
	for _, q := range c.questions {
		nested := pluginapi.Nested{ParentID: q.parent}
		if q.approval {
			out.Event(pluginapi.ApprovalDenied{InteractionID: q.id, Reason: "the other amux ended", Nested: nested})
		} else {
			out.Event(pluginapi.InputAnswered{InteractionID: q.id, Cancelled: true, Nested: nested})
		}
	}
	c.questions = nil
	switch {
	case c.end != nil:
	case exit.GetAsked() || c.stopped:
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeAborted), Message: agentID + " was stopped"})
	case !c.began && c.unstarted(exit, out):
	default:
		how := fmt.Sprintf("exited with code %d", exit.GetCode())
		if exit.GetSignal() != "" {
			how = "was ended by " + exit.GetSignal()
		}
		message := "the other amux " + how + " before its run had ended"
		if c.lastStderr != "" {
			message += ": " + c.lastStderr
		}
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeAgentCrash), Message: message, Retryable: true})
	}
}

// Exit codes of what leads to the other amux.
const (
	shellNotFound = 127
	sshFailed     = 255 // also a remote death by a signal; then events came
)

// unstarted tells why no run began there, if the exit code says it.
func (c *conversation) unstarted(exit *pluginapi.Exit, out *sdk.Out) bool {
	code, hint := pluginapi.Code(""), ""
	switch n := int(exit.GetCode()); {
	case exit.GetSignal() != "":
	case n == shellNotFound:
		code, hint = pluginapi.CodeAgentNotInstalled, "install amux there"
	case n == sshFailed:
		code, hint = pluginapi.CodeNetwork, "try the command of config.toml by hand"
	case n > 1 && c.complaint != "":
		if i := slices.IndexFunc(codes.All, func(info codes.Info) bool { return info.Exit == n }); i >= 0 {
			code = codes.All[i].Code
		}
	}
	if code == "" {
		return false
	}
	message := c.complaint
	if message == "" {
		message = c.lastStderr
	}
	if message == "" {
		message = fmt.Sprintf("the other amux could not be started: exit code %d", exit.GetCode())
	}
	c.fail(outcome(string(code), message), hint, out)
	return true
}
