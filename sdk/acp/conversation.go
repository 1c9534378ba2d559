package acp

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/jsonrpc"
	"github.com/amux-dev/amux/sdk/turn"
)

const (
	// After session/load an agent tells the past, some of it after its response.
	// What it is about is over when nothing has come for a moment.
	quietTimer = "quiet"
	quiet      = 300 * time.Millisecond
)

// conversation is the codec of one process of an agent.
type conversation struct {
	turn.Base
	config Config
	opts   *pluginapi.RunOptions
	state  State
	cwd    string
	peer   jsonrpc.Peer

	// From the handshake.
	version         string
	loads, resumes  bool
	forks, lists    bool
	configOptions   []option
	mode            string
	loading, loaded bool // a session that goes on: asked for, and there
	refused, begun  bool // before the first prompt: over, and gone well
	pending         int  // settings that the agent has not confirmed yet

	models    []string // asked for by the user, before the session was there
	switching int      // models that the agent was asked for and has not answered yet

	calls map[string]*Call // tools, by id
	asked map[string]bool  // ids of questions that are about another tool

	cost      float64 // of the session, as last told
	costKnown bool
	title     string
	said      bool  // something, in this turn
	answered  int64 // output tokens of this turn
	turnCost  *pluginapi.Money
	counter   counter
	context   turn.Context
	pages     int                // of a list of sessions
	summary   string             // of a compaction that goes on
	found     [2]string          // the newest session of a list that has more pages, and its time
	errorText *pluginapi.Outcome // told in the model's place
}

// maxPages bounds how much of a list of sessions is read.
const maxPages = 100

// option is one of the session's settings.
type option struct{ id, category, value string }

// Handle turns one input into outputs.
func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_START:
		return c.request("initialize", map[string]any{
			"protocolVersion": 1,
			"clientCapabilities": map[string]any{
				"fs": map[string]any{"readTextFile": false, "writeTextFile": false}, "terminal": false,
				"elicitation": map[string]any{"form": map[string]any{}},
				"session": map[string]any{
					"compaction": map[string]any{}, "notices": map[string]any{},
					"configOptions": map[string]any{"boolean": map[string]any{}},
				},
			},
			"clientInfo": map[string]any{"name": "amux", "version": "1"},
		}, out)
	case pb.InputKind_INPUT_STDERR:
		if c.config.Retry != nil {
			if retry, limited, ok := c.config.Retry(in.Data); ok {
				out.Event(retry)
				if limited {
					out.Event(pluginapi.RateLimited{RetryAfterMS: retry.DelayMS})
				}
			}
		}
		c.Base.Handle(in, out)
	case pb.InputKind_INPUT_STDOUT:
		return c.line(in.Data, out)
	case pb.InputKind_INPUT_PROMPT:
		c.Enqueue(in.Id, in.Data)
		return c.next(out)
	case pb.InputKind_INPUT_APPROVE:
		return c.approve(in.Id, out)
	case pb.InputKind_INPUT_DENY:
		return c.deny(in.Id, string(in.Data), out)
	case pb.InputKind_INPUT_ANSWER:
		if q := c.Take(in.Id, out); q != nil {
			if f, ok := q.Note.(form); ok && f.yes == "" {
				c.fill(q, f, in.Data, out)
				break
			}
			c.PutBack(q, "the agent waits for an approval, not for an answer", out)
		}
	case pb.InputKind_INPUT_INTERRUPT:
		return c.cancel(out)
	case pb.InputKind_INPUT_SET_MODEL:
		c.models = append(c.models, string(in.Data))
		return c.switchModels(out)
	case pb.InputKind_INPUT_TIMER:
		if in.Id != quietTimer {
			c.Base.Handle(in, out)
			return nil
		}
		if c.loading {
			c.loading = false
			return c.settings(out)
		}
	default:
		c.Base.Handle(in, out)
	}
	return nil
}

func (c *conversation) request(method string, params any, out *sdk.Out) error {
	return c.ask(method, params, nil, out)
}

