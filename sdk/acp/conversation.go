package acp

import (
	"encoding/json"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonrpc"
	"github.com/amux-dev/amux/sdk/turn"
)

// conversation is the codec of one process of an agent. It hands over prompts, and what
// the agent sends to the part that reads it.
type conversation struct {
	*link
	config    *Config
	opts      *pluginapi.RunOptions
	opening   *opening
	settings  *settings
	tools     *tools
	questions *questions
	spending  *spending

	blocks  []json.RawMessage // attachments, for the first prompt
	title   string            // of the session
	summary string            // of a compaction that goes on

	// Of the turn.
	said      bool               // something
	errorText *pluginapi.Outcome // said in the model's place
}

// Handle turns one input into outputs.
func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_START:
		return c.opening.handshake(out)
	case pb.InputKind_INPUT_STDERR:
		c.retry(in.Data, out)
		c.Base.Handle(in, out)
	case pb.InputKind_INPUT_STDOUT:
		return c.line(in.Data, out)
	case pb.InputKind_INPUT_PROMPT:
		c.Enqueue(in.Id, in.Data)
		return c.next(out)
	case pb.InputKind_INPUT_APPROVE:
		c.questions.approve(in.Id, out)
	case pb.InputKind_INPUT_DENY:
		c.questions.deny(in.Id, string(in.Data), out)
	case pb.InputKind_INPUT_ANSWER:
		c.questions.answer(in.Id, in.Data, out)
	case pb.InputKind_INPUT_INTERRUPT:
		return c.cancel(out)
	case pb.InputKind_INPUT_SET_MODEL:
		c.settings.models = append(c.settings.models, string(in.Data))
		if c.opening.done {
			return c.settings.switchModels(out)
		}
	case pb.InputKind_INPUT_TIMER:
		if in.Id != quietTimer {
			c.Base.Handle(in, out)
			return nil
		}
		if err := c.opening.pastOver(out); err != nil {
			return err
		}
		return c.next(out)
	default:
		c.Base.Handle(in, out)
	}
	return nil
}

// retry reads from a line of stderr that a request of the model is made again.
func (c *conversation) retry(line []byte, out *sdk.Out) {
	if c.config.Failures.Retry == nil {
		return
	}
	retry, limited, ok := c.config.Failures.Retry(line)
	if !ok {
		return
	}
	out.Event(retry)
	if limited {
		out.Event(pluginapi.RateLimited{RetryAfterMS: retry.DelayMS})
	}
}

// next writes the prompt that is next, if the agent is ready for it. Agents work at
// several requests at once, so that a prompt would overtake the model that it is for.
func (c *conversation) next(out *sdk.Out) error {
	if c.settings.switching > 0 {
		return nil
	}
	p, ok := c.Dequeue()
	if !ok {
		return nil
	}
	data, err := json.Marshal(textBlock(string(p.Text)))
	if err != nil {
		return err
	}
	prompt := append(c.blocks, data)
	c.blocks, c.said = nil, false
	c.spending.turn()
	c.TurnStart(out)
	return c.request("session/prompt", map[string]any{"sessionId": c.Session, "prompt": prompt}, nil, out)
}

// cancel ends the turn that goes on. The protocol requires that open questions are
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
	c.questions.cancel(out)
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
			c.questions.permission(m, out)
		case "elicitation/create":
			c.questions.elicit(m, out)
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
			c.questions.withdrawn(m.Params.Get("requestId").Raw(), out)
			return nil
		case !strings.HasPrefix(m.Method, "session/"):
			return nil // an agent's own, beside the protocol; it wants no answer
		}
		out.Log("stdout", line)
	}
	return nil
}

// response hands a response to the part that has asked. A prompt may be due after it.
func (c *conversation) response(m *jsonrpc.Message, out *sdk.Out) error {
	switch {
	case m.Call.Method == "session/prompt":
		c.ended(m, out)
		if err := c.next(out); err != nil {
			return err
		}
		c.Settle(out)
		return nil
	case m.Call.Note == switched:
		c.settings.switchedTo(m, out)
	default:
		if err := c.opening.response(m, out); err != nil {
			return err
		}
	}
	return c.next(out)
}

// ended is the response to a prompt: the turn is over.
func (c *conversation) ended(m *jsonrpc.Message, out *sdk.Out) {
	var outcome *pluginapi.Outcome
	if m.Error != nil {
		outcome = c.config.Failures.outcome(m.Error)
	} else {
		if m.Result.Text("stopReason") != "cancelled" {
			c.Main().End(out)
		}
		c.spending.tokens(m.Result, len(c.tools.calls) > 0, out)
		switch m.Result.Text("stopReason") {
		case "cancelled":
			outcome = turn.Aborted()
		case "max_turn_requests":
			outcome = &pluginapi.Outcome{Code: string(pluginapi.CodeTurnLimit), Message: c.Agent + " has reached the limit of requests in a turn"}
			if c.config.Failures.Limit != nil {
				outcome = c.config.Failures.Limit(c.opts)
			}
		case "end_turn":
			if c.config.Failures.Wordless != "" && !c.said {
				outcome = &pluginapi.Outcome{Code: string(pluginapi.CodeAgentFailed), Message: c.config.Failures.Wordless}
			}
		case "refusal":
			outcome = &pluginapi.Outcome{Code: string(pluginapi.CodeAgentFailed), Message: c.Agent + " refuses to go on with this prompt"}
		case "max_tokens":
			if !c.said && c.spending.answered == 0 {
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
	c.TurnEnd(outcome, c.spending.turnCost, out)
	clear(c.tools.calls)
	clear(c.questions.ids)
	c.Done()
}
