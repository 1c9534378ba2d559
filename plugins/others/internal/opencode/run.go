package opencode

import (
	"strconv"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// once is the codec of one process with the driver run. There is no line that says
// that the turn is over: the process exits.
type once struct {
	turn.Base
	resumed, forks bool
	forkedFrom     string
	cost           *pluginapi.Money
	checkpoints    Checkpoints
	failure        *pluginapi.Outcome
}

func newOnce(start *pluginapi.Start) *once {
	o := start.GetOptions()
	c := &once{
		Base:    turn.Base{Agent: agentID, Guidance: authGuidance, Refusals: refusals, Start: start, Tested: TestedVersion},
		resumed: o.GetResume() != "" || o.GetContinueLast(), forks: o.GetFork(),
	}
	if c.forks {
		c.forkedFrom = o.GetResume()
	}
	c.Prompts = 1 // in the plan
	return c
}

// Handle turns one input into outputs.
func (c *once) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_EXIT:
		c.over(in.Exit, out)
		c.Base.Handle(in, out)
	default:
		c.HandleOnce(in, out, c.line)
	}
	return nil
}

func (c *once) line(line jsonl.Value, out *sdk.Out) bool {
	kind := string(line.Bytes("type"))
	switch kind {
	case "step_start", "text", "reasoning", "tool_use", "step_finish", "error":
	default:
		return false
	}
	c.begin(line.Text("sessionID"), out)
	part := line.Get("part")
	main := c.Main()
	switch kind {
	case "step_start":
		c.StepStart(out)
		c.checkpoints.Emit(c.Session, part, out)
	case "text":
		main.Text(part.Text("messageID"), part.Text("text"), out)
		main.End(out)
	case "reasoning":
		main.Think(part.Text("text"), out)
		main.End(out)
	case "tool_use":
		c.tool(part, out)
	case "step_finish":
		out.Event(Tokens(part.Get("tokens"), ""))
		if usd, ok := part.Float("cost"); ok && usd > 0 {
			out.Event(pluginapi.Cost{Cost: pluginapi.Money{USD: usd}})
			if c.cost == nil {
				c.cost = &pluginapi.Money{}
			}
			c.cost.USD += usd
		}
		c.checkpoints.Emit(c.Session, part, out)
		c.StepEnd(out)
	case "error":
		c.failure = Reason(line.Get("error")) // a full context is told twice
	}
	return true
}

// Checkpoints are the states of the folder that the CLI keeps, each named by its tree's
// hash. The zero value is ready.
type Checkpoints struct{ last string }

// Emit emits the state at the start or end of a step, if it differs from the last.
func (c *Checkpoints) Emit(session string, part jsonl.Value, out *sdk.Out) {
	if id := part.Text("snapshot"); id != "" && id != c.last {
		c.last = id
		out.Event(pluginapi.SessionCheckpoint{SessionID: session, CheckpointID: id})
	}
}

// begin tells the session at its first line.
func (c *once) begin(id string, out *sdk.Out) {
	if c.Session != "" || id == "" {
		return
	}
	c.Session = id
	out.Event(pluginapi.SessionStart{SessionID: id, Resumed: c.resumed, ForkedFrom: c.forkedFrom})
	switch {
	case c.forkedFrom != "":
		out.Event(pluginapi.SessionFork{SessionID: id, ForkedFrom: c.forkedFrom})
	case c.resumed && !c.forks:
		out.Event(pluginapi.SessionResume{SessionID: id})
	}
	c.TurnStart(out)
}

// tool is told once, when it has ended.
func (c *once) tool(part jsonl.Value, out *sdk.Out) {
	state := part.Get("state")
	t := c.StartTool(part.Text("callID"), part.Text("tool"), "", out)
	if t == nil {
		return
	}
	input := state.Get("input")
	c.ReadyTool(t, input.Raw(), Detail(t.Name, input), out)
	text := state.Text("output")
	r := turn.Result{Text: text, Output: pluginapi.AppendString(nil, text)}
	if from, ok := state.Int("time", "start"); ok {
		if to, ok := state.Int("time", "end"); ok {
			ms := to - from
			r.DurationMS = &ms
		}
	}
	if state.Text("status") == "error" {
		r.Failed, r.CutOff, r.Text = true, true, state.Text("error")
	} else {
		Finish(&r, t.Detail, state.Get("metadata"))
	}
	c.EndTool(t, r, out)
}

// Reason reads an error of the provider, or of the CLI itself.
func Reason(e jsonl.Value) *pluginapi.Outcome {
	message := e.Text("data", "message")
	if message == "" {
		message = e.Text("name")
	}
	if e.Text("name") == "ContextOverflowError" {
		return &pluginapi.Outcome{Code: string(pluginapi.CodeContextExceeded), Message: message}
	}
	status, _ := e.Int("data", "statusCode")
	o := failure.Of(int(status), message)
	if seconds, err := strconv.ParseUint(e.Text("data", "responseHeaders", "retry-after"), 10, 32); err == nil {
		o.RetryAfterMs = seconds * 1000
	}
	return o
}

// over ends the turn: with the process, and by its exit code if no line has told
// an error.
func (c *once) over(exit *pluginapi.Exit, out *sdk.Out) {
	if !c.InTurn() || exit.GetAsked() || c.Ending() || exit.GetSignal() != "" || exit.GetCode() != 0 && c.failure == nil {
		return
	}
	c.Main().End(out)
	c.StepEnd(out)
	c.TurnEnd(c.failure, c.cost, out)
}