func (c *conversation) ask(method string, params, note any, out *sdk.Out) error {
	line, err := c.peer.Request(method, params, note)
	if err == nil {
		out.Write(line)
	}
	return err
}

// next writes the prompt that is next, if the agent is ready for it. Agents work at
// several requests at once, so that a prompt would overtake the model that it is for.
func (c *conversation) next(out *sdk.Out) error {
	if c.switching > 0 {
		return nil
	}
	p, ok := c.Dequeue()
	if !ok {
		return nil
	}
	blocks := c.state.Blocks
	c.state.Blocks = nil
	data, err := json.Marshal(textBlock(string(p.Text)))
	if err != nil {
		return err
	}
	c.TurnStart(out)
	c.turnCost, c.said, c.answered = nil, false, 0
	return c.request("session/prompt", map[string]any{"sessionId": c.Session, "prompt": append(blocks, data)}, out)
}

// cancel ends the turn that goes on, as the protocol wants it: open questions are
// answered too.
func (c *conversation) cancel(out *sdk.Out) error {
	if !c.Busy() {
		return nil
	}
	line, err := c.peer.Notify("session/cancel", map[string]any{"sessionId": c.Session})
	if err != nil {
		return err
	}
	out.Write(line)
	c.Withdraw(func(q *turn.Question) bool {
		c.choose(q, "", out)
		return true
	}, out)
	return nil
}

// line handles a line of the agent.
func (c *conversation) line(line []byte, out *sdk.Out) error {
	m, err := c.peer.Receive(line)
	if err != nil {
		out.Log("stdout", line)
		return nil
	}
	defer m.Release()
	switch m.Kind {
	case jsonrpc.Response:
		if m.Call == nil {
			out.Log("stdout", line)
			return nil
		}
		return c.response(m, out)
	case jsonrpc.Request:
		switch m.Method {
		case "session/request_permission":
			c.permission(m, out)
		case "elicitation/create":
			c.elicit(m, out)
		default:
			// Files and terminals were not offered; agents have methods of their own too,
			// and go on without.
			out.Write(c.peer.Refuse(m.ID, jsonrpc.MethodNotFound, "amux has no "+m.Method))
		}
	default:
		switch {
		case m.Method == "session/update":
			if c.update(m.Params, out) {
				return nil
			}
		case m.Method == "$/cancel_request":
			c.withdrawn(m.Params.Get("requestId").Raw(), out)
			return nil
		case !strings.HasPrefix(m.Method, "session/"):
			return nil // an agent's own, beside the protocol; it wants no answer
		}
		out.Log("stdout", line)
	}
	return nil
}

func (c *conversation) response(m *jsonrpc.Message, out *sdk.Out) error {
	switch m.Call.Method {
	case "initialize":
		return c.initialized(m, out)
	case "authenticate":
		if m.Error != nil {
			c.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeAuth), Message: m.Error.Message}, out)
			return nil
		}
		return c.enter(out)
	case "session/list":
		return c.listed(m, out)
	case "session/new", "session/load", "session/resume", "session/fork":
		return c.opened(m, out)
	case "session/prompt":
		return c.ended(m, out)
	default:
		// A setting.
		refused := ""
		if m.Error != nil {
			refused = c.Agent + " refused " + m.Call.Method + ": " + m.Error.Message
		}
		if m.Call.Note == switched {
			if c.switching--; refused != "" {
				out.Event(pluginapi.ErrorEvent{Code: pluginapi.CodeAgentFailed, Message: refused, Recoverable: true})
			}
			return c.next(out)
		}
		if refused != "" {
			o := failure.Of(0, refused)
			if o.Code != string(pluginapi.CodeValidation) { // an unknown model
				o = &pluginapi.Outcome{Code: string(pluginapi.CodeCapability), Message: refused}
			}
			c.refuse(o, out)
			return nil
		}
		if c.pending > 0 {
			if c.pending--; c.pending == 0 {
				return c.begin(out)
			}
		}
	}
	return nil
}

// refuse ends the run before a prompt is written.
func (c *conversation) refuse(o *pluginapi.Outcome, out *sdk.Out) {
	if !c.refused {
		c.refused = true
		c.Fail(o, out)
		c.CloseStdin(out)
	}
}

