package turn

import (
	"time"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// Base is the part of a conversation that does not depend on the agent.
type Base struct {
	Writer
	Questions
	// Agent is its name in messages, Guidance how to sign in.
	Agent    string
	Guidance []string
	// Session is the agent's, once it is known.
	Session string
	// Cost is that of the whole conversation, if the agent tells it.
	Cost *pluginapi.Money
	// Linger, if set, is how long the agent may take to exit once its stdin is
	// closed; then it is sent SIGTERM.
	Linger time.Duration
	// Refusals are what the agent prints to stderr when it refuses to start.
	Refusals []Refusal
	// Start is that of the conversation, and Tested the version of the agent that the
	// adapter was tested with: they tell who passed a flag that the agent does not know.
	Start  *pluginapi.Start
	Tested string
	// OneTurn: the process is a turn, which ends with it.
	OneTurn bool
	// Outlives reports whether a tool goes on after its turn; nil: those in the background
	// do, with what is inside them.
	Outlives func(*Tool) bool
	// Window is how many tokens the model takes, if that is known.
	Window *int64

	queue
	started, ended int
	steps          int // of the turn that began last
	inStep         bool
	closed         bool // stdin
	stopped        bool // amux ends the process
	interrupted    bool
	signaled       bool // a SIGINT asks the process to end its turn
	told, failed   bool // an outcome; that the last one was a failure
	stderr         Stderr
}

// Handle takes the inputs that mean the same for every agent; false is for the
// adapter. At INPUT_END it closes stdin as soon as no prompt waits.
func (b *Base) Handle(in *pluginapi.Input, out *sdk.Out) bool {
	switch in.Kind {
	case pb.InputKind_INPUT_START, pb.InputKind_INPUT_COLLECTED:
	case pb.InputKind_INPUT_STDERR:
		out.Log("stderr", in.Data)
		b.stderr.Add(in.Data)
	case pb.InputKind_INPUT_END:
		b.ending = true
		b.Settle(out)
	case pb.InputKind_INPUT_TIMER:
		if in.Id != lingerTimer {
			return false
		}
		out.Signal("SIGTERM")
	case pb.InputKind_INPUT_STOP_REQUESTED, pb.InputKind_INPUT_TIMEOUT:
		b.stopped = true
	case pb.InputKind_INPUT_SPAWN_FAILED:
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeSpawn), Message: string(in.Data)})
	case pb.InputKind_INPUT_EXIT:
		b.exit(in.Exit, out)
	default:
		return false
	}
	return true
}

// HandleOnce is Handle for an agent that has its one prompt from the plan and prints JSON
// lines: line makes events of one, and reports whether it knows it. Such an agent takes no
// words; an interrupt is a SIGINT.
func (b *Base) HandleOnce(in *pluginapi.Input, out *sdk.Out, line func(jsonl.Value, *sdk.Out) bool) {
	switch in.Kind {
	case pb.InputKind_INPUT_STDOUT:
		ReadLine(in.Data, out, line)
	case pb.InputKind_INPUT_INTERRUPT:
		b.signaled = true
		out.Signal("SIGINT")
	case pb.InputKind_INPUT_PROMPT:
		b.Prompts++
	default:
		b.Handle(in, out)
	}
}

// ReadLine parses a line of JSON and passes it to read, which reports whether it knows it.
// What is not known, or not JSON, becomes a log event.
func ReadLine(line []byte, out *sdk.Out, read func(jsonl.Value, *sdk.Out) bool) {
	doc, err := jsonl.ParseObject(line)
	if err != nil {
		out.Log("stdout", line)
		return
	}
	defer doc.Release()
	if !read(doc.Value, out) {
		out.Log("stdout", line)
	}
}

// CloseStdin closes stdin once.
func (b *Base) CloseStdin(out *sdk.Out) {
	if !b.closed {
		b.closed = true
		out.CloseStdin()
		if b.Linger > 0 {
			out.SetTimer(lingerTimer, b.Linger)
		}
	}
}

const lingerTimer = "linger"

// Ending reports whether stdin is closed or amux ends the process.
func (b *Base) Ending() bool { return b.closed || b.stopped }

// InTurn reports whether a turn goes on.
func (b *Base) InTurn() bool { return b.started > b.ended }

// Turns is how many have ended.
func (b *Base) Turns() int { return b.ended }

// TurnStart begins a turn, if none goes on.
func (b *Base) TurnStart(out *sdk.Out) {
	if !b.InTurn() {
		b.NextTurn(out)
	}
}

// NextTurn begins a turn. An agent may do so before it has told how the one before went;
// what they end with then comes in the same order.
func (b *Base) NextTurn(out *sdk.Out) {
	b.idle, b.failed, b.steps = false, false, 0
	out.TurnStarted()
	out.Event(pluginapi.TurnStart{TurnIndex: b.started})
	b.started++
}

// Interrupt tells, once a turn, that the turn was interrupted.
func (b *Base) Interrupt(out *sdk.Out) {
	if !b.interrupted {
		b.interrupted = true
		out.Event(pluginapi.Interrupted{})
	}
}

