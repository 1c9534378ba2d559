package opencodehttp

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/plugins/others/opencode"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// conversation is the codec of one server behind amux-bridge.
type conversation struct {
	turn.Base
	state
	opts    *pluginapi.RunOptions
	cwd     string
	servers []string // MCP

	requests int
	asked    map[string]string // our requests: id → what for
	version  string
	model    string
	variant  string // the effort
	parent   string // of a fork
	refused  bool
	title    string
	children map[string]string // sessions of sub-agents → the tool that has begun each

	// Of the turn.
	running      bool // the server works on the prompt
	interrupting bool // the user has asked for the end of the turn
	aborting     bool // the server was asked to end it
	failure      *pluginapi.Outcome
	settling     bool            // the timer is set
	idles        int             // how often the server was idle since it failed
	prompts      map[string]bool // the user's messages of this turn; false: of those before
	last         string          // the newest message of the main conversation
	messages     map[string]*message
	parts        map[string]*block
	held         []*turn.Question // until their tool is ready
	open         map[string]bool  // questions that have no answer
	steps        int
	snapshot     string // the last that was told
	inStep       bool
	cost         *pluginapi.Money
}

// message is one of the model's, block a text or thought of it.
type (
	message struct {
		done    bool
		summary bool // of a conversation that became too long
		tokens  bool
	}
	block struct {
		parent  string // of a sub-agent
		thought bool
		told    int  // bytes of it
		lost    bool // the server asks the model again
	}
)

const (
	// settleTimer ends a turn that has failed. OpenCode says twice that it is idle,
	// once before it has finished the failed message; in between it takes prompts
	// which it never runs, and the second time may come when the next one does.
	settleTimer = "settle"
	settled     = time.Second
	unfinished  = 10 * time.Second
	// heldTimer asks a question whose tool does not become ready.
	heldTimer = "held"
	heldTime  = time.Second
	// quietTimer lets the copied messages of a fork pass.
	quietTimer = "quiet"
	quiet      = 300 * time.Millisecond

	// linger: the bridge gives its server five seconds.
	linger = 10 * time.Second
)

// refusals are last words of amux-bridge and of the server.
var refusals = []turn.Refusal{
	{Text: "refuses the password", Code: pluginapi.CodeAuth, Hint: "set " + passwordVariable + " to that server's password"},
	{Text: "cannot be reached", Code: pluginapi.CodeNetwork, Hint: "start it: opencode serve; or unset " + urlVariable},
	{Text: "it is another kind of server", Code: pluginapi.CodeConfig, Hint: "set " + urlVariable + " to the URL of opencode serve"},
	{Text: "Configuration is invalid", Code: pluginapi.CodeConfig},
}

// Converse begins the conversation with one server.
func (Adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	o := start.GetOptions()
	c := &conversation{
		Base: turn.Base{Agent: agentID, Guidance: opencode.Guidance(), Refusals: refusals, Linger: linger, Start: start},
		opts: o, cwd: start.GetCwd(), model: o.GetModel(),
		asked: map[string]string{}, children: map[string]string{}, open: map[string]bool{},
		prompts: map[string]bool{}, messages: map[string]*message{}, parts: map[string]*block{},
	}
	for _, s := range o.GetMcpServers() {
		c.servers = append(c.servers, s.GetName())
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
	case pb.InputKind_INPUT_STDOUT:
		c.stdout(in.Data, out)
	case pb.InputKind_INPUT_PROMPT:
		c.Enqueue(in.Id, in.Data)
		c.next(out)
	case pb.InputKind_INPUT_APPROVE:
		c.approve(in.Id, out)
	case pb.InputKind_INPUT_DENY:
		c.deny(in.Id, string(in.Data), out)
	case pb.InputKind_INPUT_ANSWER:
		c.answer(in.Id, in.Data, out)
	case pb.InputKind_INPUT_INTERRUPT:
		c.interrupting = c.Busy()
		c.abort(out)
	case pb.InputKind_INPUT_SET_MODEL:
		c.setModel(string(in.Data), out)
	case pb.InputKind_INPUT_TIMER:
		switch in.Id {
		case settleTimer:
			if c.Busy() && c.settling {
				c.over(out)
			}
		case heldTimer:
			c.release("", out)
		case quietTimer:
			c.begin(out)
		default:
			c.Base.Handle(in, out)
		}
	default:
		c.Base.Handle(in, out)
	}
	return nil
}