func (c *conversation) cannot(what string, out *sdk.Out) {
	c.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeCapability), Message: c.Agent + " cannot " + what}, out)
}

// initialized asks for a session.
func (c *conversation) initialized(m *jsonrpc.Message, out *sdk.Out) error {
	if m.Error != nil {
		c.refuse(c.failed(m.Error), out)
		return nil
	}
	if v, ok := m.Result.Int("protocolVersion"); !ok || v != 1 {
		c.cannot("speak version 1 of the Agent Client Protocol, only version "+strconv.FormatInt(v, 10), out)
		return nil
	}
	can := m.Result.Get("agentCapabilities")
	c.version = m.Result.Text("agentInfo", "version")
	c.counter.cumulative = c.config.Cumulative
	if c.config.Counts != nil {
		cumulative, known := c.config.Counts(m.Result.Text("agentInfo", "name"))
		c.counter.cumulative, c.counter.unsure = cumulative || !known, !known
	}
	c.loads = can.Bool("loadSession")
	c.resumes = can.Exists("sessionCapabilities", "resume")
	c.forks = can.Exists("sessionCapabilities", "fork")
	c.lists = can.Exists("sessionCapabilities", "list")
	if way := c.config.Authenticate; way != "" {
		for _, method := range m.Result.Items("authMethods") {
			if method.Text("id") == way {
				return c.request("authenticate", map[string]any{"methodId": way}, out)
			}
		}
	}
	return c.enter(out)
}

// enter begins the session, or goes on with one.
func (c *conversation) enter(out *sdk.Out) error {
	switch {
	case c.opts.GetContinueLast():
		if !c.lists {
			c.cannot("list its sessions, so that the last one is not known; name one with --resume", out)
			return nil
		}
		return c.request("session/list", map[string]any{"cwd": c.cwd}, out)
	case c.opts.GetResume() != "":
		return c.open(c.opts.GetResume(), out)
	}
	return c.request("session/new", map[string]any{"cwd": c.cwd, "mcpServers": c.servers()}, out)
}

func (c *conversation) servers() []Server {
	if c.state.Servers == nil {
		return []Server{}
	}
	return c.state.Servers
}

// open goes on with a session, or forks from it.
func (c *conversation) open(id string, out *sdk.Out) error {
	method := "session/load"
	switch {
	case c.opts.GetFork():
		if !c.forks {
			c.cannot("fork a session", out)
			return nil
		}
		method = "session/fork"
	case c.resumes && (c.config.Absent == nil || !c.loads):
		method = "session/resume" // its past is not told again
	case c.loads:
	default:
		c.cannot("resume a session", out)
		return nil
	}
	c.Session = id
	c.loading = method != "session/resume"
	return c.request(method, map[string]any{"sessionId": id, "cwd": c.cwd, "mcpServers": c.servers()}, out)
}

// listed goes on with the newest session of the directory.
func (c *conversation) listed(m *jsonrpc.Message, out *sdk.Out) error {
	if m.Error != nil {
		c.refuse(c.failed(m.Error), out)
		return nil
	}
	id, newest := c.found[0], c.found[1]
	for _, s := range m.Result.Items("sessions") {
		if cwd := s.Text("cwd"); cwd != "" && cwd != c.cwd {
			continue
		}
		if at := s.Text("updatedAt"); id == "" || at > newest {
			id, newest = s.Text("sessionId"), at
		}
	}
	if cursor := m.Result.Text("nextCursor"); cursor != "" && c.pages < maxPages {
		c.pages++
		c.found = [2]string{id, newest}
		return c.request("session/list", map[string]any{"cwd": c.cwd, "cursor": cursor}, out)
	}
	if id == "" {
		c.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: c.Agent + " has no session in " + c.cwd}, out)
		return nil
	}
	return c.open(id, out)
}

