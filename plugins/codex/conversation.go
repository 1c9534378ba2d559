package main

import (
	"cmp"
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
	"github.com/amux-dev/amux/sdk/jsonrpc"
	"github.com/amux-dev/amux/sdk/turn"
)

// What a sub-agent ends with is told after its turn; if it is not, this long
// after it the sub-agent counts as ended.
const (
	settleTimer = "settle"
	settleDelay = 2 * time.Second
)

// conversation is the codec of one process of `codex app-server`.
type conversation struct {
	turn.Base
	decoder

	peer     jsonrpc.Peer
	opts     *pluginapi.RunOptions
	state    planState
	version  string          // the CLI's
	native   string          // what effort the model was found to have
	newModel string          // asked for while it runs; for the next turn
	ours     map[string]bool // ids of messages that are amux's own
	sent     int             // prompts

	// Of the turn.
	turnID       string
	starting     int    // turn/start without an answer
	interrupting bool   // an interrupt waits for the turn's id, or for its end
	interrupted  string // the turn that was asked to end
	failure      *pluginapi.Outcome
	brake
}

// brake ends a turn that would go on for too long.
type brake struct {
	cutBy   *pluginapi.Outcome // why amux has cut the turn off, nil if it has not
	steps   int                // requests to the model
	offline int                // tries in a row to reach the network
}

// step counts a request to the model. After one that has called tools another follows: if
// that is one too many, step says why the turn is to end.
func (b *brake) step(called bool, most int) *pluginapi.Outcome {
	b.steps++
	if most == 0 || b.steps < most || !called || b.cutBy != nil {
		return nil
	}
	return &pluginapi.Outcome{Code: string(pluginapi.CodeTurnLimit), Message: fmt.Sprintf("codex has asked its model %d times", b.steps)}
}

// lost counts a try to reach the network: when there were enough of them, it says why the
// turn is to end.
func (b *brake) lost(reason string) *pluginapi.Outcome {
	if b.offline++; b.offline < maxOffline || b.cutBy != nil {
		return nil
	}
	return &pluginapi.Outcome{Code: string(pluginapi.CodeNetwork), Message: reason, Retryable: true}
}

// Converse begins the conversation with one process.
func (adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	opts := start.GetOptions()
	if opts.GetDriver() == driverExec {
		return newExecConversation(start), nil
	}
	c := &conversation{Base: base(start), peer: jsonrpc.Peer{Bare: true}, opts: opts, ours: map[string]bool{}}
	c.w = &c.Writer
	if len(start.GetState()) > 0 {
		if err := json.Unmarshal(start.GetState(), &c.state); err != nil {
			return nil, fmt.Errorf("read the plan's state: %w", err)
		}
	}
	thread := &c.state.Thread
	thread.Cwd = cmp.Or(thread.Cwd, start.GetCwd())
	thread.ThreadID = cmp.Or(thread.ThreadID, opts.GetResume())
	c.state.Salt += "/" + strconv.FormatUint(uint64(start.GetAttempt()), 10)
	return c, nil
}

// Handle turns one input into outputs.
func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_START:
		return c.initialize(out)
	case pb.InputKind_INPUT_STDOUT:
		return c.stdout(in.Data, out)
	case pb.InputKind_INPUT_PROMPT:
		c.Enqueue(in.Id, in.Data)
		return c.next(out)
	case pb.InputKind_INPUT_APPROVE:
		return c.approve(in.Id, in.Data, out)
	case pb.InputKind_INPUT_DENY:
		return c.deny(in.Id, string(in.Data), out)
	case pb.InputKind_INPUT_ANSWER:
		return c.answer(in.Id, in.Data, out)
	case pb.InputKind_INPUT_INTERRUPT:
		return c.interrupt(out)
	case pb.InputKind_INPUT_SET_MODEL:
		c.newModel = string(in.Data)
	case pb.InputKind_INPUT_TIMER:
		c.endQuiet(out)
		c.settle(out)
	case pb.InputKind_INPUT_EXIT:
		for _, child := range slices.Backward(c.order) {
			if child.parent != "" {
				c.close(child, agentEnded, out)
				c.subagentDone(child, agentEnded, out)
			}
		}
		c.Base.Handle(in, out)
	default:
		c.Base.Handle(in, out)
	}
	return nil
}

// call writes a request of ours.
func (c *conversation) call(method string, params any, out *sdk.Out) error {
	line, err := c.peer.Request(method, params, nil)
	if err != nil {
		return err
	}
	out.Write(line)
	return nil
}

