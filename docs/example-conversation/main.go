// Command example-conversation is a small adapter for an agent that can be talked to: it
// lets amux run talker, a program of eleven lines of shell beside it.
package main

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/turn"
)

type adapter struct{}

var _ sdk.Converser = adapter{}

func (adapter) Describe() *pluginapi.Agent {
	return &pluginapi.Agent{
		Id: "talker", DisplayName: "Talker", Summary: "asks before it writes down what it is told",
		Program:      "talker",
		Capabilities: &pluginapi.Capabilities{MultiTurn: true, Approvals: true, Interrupt: true, TextStreaming: true},
		EventTypes: []string{
			"turn_start", "message_start", "text_delta", "message_stop", "turn_end",
			"approval_request", "approval_granted", "approval_denied", "interrupted",
		},
	}
}

func (adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	return &pluginapi.Plan{Program: req.Program, Stdin: pluginapi.StdinOpen}, nil
}

// Converse begins the conversation with one process of talker.
func (adapter) Converse(*pluginapi.Start) (sdk.Conversation, error) {
	c := &conversation{Base: turn.Base{Agent: "talker"}}
	c.Ready() // it takes a prompt at once
	return c, nil
}

// conversation keeps what is true of one process. turn.Base has what any agent needs:
// prompts that wait, turns, messages, open questions, and what an exit means.
type conversation struct{ turn.Base }

// Handle turns one input into events, and bytes for the agent's stdin.
func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_PROMPT:
		c.Enqueue(in.Id, in.Data)
		c.next(out)
	case pb.InputKind_INPUT_STDOUT:
		c.line(in.Data, out)
	case pb.InputKind_INPUT_APPROVE:
		if q := c.Take(in.Id, out); q != nil {
			out.Write([]byte("yes\n"))
			c.Granted(q, out)
		}
	case pb.InputKind_INPUT_DENY:
		if q := c.Take(in.Id, out); q != nil {
			out.Write([]byte("no\n"))
			c.Denied(q, string(in.Data), out)
		}
	case pb.InputKind_INPUT_INTERRUPT:
		c.Interrupt(out)
		out.Signal("SIGINT")
	default:
		c.Base.Handle(in, out) // stderr, the end, the exit
	}
	return nil
}

// next writes the prompt that waits, if talker has finished with the one before.
func (c *conversation) next(out *sdk.Out) {
	if prompt, ok := c.Dequeue(); ok {
		c.TurnStart(out)
		out.Write([]byte("prompt " + strconv.Quote(string(prompt.Text)) + "\n"))
	}
}

// line reads a line that talker has printed. What it does not know is logged.
func (c *conversation) line(line []byte, out *sdk.Out) {
	var said struct{ Type, Text, Path string }
	if json.Unmarshal(line, &said) != nil {
		out.Log("stdout", line)
		return
	}
	switch said.Type {
	case "text":
		c.Main().Text("", said.Text, out)
	case "ask":
		c.Ask(&turn.Question{
			ID:     "ask-" + strconv.FormatUint(out.N(), 10), // unique in the run
			Action: "write", Tool: "write", ToolKind: pluginapi.ToolFile, Detail: said.Path, Risk: "medium",
		}, out)
	case "done":
		c.TurnEnd(nil, nil, out) // no error, and no cost that it tells
		c.Done()
		c.next(out)
		c.Settle(out)
	default:
		out.Log("stdout", line)
	}
}

func main() { sdk.Serve("talker", "0.1.0", adapter{}) }
