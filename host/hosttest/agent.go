package hosttest

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Agent is one process of the scripted agent, for the goroutine of its script alone. When
// amux ends the process, by a stop, a limit or its host's end, every method ends that
// goroutine as runtime.Goexit does: deferred functions run. A script that waits for
// something else watches Context.
type Agent struct {
	p     *process
	cwd   string
	env   []string
	turns int
	turn  bool // one has begun
	asked int
	ended bool
	buf   []byte // of stdin
	queue []reply
}

// line is what the agent prints for its adapter.
type line struct {
	Do      string          `json:"do"` // event, turn, idle, outcome
	Type    pluginapi.Type  `json:"type,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	Code    pluginapi.Code  `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
	Retry   bool            `json:"retry,omitempty"`
}

// reply is what the adapter writes to the agent's stdin, a line for each.
type reply struct {
	Kind string `json:"kind"` // prompt, approve, deny, answer, interrupt, model
	ID   string `json:"id,omitempty"`
	Text string `json:"text,omitempty"`
}

// Cwd is the folder in which the agent works: it may change files there.
func (a *Agent) Cwd() string { return a.cwd }

// Getenv is a variable of the agent's environment.
func (a *Agent) Getenv(name string) string {
	for _, entry := range a.env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Context ends with the process.
func (a *Agent) Context() context.Context { return a.p.ctx }

// Prompt ends the turn, if one has begun, waits for the next prompt and begins a turn. It
// returns false when no prompt will follow.
func (a *Agent) Prompt() (text string, ok bool) {
	a.endTurn()
	r, ok := a.next(func(r reply) bool { return r.Kind == code.InputPrompt })
	if !ok {
		return "", false
	}
	a.turn = true
	a.print(line{Do: "turn"})
	a.Emit(pluginapi.TurnStart{TurnIndex: a.turns})
	return r.Text, true
}

func (a *Agent) endTurn() {
	if !a.turn {
		return
	}
	a.turn = false
	a.Emit(pluginapi.TurnEnd{TurnIndex: a.turns})
	a.turns++
	a.print(line{Do: "idle"})
}

// Say emits a whole message: its start, one text_delta for each part, its stop.
func (a *Agent) Say(parts ...string) {
	a.Emit(pluginapi.MessageStart{})
	for _, part := range parts {
		a.Emit(pluginapi.TextDelta{Delta: part})
	}
	a.Emit(pluginapi.MessageStop{Text: strings.Join(parts, "")})
}

// Emit emits events, as an adapter does. It panics for types that the host alone writes.
func (a *Agent) Emit(events ...pluginapi.Payload) {
	for _, e := range events {
		if pluginapi.HostOnly(e.EventType()) {
			panic(fmt.Sprintf("hosttest: only the host emits %s", e.EventType()))
		}
		data, err := pluginapi.AppendPayload(nil, e)
		if err != nil {
			panic(fmt.Sprintf("hosttest: %v", err))
		}
		a.print(line{Do: "event", Type: e.EventType(), Data: data})
	}
}

// Ask asks for permission and waits for the answer: of the host's rules, of whoever calls
// Approve or Deny. An empty InteractionID gets one.
func (a *Agent) Ask(request pluginapi.ApprovalRequest) (approved bool) {
	if request.InteractionID == "" {
		a.asked++
		request.InteractionID = fmt.Sprintf("ask-%d-%d", a.p.spawn, a.asked)
	}
	if request.RiskLevel == "" {
		request.RiskLevel = "medium"
	}
	a.Emit(request)
	r, ok := a.next(func(r reply) bool {
		return (r.Kind == code.InputApprove || r.Kind == code.InputDeny) && r.ID == request.InteractionID
	})
	return ok && r.Kind == code.InputApprove
}

// AskShell is Ask for a shell command.
func (a *Agent) AskShell(command string) (approved bool) {
	return a.Ask(pluginapi.ApprovalRequest{Action: "run a command", Detail: command, ToolName: "shell", ToolKind: pluginapi.ToolShell})
}

// Question asks the user something and waits for the answer; false says that none will
// come.
func (a *Agent) Question(text string) (answer string, ok bool) {
	a.asked++
	id := fmt.Sprintf("question-%d-%d", a.p.spawn, a.asked)
	a.Emit(pluginapi.InputRequired{InteractionID: id, Question: text, Source: "agent"})
	r, ok := a.next(func(r reply) bool { return r.Kind == code.InputAnswer && r.ID == id })
	return r.Text, ok
}

// Interrupted waits until somebody interrupts the turn; false says that the input ended.
func (a *Agent) Interrupted() bool {
	_, ok := a.next(func(r reply) bool { return r.Kind == code.InputInterrupt })
	return ok
}

// Spend reports tokens and money, as the differences since the last report.
func (a *Agent) Spend(inputTokens, outputTokens int64, usd float64) {
	a.Emit(pluginapi.TokenUsage{InputTokens: &inputTokens, OutputTokens: &outputTokens})
	if usd > 0 {
		a.Emit(pluginapi.Cost{Cost: pluginapi.Money{USD: usd}})
	}
}

// Log prints a line on stderr, which becomes a log event.
func (a *Agent) Log(text string) {
	a.write(a.p.stderr, []byte(text+"\n"))
}

// Sleep does nothing for a while, or until the process is ended.
func (a *Agent) Sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.p.ctx.Done():
	}
	a.check()
}