func (c *conversation) stdout(line []byte, out *sdk.Out) {
	doc, err := jsonl.ParseObject(line)
	if err != nil {
		out.Log("stdout", line)
		return
	}
	defer doc.Release()
	known := true
	switch string(doc.Bytes("type")) {
	case "ready":
		c.ready(doc.Value, out)
	case "response":
		known = c.response(doc.Value, out)
	case "event":
		known = c.event(doc.Get("event"), out)
	default:
		known = false
	}
	if !known {
		out.Log("stdout", line)
	}
}

// request asks the server; what names the request when its response comes.
func (c *conversation) request(what, method, path string, body any, out *sdk.Out) {
	c.requests++
	id := strconv.Itoa(c.requests)
	c.asked[id] = what
	if c.Foreign {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + "directory=" + url.QueryEscape(c.cwd)
	}
	line, err := json.Marshal(struct {
		ID     string `json:"id"`
		Method string `json:"method"`
		Path   string `json:"path"`
		Body   any    `json:"body,omitempty"`
	}{id, method, path, body})
	if err == nil {
		out.Write(append(line, '\n'))
	}
}

func (c *conversation) inSession(what string) string { return "/session/" + c.Session + what }

// ready is the first line of the bridge: the server is there.
func (c *conversation) ready(line jsonl.Value, out *sdk.Out) {
	if c.version != "" {
		return
	}
	c.version = line.Text("health", "version")
	if c.opts.GetEffort() != "" {
		c.request("settings", "GET", "/config", nil, out)
		return
	}
	c.start(out)
}

// start opens the session.
func (c *conversation) start(out *sdk.Out) {
	switch {
	case c.opts.GetContinueLast():
		c.request("list", "GET", "/session?roots=true", nil, out)
	case c.opts.GetResume() != "":
		c.resume(c.opts.GetResume(), out)
	default:
		c.request("open", "POST", "/session", map[string]any{}, out)
	}
}

func (c *conversation) resume(id string, out *sdk.Out) {
	if !strings.HasPrefix(id, "ses") {
		// The server fails with such an id.
		c.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: fmt.Sprintf("opencode has no session %q", id)}, out)
		return
	}
	c.parent = id
	if c.opts.GetFork() {
		c.request("open", "POST", "/session/"+id+"/fork", map[string]any{}, out)
	} else {
		c.request("open", "GET", "/session/"+id, nil, out)
	}
}

// refuse ends the run before a prompt is written.
func (c *conversation) refuse(o *pluginapi.Outcome, out *sdk.Out) {
	if !c.refused {
		c.refused = true
		c.Fail(o, out)
		c.CloseStdin(out)
	}
}

// response is what the server says to a request of ours.
func (c *conversation) response(line jsonl.Value, out *sdk.Out) bool {
	id := line.Text("id")
	what, ours := c.asked[id]
	if !ours {
		return false
	}
	delete(c.asked, id)
	var failed *pluginapi.Outcome
	if status, _ := line.Int("status"); status < 200 || status > 299 {
		failed = refusal(line)
	}
	body := line.Get("body")
	switch what {
	case "settings":
		if c.model == "" {
			c.model = body.Text("model")
		}
		c.request("models", "GET", "/config/providers", nil, out)
	case "models":
		c.effort(body, out)
	case "list":
		c.listed(body, failed, out)
	case "open":
		c.opened(body, failed, out)
	case "ask about":
		if failed != nil {
			c.refuse(failed, out)
			break
		}
		c.calm(out)
	case "prompt":
		if failed != nil {
			c.failure = failed
			c.over(out)
		}
	default:
		// An answer, or the end of a turn, that comes too late.
		if failed != nil {
			out.Event(pluginapi.Debug{Level: "warn", Message: what + ": " + failed.Message})
		}
	}
	return true
}