// opened is the answer that a session is there.
func (c *conversation) opened(m *jsonrpc.Message, out *sdk.Out) error {
	asked := c.Session // the session that was to go on
	if m.Error != nil {
		c.Session = ""
		o := c.failed(m.Error)
		if asked != "" && o.Code == string(pluginapi.CodeAgentFailed) {
			o = &pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: c.Agent + " cannot open session " + asked + ": " + o.Message}
		}
		c.refuse(o, out)
		return nil
	}
	if asked != "" && c.config.Absent != nil && c.config.Absent(m.Result) {
		c.Session = ""
		c.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: c.Agent + " has no session " + asked}, out)
		return nil
	}
	if id := m.Result.Text("sessionId"); id != "" {
		c.Session = id
	}
	start := pluginapi.SessionStart{SessionID: c.Session, Version: c.version, Model: m.Result.Text("models", "currentModelId")}
	c.options(m.Result)
	if start.Model == "" {
		start.Model = c.value("model")
	}
	c.mode = m.Result.Text("modes", "currentModeId")
	if asked != "" {
		start.Resumed = true
		if c.opts.GetFork() {
			start.ForkedFrom = asked
		}
	}
	out.Event(start)
	switch {
	case start.ForkedFrom != "":
		out.Event(pluginapi.SessionFork{SessionID: c.Session, ForkedFrom: asked})
	case asked != "":
		out.Event(pluginapi.SessionResume{SessionID: c.Session})
	}
	c.costKnown = asked == ""
	// Of a session that goes on the first figure may have its past in it.
	c.counter.started = asked == "" || !c.counter.unsure
	if c.loading {
		c.loaded = true
		out.SetTimer(quietTimer, quiet)
		return nil
	}
	return c.settings(out)
}

// options keeps the settings that the agent tells.
func (c *conversation) options(v jsonl.Value) {
	if !v.IsArray("configOptions") {
		return
	}
	c.configOptions = nil
	for _, o := range v.Items("configOptions") {
		value := o.Text("currentValue")
		if o.Text("type") == "boolean" {
			value = strconv.FormatBool(o.Bool("currentValue"))
		}
		c.configOptions = append(c.configOptions, option{o.Text("id"), o.Text("category"), value})
	}
}

// option finds a setting by its category or, where it has none, its id.
func (c *conversation) option(category string) *option {
	for i, o := range c.configOptions {
		if o.category == category || o.category == "" && o.id == category {
			return &c.configOptions[i]
		}
	}
	return nil
}

func (c *conversation) value(category string) string {
	if o := c.option(category); o != nil {
		return o.value
	}
	return ""
}

// settings asks for the mode, model and effort of the run; prompts wait for the
// answers.
func (c *conversation) settings(out *sdk.Out) error {
	if mode := c.config.Mode; mode != "" && c.mode != "" && mode != c.mode {
		c.pending++
		if err := c.request("session/set_mode", map[string]any{"sessionId": c.Session, "modeId": mode}, out); err != nil {
			return err
		}
	}
	if model := c.opts.GetModel(); model != "" && !c.config.ModelByPlan {
		c.pending++
		if err := c.setModel(model, nil, out); err != nil {
			return err
		}
	}
	if effort := c.opts.GetEffort(); effort != "" && !c.config.EffortByPlan {
		o := c.option("thought_level")
		if o == nil {
			c.cannot("be given an effort", out)
			return nil
		}
		c.pending++
		if err := c.setOption(o.id, effort, nil, out); err != nil {
			return err
		}
	}
	if c.pending == 0 {
		return c.begin(out)
	}
	return nil
}

// switched is the note of a request for a model that the user has made while the
// conversation goes on.
const switched = "switched"

func (c *conversation) switchModels(out *sdk.Out) error {
	if !c.begun {
		return nil
	}
	for _, model := range c.models {
		c.switching++
		if err := c.setModel(model, switched, out); err != nil {
			return err
		}
	}
	c.models = nil
	return nil
}

func (c *conversation) setModel(model string, note any, out *sdk.Out) error {
	if c.config.Model != nil {
		model = c.config.Model(model)
	}
	if o := c.option("model"); o != nil {
		return c.setOption(o.id, model, note, out)
	}
	return c.ask("session/set_model", map[string]any{"sessionId": c.Session, "modelId": model}, note, out)
}

