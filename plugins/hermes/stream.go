package main

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// refusals are what the CLI prints when it refuses to start, or ends.
var refusals = []turn.Refusal{
	{Text: "Session not found", Code: pluginapi.CodeSessionNotFound},
	{Text: "No session found", Code: pluginapi.CodeSessionNotFound},
	{Text: "ACP dependencies not installed", Code: pluginapi.CodeAgentNotInstalled, Hint: "pip install 'hermes-agent[acp]'"},
	{Text: "no provider configured", Code: pluginapi.CodeAuth},
}

// Converse begins the conversation with one process.
func (adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	o := start.GetOptions()
	if byACP(o) {
		return converse(start)
	}
	s := &lines{
		Base:    turn.Base{Agent: agentID, Guidance: authGuidance, Refusals: refusals, Start: start, Tested: minimumVersion},
		resumed: o.GetResume() != "" || o.GetContinueLast(),
		limited: o.GetMaxTurns() > 0,
	}
	s.Prompts = 1 // in the plan
	return s, nil
}

// lines is the codec of one process with the driver stream-json.
type lines struct {
	turn.Base
	resumed bool
	limited bool // its turn may end at a limit of requests
	calls   int
	open    []call // tools without a result, in the order they began
	said    bool   // text, since the last tool
	tries   int    // of a request that was cut off in the input of a tool
	last    []byte // the result of a resumed session whose cause stderr may tell; nil: none waits
}

// reconnecting is what the CLI says in the model's place when the connection breaks in
// the input of a tool. Where it breaks in a text the model is asked to go on from there.
const (
	reconnecting = "⚠ Connection dropped mid tool-call; reconnecting…"
	reconnected  = "the connection broke within the input of a tool"
)

// call is a tool that runs. The CLI names most by their name alone.
type call struct{ id, name, native string }

// Handle turns one input into outputs.
func (s *lines) Handle(in *pluginapi.Input, out *sdk.Out) error {
	if in.GetKind() == pb.InputKind_INPUT_EXIT && s.last != nil {
		if doc, err := jsonl.ParseObject(s.last); err == nil {
			s.end(doc.Value, out)
			doc.Release()
		}
		s.last = nil
	}
	s.HandleOnce(in, out, s.line)
	return nil
}

func (s *lines) line(line jsonl.Value, out *sdk.Out) bool {
	switch string(line.Bytes("type")) {
	case "system":
		if line.Text("subtype") != "init" {
			return false
		}
		if s.Session != "" {
			return true
		}
		s.Session = line.Text("session_id")
		out.Event(pluginapi.SessionStart{SessionID: s.Session, Model: line.Text("model"), Resumed: s.resumed})
		if s.resumed {
			out.Event(pluginapi.SessionResume{SessionID: s.Session})
		}
		s.TurnStart(out)
	case "text":
		text := line.Text("text")
		if strings.TrimSpace(text) == reconnecting {
			s.tries++
			s.Main().Abandon(reconnected, out)
			out.Event(pluginapi.Retry{Attempt: s.tries, Reason: reconnected})
			s.said = false
			break
		}
		if !s.said {
			text = strings.TrimLeft(text, "\n") // what parts it from the text before a tool
		}
		if text != "" {
			s.said = true
			s.Main().Text("", text, out)
		}
	case "tool_use":
		s.use(line, out)
	case "tool_result":
		s.result(line, out)
	case "result":
		if s.resumed && strings.Contains(line.Text("error"), notStarted) && !s.noSession() {
			// Stderr says which it was, and is read beside stdout: perhaps later.
			s.last = bytes.Clone(line.Raw())
			break
		}
		s.end(line, out)
	default:
		return false
	}
	return true
}

// use begins a tool, whose input is whole.
func (s *lines) use(line jsonl.Value, out *sdk.Out) {
	s.Main().End(out)
	s.said, s.tries = false, 0
	s.calls++
	c := call{id: line.Text("tool_call_id"), name: line.Text("name"), native: line.Text("tool_call_id")}
	if c.id == "" {
		c.id = "tool-" + strconv.Itoa(s.calls)
	}
	t := s.StartTool(c.id, c.name, "", out)
	if t == nil {
		return
	}
	s.open = append(s.open, c)
	input := line.Get("input")
	raw := input.Raw()
	if !input.IsObject() {
		raw = []byte("{}")
	}
	s.ReadyTool(t, raw, detail(c.name, input), out)
}

// result ends the tool of that id, or else the first of that name.
func (s *lines) result(line jsonl.Value, out *sdk.Out) {
	id, name := line.Text("tool_call_id"), line.Text("name")
	for i, c := range s.open {
		if c.name != name || c.native != id {
			continue
		}
		s.open = append(s.open[:i:i], s.open[i+1:]...)
		if t := s.Tool(c.id); t != nil {
			r := answer(t.Detail, line.Text("output"))
			r.Failed = r.Failed || line.Bool("is_error")
			r.DurationMS = line.IntPtr("duration_ms")
			s.EndTool(t, r, out)
		}
		return
	}
	out.Log("stdout", line.Raw())
}

// end ends the turn, the only one.
func (s *lines) end(line jsonl.Value, out *sdk.Out) {
	s.Main().EndAs(line.Text("text"), out)
	if t := line.Get("tokens"); t.IsObject() {
		if total, _ := t.Int("total"); total > 0 {
			out.Event(pluginapi.TokenUsage{
				InputTokens: t.IntPtr("input"), OutputTokens: t.IntPtr("output"),
				CacheReadTokens: t.IntPtr("cache_read"), CacheWriteTokens: t.IntPtr("cache_write"),
			})
		}
	}
	var outcome *pluginapi.Outcome
	switch code, _ := line.Int("exit_code"); {
	case code == 130:
		outcome = turn.Aborted()
	case s.limited && code == 1 && line.Text("error") == "":
		// The text is what the model says of what it has done so far.
		outcome = &pluginapi.Outcome{Code: string(pluginapi.CodeTurnLimit), Message: "hermes has reached the limit of requests in a turn"}
	case code != 0 || line.Text("error") != "":
		outcome = reason(line.Text("error"), line.Text("text"))
		if s.noSession() {
			outcome = &pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: "hermes has no session " + s.Session}
		}
	}
	s.TurnEnd(outcome, nil, out)
	s.Idle(out)
}

// notStarted is the error of a session that is not there as well as of no sign-in.
const notStarted = "credentials or agent init failed"

// noSession reports whether stderr says that the session is not there.
func (s *lines) noSession() bool {
	said := s.Stderr()
	return strings.Contains(said, "Session not found") || strings.Contains(said, "session_not_found")
}

// reason tells errors apart by what is said.
func reason(message, text string) *pluginapi.Outcome {
	if message == "" {
		message = text
	}
	if strings.Contains(message, notStarted) {
		return &pluginapi.Outcome{Code: string(pluginapi.CodeAuth), Message: message}
	}
	if tooLong.MatchString(message) {
		return &pluginapi.Outcome{Code: string(pluginapi.CodeContextExceeded), Message: message}
	}
	return failure.Of(failure.Status(message), message)
}