// object is a JSON object that is written.
type object map[string]any

func (c *conversation) initialize(out *sdk.Out) error {
	return c.call("initialize", object{
		"clientInfo": object{"name": "amux", "title": "amux", "version": version},
		// For thread/backgroundTerminals/clean.
		"capabilities": object{"experimentalApi": true, "requestAttestation": false},
	}, out)
}

// stdout handles a line of the CLI.
func (c *conversation) stdout(line []byte, out *sdk.Out) error {
	m, err := c.peer.Receive(line)
	if err != nil {
		out.Log("stdout", line)
		return nil
	}
	defer m.Release()
	known := true
	switch m.Kind {
	case jsonrpc.Response:
		err = c.response(m, out)
	case jsonrpc.Request:
		c.request(m, out)
	case jsonrpc.Notification:
		known, err = c.notification(m, out)
	}
	if !known {
		out.Log("stdout", line)
	}
	return err
}

// response is the answer to a request of ours.
func (c *conversation) response(m *jsonrpc.Message, out *sdk.Out) error {
	if m.Call == nil {
		return nil // to a request that nobody waits for
	}
	if m.Error != nil {
		return c.refused(m, out)
	}
	switch m.Call.Method {
	case "initialize":
		c.version = versionOf(m.Result.Text("userAgent"))
		line, err := c.peer.Notify("initialized", nil)
		if err != nil {
			return err
		}
		out.Write(line)
		return c.beginThread(out)
	case "thread/list":
		last := m.Result.Text("data", "0", "id")
		if last == "" {
			c.refuse(pluginapi.CodeSessionNotFound, "codex has no session in this folder to go on with", out)
			return nil
		}
		c.state.Thread.ThreadID = last
		return c.joinThread(out)
	case "thread/start", "thread/resume", "thread/fork":
		return c.threadBegun(m, out)
	case "model/list":
		return c.modelsListed(m, out)
	case "turn/start":
		c.starting--
		if id := m.Result.Text("turn", "id"); id != "" {
			c.turnID = id
		}
		return c.interruptLater(out)
	}
	return nil
}

// refused is an error for an answer.
func (c *conversation) refused(m *jsonrpc.Message, out *sdk.Out) error {
	message := m.Error.Message
	switch m.Call.Method {
	case "initialize", "thread/start", "thread/resume", "thread/fork", "thread/list":
		code := pluginapi.CodeAgentFailed
		switch {
		case strings.Contains(message, "no rollout found"), strings.Contains(message, "invalid session id"):
			code = pluginapi.CodeSessionNotFound
		case strings.Contains(message, "config"):
			code = pluginapi.CodeConfig
		}
		c.refuse(code, message, out)
	case "turn/start":
		c.starting--
		code := pluginapi.CodeAgentFailed
		if strings.Contains(message, "exceeds the maximum length") {
			code = pluginapi.CodeContextExceeded
		}
		c.Fail(&pluginapi.Outcome{Code: string(code), Message: message}, out)
		if c.settled() {
			c.Idle(out)
		}
		c.settle(out)
	case "turn/interrupt":
		// The turn has ended by itself.
		c.interrupting = false
	case "turn/steer":
		// The turn has ended before what it should be told: it stands in the event.
	case "model/list":
		return c.effortFound(c.opts.GetEffort(), out)
	}
	return nil
}

// refuse ends a conversation that has not begun.
func (c *conversation) refuse(code pluginapi.Code, message string, out *sdk.Out) {
	c.Fail(&pluginapi.Outcome{Code: string(code), Message: message}, out)
	c.CloseStdin(out)
}

// beginThread begins the session, or finds the one to go on with.
func (c *conversation) beginThread(out *sdk.Out) error {
	switch {
	case c.opts.GetContinueLast():
		return c.call("thread/list", object{
			"limit": 1, "cwd": c.state.Thread.Cwd, "modelProviders": []string{}, "sortKey": "updated_at",
			"sourceKinds": []string{"cli", "vscode", "exec", "appServer"},
		}, out)
	case c.opts.GetResume() != "":
		return c.joinThread(out)
	}
	return c.call("thread/start", c.state.Thread, out)
}

func (c *conversation) joinThread(out *sdk.Out) error {
	params := c.state.Thread
	params.ExcludeTurns = true
	if c.opts.GetFork() {
		return c.call("thread/fork", params, out)
	}
	params.Ephemeral = false
	return c.call("thread/resume", params, out)
}