// Fail ends the process with an error of amux, as an adapter reports it: RATE_LIMITED,
// AUTH_ERROR. An error that may be retried is retried where the RunSpec says so.
func (a *Agent) Fail(c pluginapi.Code, message string) {
	a.print(line{Do: "outcome", Code: c, Message: message, Retry: retryable[c]})
	a.Exit(1)
}

// retryable are the errors that pass.
var retryable = map[pluginapi.Code]bool{
	pluginapi.CodeRateLimited: true, pluginapi.CodeOverloaded: true, pluginapi.CodeNetwork: true, pluginapi.CodeAgentCrash: true,
}

// Exit ends the process with that code, in the middle of a turn or not.
func (a *Agent) Exit(code int) {
	a.check()
	a.p.die(exited(code))
	runtime.Goexit()
}

// Crash ends the process as a signal does.
func (a *Agent) Crash() {
	a.check()
	a.p.die(signaled(syscall.SIGKILL))
	runtime.Goexit()
}

// finish is the end of a script that returns.
func (a *Agent) finish() {
	a.endTurn()
	a.print(line{Do: "outcome"})
	a.Exit(0)
}

func (a *Agent) print(l line) {
	data, err := json.Marshal(l)
	if err != nil {
		panic(fmt.Sprintf("hosttest: %v", err))
	}
	a.write(a.p.stdout, append(data, '\n'))
}

func (a *Agent) write(to *pipe, data []byte) {
	a.check()
	_, _ = to.write(data, a.p.ctx.Done()) // nobody reads any more: the agent is about to be ended
	a.check()
}

// check ends a process that was killed, and holds one that is paused.
func (a *Agent) check() {
	a.p.hold()
	if a.p.ctx.Err() != nil {
		runtime.Goexit()
	}
}

// next waits for the next line of stdin that is wanted. Others stay for later.
func (a *Agent) next(wanted func(reply) bool) (reply, bool) {
	for i, r := range a.queue {
		if wanted(r) {
			a.queue = append(a.queue[:i:i], a.queue[i+1:]...)
			return r, true
		}
	}
	for !a.ended {
		a.check()
		text, rest, whole := strings.Cut(string(a.buf), "\n")
		if !whole {
			var b [4096]byte
			n, err := a.p.stdin.read(b[:], a.p.ctx.Done())
			a.check()
			a.buf = append(a.buf, b[:n]...)
			a.ended = err != nil
			continue
		}
		a.buf = []byte(rest)
		var r reply
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			panic(fmt.Sprintf("hosttest: the adapter wrote %q: %v", text, err))
		}
		if wanted(r) {
			return r, true
		}
		a.queue = append(a.queue, r)
	}
	return reply{}, false
}
