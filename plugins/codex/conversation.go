package main

import (
	"encoding/json"
	"fmt"
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
	decoder

	peer  jsonrpc.Peer
	state planState
	// From the start.
	resumes, forks bool
	continues      bool
	effort         string // as asked for
	newModel       string // asked for while it runs; for the next turn

	// The handshake.
	ready     bool // prompts may go
	dead      bool // it will not get ready; an outcome has said why
	waiting   []prompt
	nativeFor string // what effort the model was found to have

	// Turns.
	turnID       string
	interrupting bool   // an interrupt waits for the turn's id, or for its end
	interrupted  string // the turn that was asked to end
	starting     int    // turn/start without an answer
	turnsStarted int
	turnsEnded   int
	idle         bool
	offline      int  // tries in a row to reach the network
	failed       bool // the last turn
	// cutBy is why amux has cut the turn off, nil if it has not.
	cutBy    *pluginapi.Outcome
	maxSteps int // requests to the model that are allowed; 0: any number
	steps    int // that were made

	open    []*interaction
	prompts int
	ours    map[string]bool // ids of messages that are amux's own
	ended   bool            // stdin is closed
	stopped bool            // amux ends the process

	started *pluginapi.Start
	stderr  turn.Stderr
}

// prompt is one that waits for its turn/start.
type prompt struct {
	id   string
	text string
}

// Converse begins the conversation with one process.
func (adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	opts := start.GetOptions()
	if opts.GetDriver() == driverExec {
		return newExecConversation(start), nil
	}
	c := &conversation{
		started:   start,
		peer:      jsonrpc.Peer{Bare: true},
		resumes:   opts.GetResume() != "",
		continues: opts.GetContinueLast(),
		forks:     opts.GetFork(),
		effort:    opts.GetEffort(),
		maxSteps:  int(opts.GetMaxTurns()),
		ours:      map[string]bool{},
	}
	c.decoder.threads = map[string]*thread{}
	if len(start.GetState()) > 0 {
		if err := json.Unmarshal(start.GetState(), &c.state); err != nil {
			return nil, fmt.Errorf("read the plan's state: %w", err)
		}
	}
	if c.state.Thread.Cwd == "" {
		c.state.Thread.Cwd = start.GetCwd()
	}
	if c.state.Thread.ThreadID == "" {
		c.state.Thread.ThreadID = opts.GetResume()
	}
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
	case pb.InputKind_INPUT_STDERR:
		out.Log("stderr", in.Data)
		c.stderr.Add(in.Data)
	case pb.InputKind_INPUT_PROMPT:
		return c.prompt(in.Id, string(in.Data), out)
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
	case pb.InputKind_INPUT_END:
		c.end(out)
	case pb.InputKind_INPUT_TIMER:
		c.endSubagents(out)
		c.settle(out)
	case pb.InputKind_INPUT_STOP_REQUESTED, pb.InputKind_INPUT_TIMEOUT:
		c.stopped = true
	case pb.InputKind_INPUT_SPAWN_FAILED:
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeSpawn), Message: string(in.Data)})
	case pb.InputKind_INPUT_EXIT:
		c.exit(in.Exit, out)
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
		err = c.request(m, out)
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
		failure := &pluginapi.Outcome{Code: string(pluginapi.CodeAgentFailed), Message: message}
		if strings.Contains(message, "exceeds the maximum length") {
			failure.Code = string(pluginapi.CodeContextExceeded)
		}
		c.failureEvent(failure, out)
		out.Outcome(failure)
		c.failed = true
		c.settle(out)
	case "turn/interrupt":
		// The turn has ended by itself.
		c.interrupting = false
	case "turn/steer":
		// The turn has ended before what it should be told: it stands in the event.
	case "model/list":
		return c.effortFound(c.effort, out)
	}
	return nil
}