func (c *conversation) setOption(id, value string, note any, out *sdk.Out) error {
	return c.ask("session/set_config_option", map[string]any{"sessionId": c.Session, "configId": id, "value": value}, note, out)
}

func (c *conversation) begin(out *sdk.Out) error {
	if c.refused {
		return nil
	}
	c.begun = true
	c.Ready()
	if err := c.switchModels(out); err != nil {
		return err
	}
	return c.next(out)
}

// ended is the response to a prompt: the turn is over.
func (c *conversation) ended(m *jsonrpc.Message, out *sdk.Out) error {
	var outcome *pluginapi.Outcome
	if m.Error != nil {
		outcome = c.failed(m.Error)
	} else {
		if m.Result.Text("stopReason") != "cancelled" {
			c.Main().End(out)
		}
		c.tokens(m.Result, out)
		switch m.Result.Text("stopReason") {
		case "cancelled":
			outcome = turn.Aborted()
		case "max_turn_requests":
			outcome = &pluginapi.Outcome{Code: string(pluginapi.CodeTurnLimit), Message: c.Agent + " has reached the limit of requests in a turn"}
			if c.config.Limit != nil {
				outcome = c.config.Limit(c.opts)
			}
		case "end_turn":
			if c.config.Wordless != "" && !c.said {
				outcome = &pluginapi.Outcome{Code: string(pluginapi.CodeAgentFailed), Message: c.config.Wordless}
			}
		case "refusal":
			outcome = &pluginapi.Outcome{Code: string(pluginapi.CodeAgentFailed), Message: c.Agent + " refuses to go on with this prompt"}
		case "max_tokens":
			if !c.said && c.answered == 0 {
				outcome = &pluginapi.Outcome{Code: string(pluginapi.CodeContextExceeded), Message: "the prompt is longer than the model's context"}
				break
			}
			out.Event(pluginapi.Debug{Level: "warn", Message: "the answer is cut off: the model has reached its limit of tokens"})
		}
	}
	if outcome == nil {
		outcome = c.errorText
	}
	c.errorText = nil
	c.TurnEnd(outcome, c.turnCost, out)
	clear(c.calls)
	clear(c.asked)
	c.Done()
	if err := c.next(out); err != nil {
		return err
	}
	c.Settle(out)
	return nil
}

// failed reads an error of the agent.
func (c *conversation) failed(e *jsonrpc.Error) *pluginapi.Outcome {
	if c.config.Failure != nil {
		if o := c.config.Failure(e); o != nil {
			return o
		}
	}
	const authRequired = -32000
	message := e.Message
	var data struct {
		Details string
		Message string
	}
	if json.Unmarshal(e.Data, &data) == nil {
		if data.Details != "" {
			message = data.Details
		} else if data.Message != "" {
			message = data.Message
		}
	}
	status := failure.Status(message)
	if e.Code >= 400 && e.Code < 600 {
		status = int(e.Code)
	}
	if e.Code == authRequired {
		return &pluginapi.Outcome{Code: string(pluginapi.CodeAuth), Message: message}
	}
	return failure.Of(status, message)
}

// money takes the session's cost so far. What a session that goes on has cost
// before is told before the first prompt, or not known.
func (c *conversation) money(v jsonl.Value, out *sdk.Out) {
	total, ok := v.Float("amount")
	if !ok || v.Text("currency") != "USD" {
		return
	}
	before := c.cost
	c.cost = total
	if !c.costKnown || !c.Busy() {
		c.costKnown = true
		return
	}
	// Differences of floating-point sums have noise far below a cent.
	usd := math.Round((total-before)*1e10) / 1e10
	if usd <= 0 {
		return
	}
	out.Event(pluginapi.Cost{Cost: pluginapi.Money{USD: usd}})
	if c.turnCost == nil {
		c.turnCost = &pluginapi.Money{}
	}
	c.turnCost.USD = math.Round((c.turnCost.USD+usd)*1e10) / 1e10
}