// threadBegun is the answer that names the session.
func (c *conversation) threadBegun(m *jsonrpc.Message, out *sdk.Out) error {
	result := m.Result
	id := result.Text("thread", "id")
	if id == "" {
		c.refuse(pluginapi.CodeAgentFailed, "codex named no session", out)
		return nil
	}
	c.model = result.Text("model")
	c.Session, c.main = id, c.thread(id)
	start := pluginapi.SessionStart{SessionID: id, Model: c.model, Version: c.version}
	switch m.Call.Method {
	case "thread/resume":
		start.Resumed = true
		c.main.spent.inherits = true
	case "thread/fork":
		start.ForkedFrom = c.state.Thread.ThreadID
		c.main.spent.inherits = true
	}
	out.Event(start)
	if start.Resumed {
		out.Event(pluginapi.SessionResume{SessionID: id})
	}
	if start.ForkedFrom != "" {
		out.Event(pluginapi.SessionFork{SessionID: id, ForkedFrom: start.ForkedFrom})
	}
	if c.opts.GetEffort() != "" {
		return c.call("model/list", object{"includeHidden": true}, out)
	}
	c.Ready()
	return c.next(out)
}

// modelsListed finds the effort that the model has. The CLI would pass any word
// on, and the provider might refuse it.
func (c *conversation) modelsListed(m *jsonrpc.Message, out *sdk.Out) error {
	var has []string
	for _, model := range m.Result.Items("data") {
		if model.Text("model") == c.model || model.Text("id") == c.model {
			for _, effort := range model.Items("supportedReasoningEfforts") {
				has = append(has, effort.Text("reasoningEffort"))
			}
		}
	}
	native, err := nativeEffort(c.opts.GetEffort(), c.model, has)
	if err != nil {
		e := pluginapi.AsError(err)
		c.refuse(e.Code, e.Msg+": "+e.Hint, out)
		return nil
	}
	return c.effortFound(native, out)
}

func (c *conversation) effortFound(native string, out *sdk.Out) error {
	c.native, c.Effort = native, native
	c.Ready()
	return c.next(out)
}

// next writes the prompts that wait, as soon as there is a session. One that comes in the
// middle of a turn is folded into it by the CLI.
func (c *conversation) next(out *sdk.Out) error {
	for p, ok := c.Steer(); ok; p, ok = c.Steer() {
		if err := c.startTurn(p, out); err != nil {
			return err
		}
	}
	return nil
}

func (c *conversation) startTurn(p turn.Prompt, out *sdk.Out) error {
	c.sent++
	input := []any{}
	for _, piece := range c.state.Input {
		input = append(input, piece)
	}
	c.state.Input = nil
	id := sdk.UUID(c.state.Salt, cmp.Or(p.ID, strconv.Itoa(c.sent)))
	c.ours[id] = true
	params := object{
		"threadId": c.main.id, "clientUserMessageId": id, "input": append(input, newText(string(p.Text))),
	}
	if c.native != "" {
		params["effort"] = c.native
	}
	if c.newModel != "" {
		params["model"], c.model = c.newModel, c.newModel
		c.newModel = ""
	}
	if len(c.state.Schema) > 0 {
		params["outputSchema"] = c.state.Schema
	}
	c.starting++
	return c.call("turn/start", params, out)
}

// interrupt ends the turn; the CLI ends what its tools have started, too.
func (c *conversation) interrupt(out *sdk.Out) error {
	c.interrupting = true
	return c.interruptLater(out)
}

// interruptLater interrupts as soon as there is a turn.
func (c *conversation) interruptLater(out *sdk.Out) error {
	switch {
	case !c.interrupting:
		return nil
	case c.turnID != "" && c.turnID == c.interrupted:
		return nil // it is on its way
	case c.turnID != "":
		c.interrupted = c.turnID
		if err := c.call("turn/interrupt", object{"threadId": c.main.id, "turnId": c.turnID}, out); err != nil {
			return err
		}
		// The turn alone ends: commands that it has started would go on.
		return c.call("thread/backgroundTerminals/clean", object{"threadId": c.main.id}, out)
	case c.starting == 0 && c.sent == c.Prompts:
		c.interrupting = false
	}
	return nil
}

// settled reports whether nothing will make the CLI speak: no turn, no prompt on its way,
// no sub-agent at work.
func (c *conversation) settled() bool { return !c.InTurn() && c.starting == 0 && !c.working() }

// settle says that the CLI is idle as soon as it is.
func (c *conversation) settle(out *sdk.Out) {
	if c.settled() {
		c.Done()
		c.Settle(out)
	}
}