// refuse ends a conversation that has not begun.
func (c *conversation) refuse(code pluginapi.Code, message string, out *sdk.Out) {
	c.dead = true
	failure := &pluginapi.Outcome{Code: string(code), Message: message}
	c.failureEvent(failure, out)
	out.Outcome(failure)
	c.failed = true
	if !c.ended {
		c.ended = true
		out.CloseStdin()
	}
}

// beginThread begins the session, or finds the one to go on with.
func (c *conversation) beginThread(out *sdk.Out) error {
	switch {
	case c.continues:
		return c.call("thread/list", object{
			"limit": 1, "cwd": c.state.Thread.Cwd, "modelProviders": []string{}, "sortKey": "updated_at",
			"sourceKinds": []string{"cli", "vscode", "exec", "appServer"},
		}, out)
	case c.resumes:
		return c.joinThread(out)
	}
	return c.call("thread/start", c.state.Thread, out)
}

func (c *conversation) joinThread(out *sdk.Out) error {
	params := c.state.Thread
	params.ExcludeTurns = true
	if c.forks {
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
	c.main = c.thread(id)
	start := pluginapi.SessionStart{SessionID: id, Model: c.model, Version: c.version}
	switch m.Call.Method {
	case "thread/resume":
		start.Resumed = true
		c.main.inherits = true
	case "thread/fork":
		start.ForkedFrom = c.state.Thread.ThreadID
		c.main.inherits = true
	}
	out.Event(start)
	if start.Resumed {
		out.Event(pluginapi.SessionResume{SessionID: id})
	}
	if start.ForkedFrom != "" {
		out.Event(pluginapi.SessionFork{SessionID: id, ForkedFrom: start.ForkedFrom})
	}
	if c.effort != "" {
		return c.call("model/list", object{"includeHidden": true}, out)
	}
	return c.setReady(out)
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
	native, err := nativeEffort(c.effort, c.model, has)
	if err != nil {
		e := pluginapi.AsError(err)
		c.refuse(e.Code, e.Msg+": "+e.Hint, out)
		return nil
	}
	return c.effortFound(native, out)
}

func (c *conversation) effortFound(native string, out *sdk.Out) error {
	c.nativeFor = native
	c.decoder.effort = native
	return c.setReady(out)
}

func (c *conversation) setReady(out *sdk.Out) error {
	c.ready = true
	waiting := c.waiting
	c.waiting = nil
	for _, p := range waiting {
		if err := c.startTurn(p, out); err != nil {
			return err
		}
	}
	return nil
}

// prompt takes a prompt of the user. One that comes in the middle of a turn is
// folded into it by the CLI.
func (c *conversation) prompt(id, text string, out *sdk.Out) error {
	c.prompts++
	if id == "" {
		id = strconv.Itoa(c.prompts)
	}
	c.idle = false
	p := prompt{id: id, text: text}
	if !c.ready {
		if !c.dead {
			c.waiting = append(c.waiting, p)
		}
		return nil
	}
	return c.startTurn(p, out)
}

func (c *conversation) startTurn(p prompt, out *sdk.Out) error {
	input := []any{}
	for _, piece := range c.state.Input {
		input = append(input, piece)
	}
	c.state.Input = nil
	id := sdk.UUID(c.state.Salt, p.id)
	c.ours[id] = true
	params := object{
		"threadId": c.main.id, "clientUserMessageId": id, "input": append(input, newText(p.text)),
	}
	if c.nativeFor != "" {
		params["effort"] = c.nativeFor
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
	c.waiting = nil
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
	case c.starting == 0:
		c.interrupting = false
	}
	return nil
}

func (c *conversation) end(out *sdk.Out) {
	if !c.ended {
		c.ended = true
		out.CloseStdin()
	}
}

func (c *conversation) inTurn() bool { return c.turnsStarted > c.turnsEnded }

// settle says that the CLI is idle as soon as nothing will make it speak: no
// turn, no prompt on its way, no sub-agent at work.
func (c *conversation) settle(out *sdk.Out) {
	begun := c.turnsEnded > 0 || c.failed
	if !begun || c.inTurn() || c.idle || c.starting > 0 || c.working() || len(c.waiting) > 0 {
		return
	}
	c.idle = true
	out.Idle()
}

// turnStarted begins a turn, of a sub-agent too.
func (c *conversation) turnStarted(t *thread, turn jsonl.Value, out *sdk.Out) error {
	t.active = true
	if t != c.main {
		c.idle = false
		return nil
	}
	c.turnID = turn.Text("id")
	c.idle, c.offline, c.cutBy = false, 0, nil
	out.TurnStarted()
	out.Event(pluginapi.TurnStart{TurnIndex: c.turnsStarted})
	c.turnsStarted++
	return c.interruptLater(out)
}

func (c *conversation) turnCompleted(t *thread, turn jsonl.Value, out *sdk.Out) {
	t.active = false
	c.closeMessage(t, true, out)
	if t != c.main {
		c.closeTools(t, "the sub-agent's turn ended before the tool did", out)
		if t.parent != "" && !t.told {
			// That it has ended is told a moment later.
			out.SetTimer(settleTimer, settleDelay)
		}
		c.settle(out)
		return
	}
	inTurn := c.inTurn()
	if turn.Text("status") != "completed" {
		c.closeTools(t, "the turn ended before the tool did", out)
	}
	c.withdrawAll(out)
	switch failure := c.turnFailure(turn); {
	case failure == nil:
		out.Outcome(&pluginapi.Outcome{})
		c.failed = false
	case failure.Code == string(pluginapi.CodeAborted):
		out.Event(pluginapi.Interrupted{})
		out.Outcome(failure)
		c.failed = true
	default:
		c.failureEvent(failure, out)
		out.Outcome(failure)
		c.failed = true
	}
	c.interrupting, c.turnID, c.decoder.failure = false, "", nil
	if inTurn {
		out.Event(pluginapi.TurnEnd{TurnIndex: c.turnsEnded})
		c.turnsEnded++
	}
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
		c.resolved(string(p.Raw("requestId")), out)
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
		if c.usage(t, p.Get("tokenUsage"), out) && t == c.main {
			return true, c.step(out)
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

// step counts a request to the model. After one that has called tools another
// follows, for which there may be no leave.
func (c *conversation) step(out *sdk.Out) error {
	c.steps++
	called := c.main.called
	c.main.called = false
	if c.maxSteps == 0 || c.steps < c.maxSteps || !called || c.cutBy != nil || !c.inTurn() {
		return nil
	}
	return c.cut(&pluginapi.Outcome{
		Code: string(pluginapi.CodeTurnLimit), Message: fmt.Sprintf("codex has asked its model %d times", c.steps),
	}, out)
}

// cut ends the turn for a reason of amux's own.
func (c *conversation) cut(why *pluginapi.Outcome, out *sdk.Out) error {
	c.cutBy = why
	return c.interrupt(out)
}

// userMessage is a message in the user's place: ours come back, and are told by
// the host; others come from who else has the session open.
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

// exit is the end of the process. Its exit code follows the last turn and says
// nothing that the turns did not.
func (c *conversation) exit(exit *pluginapi.Exit, out *sdk.Out) {
	asked := exit.GetAsked() || c.stopped
	cutOff := c.inTurn() || c.turnsEnded == 0 && c.prompts > 0 && !c.dead && !c.failed
	died := !asked && !c.ended && (exit.GetSignal() != "" || exit.GetCode() != 0 && !c.failed)
	c.closeAll("the agent ended before the tool did", out)
	c.withdrawAll(out)
	switch {
	case cutOff && asked:
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeAborted), Message: "codex was stopped"})
	case cutOff || died:
		death(exit, &c.stderr, c.main != nil, c.started).Tell(authGuidance, out)
	case c.turnsEnded == 0 && !c.dead && !c.failed:
		out.Outcome(&pluginapi.Outcome{})
	}
	if c.main != nil {
		out.Event(pluginapi.SessionEnd{SessionID: c.main.id, TurnCount: c.turnsEnded})
	}
}