// StepStart begins a request to the model; one that is open ends.
func (b *Base) StepStart(out *sdk.Out) {
	b.StepEnd(out)
	b.inStep = true
	out.Event(pluginapi.StepStart{TurnIndex: max(b.started-1, 0), StepIndex: b.steps, StepType: "model_request"})
}

// StepEnd ends the request to the model, if one is open.
func (b *Base) StepEnd(out *sdk.Out) {
	if b.inStep {
		b.inStep = false
		out.Event(pluginapi.StepEnd{TurnIndex: max(b.started-1, 0), StepIndex: b.steps})
		b.steps++
	}
}

// ends reports whether a tool, or what is inside one that has ended, ends with the turn.
func (b *Base) ends(t *Tool) bool {
	switch {
	case t == nil:
		return true
	case b.Outlives != nil:
		return !b.Outlives(t)
	}
	return b.foreground(t)
}

// CloseTurn ends what is open in the turn, as TurnEnd does: for an agent of which more is
// to be told before the end of the turn.
func (b *Base) CloseTurn(cutOff bool, out *sdk.Out) {
	if cutOff {
		b.abortStreams(func(s *Stream) bool { return b.ends(b.Tool(s.parent)) }, out)
	} else {
		b.Main().End(out)
	}
	b.CloseToolsWhere(b.ends, "the turn ended before the tool did", out)
	b.Withdraw(func(q *Question) bool { return b.ends(b.Tool(q.Parent)) }, out)
	b.StepEnd(out)
}

// TurnEnd ends the turn with its outcome; nil is success. What is open ends too, unless it
// outlives the turn.
func (b *Base) TurnEnd(outcome *pluginapi.Outcome, cost *pluginapi.Money, out *sdk.Out) {
	b.CloseTurn(outcome != nil, out)
	b.told, b.failed = true, outcome != nil
	switch {
	case outcome == nil:
		out.Outcome(&pluginapi.Outcome{})
	case outcome.Code == string(pluginapi.CodeAborted):
		b.Interrupt(out)
		out.Outcome(outcome)
	default:
		tell(outcome, b.Guidance, b.Window, out)
	}
	b.interrupted = false
	b.countTurn(cost, out)
}

// countTurn says that the turn has ended, if one went on.
func (b *Base) countTurn(cost *pluginapi.Money, out *sdk.Out) {
	if b.InTurn() {
		out.Event(pluginapi.TurnEnd{TurnIndex: b.ended, Cost: cost})
		b.ended++
	}
}

// Idle says once that the agent waits for a prompt.
func (b *Base) Idle(out *sdk.Out) {
	if !b.idle {
		b.idle = true
		out.Idle()
	}
}

// Aborted is the outcome of a turn that was interrupted.
func Aborted() *pluginapi.Outcome {
	return &pluginapi.Outcome{Code: string(pluginapi.CodeAborted), Message: "the turn was interrupted"}
}

// Stderr is the beginning and the end of what the agent wrote to stderr.
func (b *Base) Stderr() string { return b.stderr.Text() }

// exit is the end of the process. Its exit code follows the last turn and says
// nothing that the turn's outcome did not.
func (b *Base) exit(exit *pluginapi.Exit, out *sdk.Out) {
	asked := exit.GetAsked() || b.stopped || b.interrupted || b.signaled
	unclean := exit.GetSignal() != "" || exit.GetCode() != 0
	cutOff := b.InTurn() || !b.told && b.Prompts > 0
	startFailed := !b.told && unclean
	died := !asked && !b.closed && unclean && !b.failed

	b.AbortStreams(out)
	b.WithdrawAll(out)
	b.CloseTools("the agent ended before the tool did", out)
	b.StepEnd(out)
	switch {
	case (cutOff || startFailed) && asked && !b.failed:
		if b.signaled {
			b.Interrupt(out)
		}
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeAborted), Message: b.Agent + " was stopped"})
	case cutOff || died || startFailed:
		b.died(exit, cutOff || startFailed, out)
	case b.failed:
		// The last turn has told why.
	case !b.told:
		out.Outcome(&pluginapi.Outcome{})
	}
	if b.OneTurn {
		b.countTurn(nil, out)
	}
	if b.Session != "" {
		out.Event(pluginapi.SessionEnd{SessionID: b.Session, TurnCount: b.ended, Cost: b.Cost})
	}
}

// died tells why the process ended, unless what failed before has told it. unfinished: in
// a turn, or before the first.
func (b *Base) died(exit *pluginapi.Exit, unfinished bool, out *sdk.Out) {
	d := Death{
		Agent: b.Agent, Exit: exit, Stderr: &b.stderr, Refusals: b.Refusals,
		Began: b.Session != "" || b.told, Start: b.Start, Tested: b.Tested,
	}
	o := d.refused()
	if o == nil || !unfinished {
		if b.failed {
			return
		}
		d.Refusals = nil
		o = d.Outcome()
	}
	tell(o, b.Guidance, b.Window, out)
}

// Fail tells an outcome that belongs to no turn, with its event.
func (b *Base) Fail(o *pluginapi.Outcome, out *sdk.Out) {
	b.failed = true
	tell(o, b.Guidance, b.Window, out)
}
