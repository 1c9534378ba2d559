package opencodehttp

import (
	"math"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/plugins/others/internal/opencode"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// messages are those of the model, with their texts, thoughts and tools: of the main
// conversation and of sub-agents.
type messages struct {
	base        *turn.Base
	questions   *questions
	servers     []string          // MCP
	children    map[string]string // sessions of sub-agents → the tool that has begun each
	checkpoints opencode.Checkpoints

	// Of the turn.
	prompts map[string]bool // the user's messages of this turn; false: of those before
	heads   map[string]*message
	last    string // the newest of the main conversation
	parts   map[string]*block
	cost    *pluginapi.Money
}

// message is one of them, block a text or thought of it.
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

// begin forgets the messages of the turn before.
func (m *messages) begin() {
	m.last, m.cost = "", nil
	clear(m.heads)
	clear(m.parts)
	for id := range m.prompts {
		m.prompts[id] = false
	}
}

// newest is the newest message of the main conversation; nil if the turn has none.
func (m *messages) newest() *message { return m.heads[m.last] }

// head is that of a message, told at its beginning, and several times at its end. Of the
// main conversation it reports whether a message begins, and whether one is done.
func (m *messages) head(session string, info jsonl.Value, out *sdk.Out) (begins, done bool) {
	id := info.Text("id")
	main := session == m.base.Session
	if string(info.Bytes("role")) != "assistant" {
		if _, known := m.prompts[id]; !known && main {
			m.prompts[id] = m.base.Busy()
		}
		return false, false
	}
	// Messages of the past are told again, all of them after a fork.
	if !m.base.Busy() || main && !m.prompts[info.Text("parentID")] {
		return false, false
	}
	head := m.heads[id]
	if head == nil {
		head = &message{summary: info.Bool("summary")}
		m.heads[id] = head
		if begins = main; begins {
			m.last = id
		}
	}
	if !info.Exists("time", "completed") || head.done {
		return begins, false
	}
	head.done = true
	if main && !info.Exists("error") && info.Exists("structured") && !info.IsNull("structured") {
		// The answer is no text of the model's but the input of a tool.
		m.base.Main().End(out)
		m.base.Main().Text(id, string(info.Raw("structured")), out)
		m.base.Main().End(out)
	}
	return begins, main
}

// lose takes back what a request to the model has given that is made again.
func (m *messages) lose(parent, reason string, out *sdk.Out) {
	m.base.Stream(parent).Abandon(reason, out)
	for _, b := range m.parts {
		b.lost = b.lost || b.parent == parent
	}
}

// part is a piece of a message, told again with each change.
func (m *messages) part(parent string, p jsonl.Value, out *sdk.Out) bool {
	head := m.heads[p.Text("messageID")]
	kind := string(p.Bytes("type"))
	switch kind {
	case "text", "reasoning", "tool", "step-start", "step-finish":
	case "snapshot", "patch", "file", "agent", "subtask", "compaction", "retry":
		return true
	default:
		return false
	}
	if head == nil || !m.base.Busy() {
		return true // the user's own, or of the past
	}
	switch kind {
	case "text", "reasoning":
		if !head.summary {
			m.text(parent, p, out)
		}
	case "tool":
		m.tool(parent, p, out)
	case "step-start":
		if parent == "" {
			m.base.StepStart(out)
			m.checkpoints.Emit(m.base.Session, p, out)
		}
	case "step-finish":
		if head.tokens {
			break // told again
		}
		head.tokens = true
		out.Event(opencode.Tokens(p.Get("tokens"), ""))
		if usd, ok := p.Float("cost"); ok && usd > 0 {
			out.Event(pluginapi.Cost{Cost: pluginapi.Money{USD: usd}})
			if m.cost == nil {
				m.cost = &pluginapi.Money{}
			}
			// Sums of floating-point numbers have noise far below a cent.
			m.cost.USD = math.Round((m.cost.USD+usd)*1e10) / 1e10
		}
		if parent == "" {
			m.checkpoints.Emit(m.base.Session, p, out)
			m.base.StepEnd(out)
		}
	}
	return true
}

// text is the beginning or the end of a text or thought, with all of it.
func (m *messages) text(parent string, p jsonl.Value, out *sdk.Out) {
	id := p.Text("id")
	b := m.parts[id]
	if b == nil {
		b = &block{parent: parent, thought: string(p.Bytes("type")) == "reasoning"}
		m.parts[id] = b
	}
	if b.lost || p.Bool("synthetic") || p.Bool("ignored") {
		return
	}
	if whole := p.Text("text"); len(whole) > b.told {
		// A text may be cut at its end: what was streamed stays.
		m.say(parent, p.Text("messageID"), b, whole[b.told:], out)
	}
	if p.Exists("time", "end") {
		m.base.Stream(parent).End(out)
	}
}

func (m *messages) delta(parent string, p jsonl.Value, out *sdk.Out) {
	b := m.parts[p.Text("partID")]
	if b == nil || b.lost || !m.base.Busy() || p.Text("field") != "text" {
		return
	}
	m.say(parent, p.Text("messageID"), b, p.Text("delta"), out)
}

func (m *messages) say(parent, messageID string, b *block, text string, out *sdk.Out) {
	b.told += len(text)
	if b.thought {
		m.base.Stream(parent).Think(text, out)
	} else {
		m.base.Stream(parent).Text(messageID, text, out)
	}
}

func (m *messages) tool(parent string, p jsonl.Value, out *sdk.Out) {
	name, state := p.Text("tool"), p.Get("state")
	t := m.base.StartTool(p.Text("callID"), name, parent, out)
	if t == nil {
		return // it has ended
	}
	status := string(state.Bytes("status"))
	if status == "pending" {
		return
	}
	input := state.Get("input")
	m.base.ReadyTool(t, input.Raw(), m.detail(name, input), out)
	m.questions.release(t.ID, out)
	if id := state.Text("metadata", "sessionId"); id != "" && t.Detail.Kind == turn.Subagent {
		m.children[id] = t.ID
	}
	switch status {
	case "running":
		m.base.Printed(t, state.Text("metadata", "output"), out)
		return
	case "completed", "error":
	default:
		return
	}
	text := state.Text("output")
	r := turn.Result{Text: text, Output: pluginapi.AppendString(nil, text)}
	if from, ok := state.Int("time", "start"); ok {
		if to, ok := state.Int("time", "end"); ok {
			ms := to - from
			r.DurationMS = &ms
		}
	}
	if status == "error" {
		r.Failed, r.CutOff, r.Text = true, true, state.Text("error")
	} else {
		opencode.Finish(&r, t.Detail, state.Get("metadata"))
	}
	m.base.WithdrawTool(t.ID, out)
	m.base.EndTool(t, r, out)
}

// detail is what a tool is for. One of an MCP server is named SERVER_TOOL, so that
// the servers of the run tell where it is cut.
func (m *messages) detail(name string, input jsonl.Value) turn.Detail {
	for _, server := range m.servers {
		if tool, ok := strings.CutPrefix(name, server+"_"); ok {
			return turn.Detail{Kind: turn.MCP, Server: server, Tool: tool}
		}
	}
	return opencode.Detail(name, input)
}
