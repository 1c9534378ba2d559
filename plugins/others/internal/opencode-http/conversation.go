package opencodehttp

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/plugins/others/internal/opencode"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// conversation is the codec of one server behind amux-bridge. It decides when turns begin
// and end; its parts do the rest.
type conversation struct {
	turn.Base
	attachments []json.RawMessage // for the first prompt
	server      server
	session     session
	questions   questions
	messages    messages

	// Of the turn.
	running      bool // the server works on the prompt
	interrupting bool // the user has asked for the end of the turn
	aborting     bool // the server was asked to end it
	failure      *pluginapi.Outcome
	settling     bool // the timer is set
	idles        int  // how often the server was idle since it failed
}

const (
	// settleTimer ends a turn that has failed. OpenCode says twice that it is idle,
	// once before it has finished the failed message; in between it takes prompts
	// which it never runs, and the second time may come when the next one does.
	settleTimer = "settle"
	settled     = time.Second
	unfinished  = 10 * time.Second
	// linger: the bridge gives its server five seconds.
	linger = 10 * time.Second
)

// Converse begins the conversation with one server.
func (Adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	var st state
	if len(start.GetState()) > 0 {
		if err := json.Unmarshal(start.GetState(), &st); err != nil {
			return nil, fmt.Errorf("read the plan's state: %w", err)
		}
	}
	o := start.GetOptions()
	c := &conversation{
		Base:        turn.Base{Agent: agentID, Guidance: opencode.Guidance(), Refusals: refusals, Linger: linger, Start: start, Tested: opencode.TestedVersion},
		attachments: st.Parts,
		server:      server{cwd: start.GetCwd(), foreign: st.Foreign, asked: map[string]string{}},
	}
	c.session = session{base: &c.Base, server: &c.server, opts: o, model: o.GetModel()}
	c.questions = questions{base: &c.Base, server: &c.server, open: map[string]bool{}}
	c.messages = messages{
		base: &c.Base, questions: &c.questions, children: map[string]string{},
		prompts: map[string]bool{}, heads: map[string]*message{}, parts: map[string]*block{},
	}
	for _, s := range o.GetMcpServers() {
		c.messages.servers = append(c.messages.servers, s.GetName())
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
		c.questions.approve(in.Id, out)
	case pb.InputKind_INPUT_DENY:
		c.questions.deny(in.Id, string(in.Data), out)
	case pb.InputKind_INPUT_ANSWER:
		c.questions.answer(in.Id, in.Data, out)
	case pb.InputKind_INPUT_INTERRUPT:
		c.interrupting = c.Busy()
		c.abort(out)
	case pb.InputKind_INPUT_SET_MODEL:
		c.session.setModel(string(in.Data), out)
	case pb.InputKind_INPUT_TIMER:
		switch in.Id {
		case settleTimer:
			if c.Busy() && c.settling {
				c.over(out)
			}
		case heldTimer:
			c.questions.release("", out)
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
		c.session.ready(doc.Value, out)
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

// response is what the server says to a request of ours.
func (c *conversation) response(line jsonl.Value, out *sdk.Out) bool {
	what, failed, ok := c.server.response(line)
	switch what {
	case "prompt":
		if failed != nil {
			c.failure = failed
			c.over(out)
		}
	case "abort", "approve", "deny", "answer":
		if failed != nil { // it came too late
			out.Event(pluginapi.Debug{Level: "warn", Message: what + ": " + failed.Message})
		}
	default:
		if c.session.response(what, line.Get("body"), failed, out) {
			c.begin(out)
		}
	}
	return ok
}

func (c *conversation) begin(out *sdk.Out) {
	c.Ready()
	c.next(out)
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
	c.running, c.interrupting, c.aborting, c.failure, c.idles = false, false, false, nil, 0
	c.messages.begin()
	body := prompt{Variant: c.session.variant, System: c.Start.GetOptions().GetSystemPrompt(), Parts: c.attachments}
	c.attachments = nil
	if provider, name, err := splitModel(c.session.model); err == nil {
		body.Model = &modelName{provider, name}
	}
	if schema := c.Start.GetOptions().GetJsonSchema(); schema != "" {
		body.Format = &format{"json_schema", json.RawMessage(schema)}
	}
	text, err := json.Marshal(part{Type: "text", Text: string(p.Text)})
	if err != nil {
		return
	}
	body.Parts = append(body.Parts, text)
	c.server.request("prompt", "POST", c.session.path("/prompt_async"), body, out)
}

// abort ends the turn, as soon as the server works on it: before that there would be
// nothing to end, and then it would begin.
func (c *conversation) abort(out *sdk.Out) {
	if c.interrupting && c.running && !c.aborting {
		c.aborting = true
		c.server.request("abort", "POST", c.session.path("/abort"), nil, out)
	}
}

// idle says that the server has nothing to do: with this turn, if its last message is
// finished. A turn that fails is over the second time.
func (c *conversation) idle(out *sdk.Out) {
	if !c.Busy() || !c.running {
		return
	}
	m := c.messages.newest()
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
	c.questions.drop()
	c.TurnEnd(c.failure, c.messages.cost, out)
	clear(c.messages.children)
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