// refusal reads a response that is an error.
func refusal(line jsonl.Value) *pluginapi.Outcome {
	body := line.Get("body")
	message := body.Text("data", "message")
	for _, other := range []string{line.Text("error"), line.Text("text"), body.Text("name"), "OpenCode refused it"} {
		if message == "" {
			message = other
		}
	}
	if body.Text("name") == "NotFoundError" && strings.Contains(message, "ession") {
		return &pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: message}
	}
	return failure.Of(0, message)
}

// strength has the names of variants, the least first.
var strength = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// effort chooses the model's variant.
func (c *conversation) effort(body jsonl.Value, out *sdk.Out) {
	wanted := c.opts.GetEffort()
	provider, name, err := splitModel(c.model)
	if err != nil {
		c.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeCapability), Message: agentID + " cannot be given an effort without a model: its settings name none"}, out)
		return
	}
	var has []string
	for _, p := range body.Items("providers") {
		if p.Text("id") == provider {
			for variant := range p.Fields("models", name, "variants") {
				has = append(has, variant)
			}
		}
	}
	if wanted == "max" {
		most := -1
		for _, variant := range has {
			most = max(most, slices.Index(strength, variant))
		}
		if most >= 0 {
			wanted = strength[most]
		}
	}
	if !slices.Contains(has, wanted) {
		message := fmt.Sprintf("%s cannot give the model %s the effort %s", agentID, c.model, wanted)
		if len(has) > 0 {
			message += "; it has " + strings.Join(has, ", ")
		}
		c.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeCapability), Message: message}, out)
		return
	}
	c.variant, c.Effort = wanted, wanted
	c.start(out)
}

// listed goes on with the newest session of the directory.
func (c *conversation) listed(body jsonl.Value, failed *pluginapi.Outcome, out *sdk.Out) {
	if failed != nil {
		c.refuse(failed, out)
		return
	}
	id, newest := "", int64(0)
	for _, s := range body.Items() {
		if at, _ := s.Int("time", "updated"); s.Text("directory") == c.cwd && s.Text("parentID") == "" && (id == "" || at > newest) {
			id, newest = s.Text("id"), at
		}
	}
	if id == "" {
		c.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: "opencode has no session in " + c.cwd}, out)
		return
	}
	c.resume(id, out)
}

// opened is the session that the run is in.
func (c *conversation) opened(session jsonl.Value, failed *pluginapi.Outcome, out *sdk.Out) {
	if failed == nil && session.Text("id") == "" {
		failed = &pluginapi.Outcome{Code: string(pluginapi.CodeAgentFailed), Message: "the server's answer names no session"}
	}
	if failed != nil {
		c.refuse(failed, out)
		return
	}
	c.Session = session.Text("id")
	start := pluginapi.SessionStart{SessionID: c.Session, Version: c.version, Model: c.model, Resumed: c.parent != ""}
	if c.model == "" && session.Text("model", "id") != "" {
		start.Model = session.Text("model", "providerID") + "/" + session.Text("model", "id")
	}
	if c.opts.GetFork() {
		start.ForkedFrom = c.parent
	}
	out.Event(start)
	switch {
	case c.opts.GetFork():
		out.Event(pluginapi.SessionFork{SessionID: c.Session, ForkedFrom: c.parent})
	case c.parent != "":
		out.Event(pluginapi.SessionResume{SessionID: c.Session})
	}
	c.retitle(session, out)
	if c.Foreign && (c.parent == "" || c.opts.GetFork()) {
		ask := []map[string]string{}
		for _, permission := range []string{"bash", "edit", "webfetch"} {
			ask = append(ask, map[string]string{"permission": permission, "pattern": "*", "action": "ask"})
		}
		c.request("ask about", "PATCH", c.inSession(""), map[string]any{"permission": ask}, out)
		return
	}
	c.calm(out)
}