// turnStarted begins a turn, of a sub-agent too.
func (c *conversation) turnStarted(t *thread, begun jsonl.Value, out *sdk.Out) error {
	t.active = true
	if t != c.main {
		return nil
	}
	c.turnID = begun.Text("id")
	c.offline, c.cutBy = 0, nil
	c.TurnStart(out)
	return c.interruptLater(out)
}

func (c *conversation) turnCompleted(t *thread, ended jsonl.Value, out *sdk.Out) {
	t.active = false
	if t != c.main {
		c.close(t, "the sub-agent's turn ended before the tool did", out)
		if t.parent != "" && !t.told {
			// That it has ended is told a moment later.
			out.SetTimer(settleTimer, settleDelay)
		}
		c.settle(out)
		return
	}
	outcome := c.turnFailure(ended)
	// Sub-agents go on, and after a turn that went well so do commands.
	c.Outlives = func(tool *turn.Tool) bool {
		return outcome == nil || tool.Parent() != "" || c.begunBy(tool.ID) != nil
	}
	c.TurnEnd(outcome, nil, out)
	c.interrupting, c.turnID, c.failure, t.thinks = false, "", nil, false
	c.settle(out)
}

// notification handles what the CLI tells; false means that it is not known.
func (c *conversation) notification(m *jsonrpc.Message, out *sdk.Out) (bool, error) {
	p := m.Params
	t := c.thread(p.Text("threadId"))
	switch m.Method {
	case "turn/started":
		return true, c.turnStarted(t, p.Get("turn"), out)
	case "turn/completed":
		c.turnCompleted(t, p.Get("turn"), out)
	case "error":
		return true, c.trouble(t, p, out)
	case "serverRequest/resolved":
		// We have answered, or the CLI asks no longer.
		c.Withdraw(about(p.Raw("requestId")), out)
	case "thread/name/updated":
		if name := p.Text("threadName"); name != "" && t == c.main {
			out.Event(pluginapi.SessionTitle{Title: name})
		}
	case "model/rerouted":
		c.model = p.Text("toModel")
		out.Event(pluginapi.Debug{Level: "warn", Message: "codex goes on with the model " + c.model + " instead of " + p.Text("fromModel")})
	case "warning", "guardianWarning":
		out.Event(pluginapi.Debug{Level: "warn", Message: p.Text("message")})
	case "configWarning", "deprecationNotice":
		level := "info"
		if strings.Contains(p.Text("summary"), "bubblewrap") {
			level = "verbose" // at each start, of a sandbox that it has within itself; a command that cannot run in it says so
		}
		out.Event(pluginapi.Debug{Level: level, Message: p.Text("summary")})
	case "mcpServer/startupStatus/updated":
		if p.Text("status") == "failed" {
			out.Event(pluginapi.Debug{Level: "warn", Message: "mcp server " + p.Text("name") + ": " + p.Text("error")})
		}
	case "item/started", "item/completed":
		c.offline = 0
		if item := p.Get("item"); item.Text("type") == "userMessage" {
			c.userMessage(t, item, m.Method == "item/completed", out)
			return true, nil
		}
		known := c.item(t, p.Get("item"), m.Method == "item/completed", out)
		c.settle(out)
		return known, nil
	case "thread/tokenUsage/updated":
		asked := c.usage(t, t == c.main, p.Get("tokenUsage"), out)
		c.Window = c.window
		if !asked || t != c.main {
			break
		}
		called := t.called
		t.called = false
		if why := c.step(called, int(c.opts.GetMaxTurns())); why != nil && c.InTurn() {
			return true, c.cut(why, out)
		}
	default:
		if c.decoder.notification(t, m.Method, p, out) {
			c.offline = 0
			return true, nil
		}
		_, known := ignored[m.Method]
		return known, nil
	}
	return true, nil
}

// cut ends the turn for a reason of amux's own.
func (c *conversation) cut(why *pluginapi.Outcome, out *sdk.Out) error {
	c.cutBy = why
	return c.interrupt(out)
}

// userMessage is a message in the user's place: ours come back, and are told by
// the host; others come from other clients of the session.
func (c *conversation) userMessage(t *thread, item jsonl.Value, completed bool, out *sdk.Out) {
	if !completed || c.ours[item.Text("clientId")] {
		return
	}
	text := inputText(item.Get("content"))
	if text == "" {
		return
	}
	out.Event(pluginapi.UserMessage{ID: item.Text("id"), Text: text, Nested: t.nested()})
}
