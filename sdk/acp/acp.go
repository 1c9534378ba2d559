// Package acp is a codec for the Agent Client Protocol, version 1: JSON-RPC over
// lines, with which an editor, or amux, drives a coding agent. It takes the
// client's part of a conversation: it opens or loads a session, writes prompts,
// answers requests for permission, and turns updates into events.
//
// It is a codec, so it has no files and no terminals to offer: it says so in the
// handshake, and refuses such requests. Nothing here knows an agent; what agents
// do differently is in Config. plan.go has the part of a plan that is the same for
// all of them.
package acp

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/jsonrpc"
	"github.com/amux-dev/amux/sdk/turn"
)

// Config is what an agent does in its own way. The zero value of each field but
// Agent is what the protocol says.
type Config struct {
	// Agent is its name in messages, Guidance how to sign in, Refusals what it prints
	// when it refuses to start, Linger how long it may take to exit.
	Agent    string
	Guidance []string
	Refusals []turn.Refusal
	Linger   time.Duration
	// Tested is the version that the adapter was tested with.
	Tested string

	Session   Session
	Tools     Tools
	Questions Questions
	Words     Words
	Failures  Failures
	Usage     Usage
}

// Session is how the agent's session is opened and what it is set to.
type Session struct {
	// Authenticate is the way to sign in that the agent is asked for before a session is
	// opened, if it names that way: one that takes what is there and asks nobody.
	Authenticate string
	// Mode is what the session's mode is set to if it is another one: one in which
	// the agent asks.
	Mode string
	// ModelByPlan and EffortByPlan: the plan has seen to it already.
	ModelByPlan, EffortByPlan bool
	// Model gives the agent's own name of a model; nil: the name as it is.
	Model func(name string) string
	// Absent reports whether the answer to load or fork a session means that there is
	// none; nil: an error says so. An agent that needs it is not asked to resume where
	// it can load: Hermes, for one, then begins a session of another id.
	Absent func(result jsonl.Value) bool
}

// Tools is how to read what an agent says of its tools.
type Tools struct {
	// Name reads the name of a tool from its first tool_call; "" is its kind.
	Name func(call jsonl.Value) string
	// Detail is what a tool is for, given its name and all that was told of it; an
	// empty one is what its kind says.
	Detail func(name string, call Call) turn.Detail
	// Complete adds to the result of a tool what only this agent tells: its exit
	// code, that it has failed.
	Complete func(update jsonl.Value, d turn.Detail, r *turn.Result)
	// Output is what a command has printed so far, of what an update says; nil: all
	// the text.
	Output func(update jsonl.Value) string
	// Whole: the first update of a tool has all that will be told of its input,
	// whatever its status.
	Whole bool
}

// Questions is how an agent asks.
type Questions struct {
	// Asks reports whether a question, which has a tool of its own, is about a tool
	// that was told before; nil: questions name their tool.
	Asks func(asked jsonl.Value, call Call) bool
	// InputFirst: the input that was told before a question is the tool's own; the
	// question shows it in another way.
	InputFirst bool
	// Approval reads from the message of a form that it asks whether a tool may be used,
	// and what for; false: it is a question, or it cannot be told what for. nil: forms are
	// questions.
	Approval func(message string) (Approval, bool)
	// SilentDenial: nothing more is told of a tool that was denied.
	SilentDenial bool
}

// Words is how to read what stands in the model's place and is not the model's.
type Words struct {
	// Thought takes from a piece of a thought what is not the model's.
	Thought func(text string) string
	// Aside reports whether a piece of a message is not the model's, and which
	// event it is instead; nil: none.
	Aside func(text string) (event pluginapi.Payload, aside bool)
	// Error reads a failed request of the model from a piece of a message; nil: it is not
	// an error.
	Error func(text string) *pluginapi.Outcome
}

// Failures is how an agent says that something has gone wrong.
type Failures struct {
	// Request reads the error that a request is answered with; nil: by its code and
	// text.
	Request func(e *jsonrpc.Error) *pluginapi.Outcome
	// Retry reads from a line of stderr that a request of the model is made again, and
	// whether because the provider limits them; nil: the agent does not say so there.
	Retry func(line []byte) (event pluginapi.Retry, limited, ok bool)
	// Wordless is what a turn means that ends well without a word: a request of the
	// model has failed, and the agent does not say so; empty: nothing.
	Wordless string
	// Limit is what it means that a turn ends with max_turn_requests; nil: that the agent
	// has reached its limit of requests in a turn.
	Limit func(*pluginapi.RunOptions) *pluginapi.Outcome
}

// Usage is how an agent counts tokens.
type Usage struct {
	// Read reads the tokens of the response to a prompt; nil: from its usage.
	Read func(result jsonl.Value) (pluginapi.TokenUsage, bool)
	// Chunk reads the tokens of a model request from a piece of a message.
	Chunk func(update jsonl.Value) (pluginapi.TokenUsage, bool)
	// Cumulative: usage is that of all prompts of the process so far.
	Cumulative bool
	// Counts reports whether usage is cumulative by the name that the agent gives
	// itself, and whether that is known; nil: what Cumulative says. The protocol says that
	// usage is of the whole session, but not all agents comply: an unknown one is taken
	// at the protocol's word until a figure becomes less.
	Counts func(agent string) (cumulative, known bool)
	// LastRequest: what a response tells of tokens is the last request's of the turn. A
	// turn of more than one says so.
	LastRequest bool
}

// Converse begins the conversation with one process, for a plan that was made
// with a State.
func Converse(config Config, start *pluginapi.Start) (sdk.Conversation, error) {
	opts := start.GetOptions()
	state := State{Servers: []Server{}}
	if data := start.GetState(); len(data) > 0 {
		if err := json.Unmarshal(data, &state); err != nil {
			return nil, fmt.Errorf("read the plan's state: %w", err)
		}
	}
	l := &link{Base: turn.Base{
		Agent: config.Agent, Guidance: config.Guidance, Refusals: config.Refusals, Linger: config.Linger,
		Start: start, Tested: config.Tested,
	}}
	l.Effort = opts.GetEffort()
	c := &conversation{
		link: l, config: &config, opts: opts, blocks: state.Blocks,
		settings: &settings{link: l, config: &config.Session},
		tools:    &tools{link: l, config: &config.Tools, calls: map[string]*Call{}},
		spending: &spending{link: l, config: &config.Usage},
	}
	c.questions = &questions{link: l, config: &config.Questions, tools: c.tools, ids: map[string]bool{}}
	c.opening = &opening{
		link: l, config: &config.Session, failures: &config.Failures, settings: c.settings, spending: c.spending,
		opts: opts, cwd: start.GetCwd(), servers: state.Servers,
	}
	return c, nil
}

// State is what a plan hands to the conversation. It holds no secret.
type State struct {
	Servers []Server          `json:"servers,omitempty"`
	Blocks  []json.RawMessage `json:"blocks,omitempty"` // attachments, for the first prompt
}

// Server is an MCP server in the words of the protocol.
type Server struct {
	Type    string      `json:"type,omitempty"` // http, sse; empty: stdio
	Name    string      `json:"name"`
	Command string      `json:"command,omitempty"`
	Args    []string    `json:"args,omitzero"`
	Env     []nameValue `json:"env,omitzero"`
	URL     string      `json:"url,omitempty"`
	Headers []nameValue `json:"headers,omitzero"`
}

type nameValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