// calm waits until what a fork has copied was told.
func (c *conversation) calm(out *sdk.Out) {
	if c.opts.GetFork() {
		out.SetTimer(quietTimer, quiet)
		return
	}
	c.begin(out)
}

func (c *conversation) begin(out *sdk.Out) {
	c.Ready()
	c.next(out)
}

func (c *conversation) setModel(model string, out *sdk.Out) {
	if _, _, err := splitModel(model); err != nil {
		out.Event(pluginapi.ErrorEvent{Code: pluginapi.CodeValidation, Message: err.Error(), Recoverable: true})
		return
	}
	c.model = model
}

// prompt is the body of one.
type prompt struct {
	Model   *modelName        `json:"model,omitempty"`
	Variant string            `json:"variant,omitempty"`
	System  string            `json:"system,omitempty"`
	Format  *format           `json:"format,omitempty"`
	Parts   []json.RawMessage `json:"parts"`
}

type (
	modelName struct {
		ProviderID string `json:"providerID"`
		ModelID    string `json:"modelID"`
	}
	format struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"`
	}
)

// next writes the prompt that is next, if the server is ready for it.
func (c *conversation) next(out *sdk.Out) {
	p, ok := c.Dequeue()
	if !ok {
		return
	}
	c.TurnStart(out)
	c.running, c.interrupting, c.aborting, c.failure, c.cost, c.last = false, false, false, nil, nil, ""
	c.steps, c.inStep, c.idles = 0, false, 0
	clear(c.messages)
	clear(c.parts)
	for id := range c.prompts {
		c.prompts[id] = false
	}
	body := prompt{Variant: c.variant, System: c.opts.GetSystemPrompt(), Parts: c.Parts}
	c.Parts = nil
	if provider, name, err := splitModel(c.model); err == nil {
		body.Model = &modelName{provider, name}
	}
	if schema := c.opts.GetJsonSchema(); schema != "" {
		body.Format = &format{"json_schema", json.RawMessage(schema)}
	}
	text, err := json.Marshal(part{Type: "text", Text: string(p.Text)})
	if err != nil {
		return
	}
	body.Parts = append(body.Parts, text)
	c.request("prompt", "POST", c.inSession("/prompt_async"), body, out)
}

// abort ends the turn, as soon as the server works on it: before that there would be
// nothing to end, and then it would begin.
func (c *conversation) abort(out *sdk.Out) {
	if c.interrupting && c.running && !c.aborting {
		c.aborting = true
		c.request("abort", "POST", c.inSession("/abort"), nil, out)
	}
}

// idle says that the server has nothing to do: with this turn, if its last message is
// finished. A turn that fails is over the second time.
func (c *conversation) idle(out *sdk.Out) {
	if !c.Busy() || !c.running {
		return
	}
	m := c.messages[c.last]
	switch {
	case c.failure == nil && m == nil:
		c.settle(unfinished, out) // it is still the turn before, or nothing will come
	case c.failure == nil && m.done:
		c.over(out)
	case c.failure != nil:
		if c.idles++; c.idles > 1 && m != nil && m.done {
			c.over(out)
		}
	}
}

// over ends the turn.
func (c *conversation) over(out *sdk.Out) {
	c.settle(0, out)
	if c.failure == nil {
		c.Main().End(out)
	} else {
		c.Main().Abort(out)
	}
	c.endStep(out)
	c.drop()
	c.TurnEnd(c.failure, c.cost, out)
	clear(c.children)
	c.Done()
	c.next(out)
	c.Settle(out)
}

// settle has the turn end after a while, if nothing else ends it; 0 is never.
func (c *conversation) settle(after time.Duration, out *sdk.Out) {
	if c.settling || after > 0 {
		c.settling = after > 0
		out.SetTimer(settleTimer, after)
	}
}

func (c *conversation) endStep(out *sdk.Out) {
	if c.inStep {
		c.inStep = false
		out.Event(pluginapi.StepEnd{TurnIndex: c.Turns(), StepIndex: c.steps})
		c.steps++
	}
}
