package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/amux-dev/amux/host/internal/follow"
	"github.com/amux-dev/amux/host/internal/policy"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Run is one execution of an agent. Its methods may be called concurrently. What
// is asked of it is in its journal when the method returns, not yet done.
type Run struct {
	*recorded
	backend backend
}

// backend is where a run is: in this process, in another, or nowhere any more.
type backend interface {
	// events reads the events from number from on, until the run has ended.
	events(from uint64) cursor
	// wait waits for the end of the run; it returns an error only if ctx ended first.
	wait(ctx context.Context) (Result, error)
	// over reports whether the run is known to have ended.
	over() bool
	// command has the run's shim do something; what names it in errors.
	command(what string, do func(*shim.Conn) error) error
	// question returns the id of the question that an answer of a kind is for; an empty
	// id is the only one that waits.
	question(kind, id string) (string, error)
	waits(question string) bool
	// promptID is the id of the next prompt.
	promptID() string
}

// cursor reads events: as they are, or line by line, without their endings, until yield
// returns false.
type cursor interface {
	Copy(ctx context.Context, w io.Writer) error
	Lines(ctx context.Context, yield func(line []byte) bool) error
}

// ID is the run's ULID.
func (r *Run) ID() string { return r.meta.RunID }

// Dir is the run's directory, which is gone after a run without record.
func (r *Run) Dir() string { return r.dir.Dir }

// Events yields the events from number from on (1 is the first), and waits for more
// until the run has ended. Each call has a cursor of its own: a slow reader loses nothing
// and delays nobody. The error, if any, is the last pair: that of ctx if it ended first.
// The run goes on then, as it does when the caller leaves the loop.
func (r *Run) Events(ctx context.Context, from uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		reading, cancel := context.WithCancel(ctx)
		defer cancel()
		left, cut := false, false
		var last record.Head
		each := func(line []byte) bool {
			if cut = ctx.Err() != nil; cut {
				return false
			}
			var event Event
			head, err := last.Next(line)
			if err == nil {
				last, event = head, eventOf(head, line)
			}
			left = !yield(event, err)
			return !left
		}
		err := r.backend.events(from).Lines(reading, each)
		if left {
			return
		}
		if ended := ctx.Err(); ended != nil && (cut || err != nil) {
			err = ended
		} else if _, ours := errors.AsType[*pluginapi.Error](err); err != nil && !ours {
			err = pluginapi.Errorf(pluginapi.CodeInternal, "read events of run %s: %w", r.ID(), err)
		}
		if err != nil {
			yield(Event{}, err)
		}
	}
}

func parseEvent(line []byte) (Event, error) {
	head, err := record.Parse(line)
	if err != nil {
		return Event{}, err
	}
	return eventOf(head, line), nil
}

func eventOf(head record.Head, line []byte) Event {
	return Event{head.Type, head.RunID, head.Seq, head.Time, head.Agent, bytes.Clone(line)}
}

// CopyEvents writes the events from number from on to w, one JSON object a line,
// until the run has ended. It is the quick way: nothing is decoded. Of a run that
// another process hosts, HOST_GONE says that it will not end: see Recover.
func (r *Run) CopyEvents(ctx context.Context, w io.Writer, from uint64) error {
	return r.backend.events(from).Copy(ctx, w)
}

// Wait waits until the run has ended and nothing of it is left. The error is that of the
// Result, nil if the run was completed. If ctx ends first, the error is that of ctx, the
// Result is empty, and the run goes on.
func (r *Run) Wait(ctx context.Context) (Result, error) {
	result, err := r.backend.wait(ctx)
	if err == nil && result.Err != nil {
		err = result.Err
	}
	return result, err
}

// ---- control ----

// Send gives the agent another prompt. While it works on one, the agent decides
// whether it joins the running turn.
func (r *Run) Send(ctx context.Context, prompt string) error {
	if r.backend.over() {
		return r.notActive()
	}
	if prompt == "" {
		return invalid("there is no prompt")
	}
	if err := checkPrompt(prompt); err != nil {
		return err
	}
	if !r.spec.Conversation {
		return pluginapi.Errorf(pluginapi.CodeStdinNotAvailable, "run %s takes one prompt only", r.ID()).
			WithHint("start it as a conversation")
	}
	return input(r.backend, journal.Input{Kind: code.InputPrompt, ID: r.backend.promptID(), Text: prompt, By: "user"})
}

// Approve lets the agent do what it asked to do. An empty id is the one request that
// waits; updatedInput, if not nil, replaces the tool's input: CAPABILITY_ERROR where the
// agent does not take that. The first answer wins: ALREADY_ANSWERED.
func (r *Run) Approve(ctx context.Context, id string, updatedInput json.RawMessage) error {
	if updatedInput != nil && !json.Valid(updatedInput) {
		return invalid("the updated input is not JSON")
	}
	if updatedInput != nil && !r.agent.GetCapabilities().GetEditApprovals() {
		return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s takes what it asks for as it is", r.meta.Agent).
			WithHint("deny it, and say what to do instead")
	}
	in := journal.Input{Kind: code.InputApprove, ID: id}
	if updatedInput != nil {
		in.Data, _ = json.Marshal(map[string]json.RawMessage{"updated_input": updatedInput})
	}
	return r.respond(in)
}

// Allow is Approve, and has the host approve what the rules allow for the rest of the run,
// whoever hosts it then.
func (r *Run) Allow(ctx context.Context, id string, rules []string) error {
	if err := policy.CheckRules(rules, nil); err != nil {
		return err
	}
	return r.respond(journal.Input{Kind: code.InputApprove, ID: id, Allow: rules})
}

// Deny refuses what the agent asked for.
func (r *Run) Deny(ctx context.Context, id, reason string) error {
	return r.respond(journal.Input{Kind: code.InputDeny, ID: id, Text: reason})
}

// Answer answers a question. Where the event has several, text is a JSON object:
// question → answer.
func (r *Run) Answer(ctx context.Context, id, text string) error {
	return r.respond(journal.Input{Kind: code.InputAnswer, ID: id, Text: text})
}

// Waits reports whether the question of that id waits for people now: neither the host
// nor anybody else has answered it. Of a run that another process hosts that is what the
// events and the run's rules say.
func (r *Run) Waits(id string) bool { return r.backend.waits(id) }

// respond gives an answer; its ID may be empty.
func (r *Run) respond(in journal.Input) (err error) {
	if r.backend.over() {
		return r.notActive()
	}
	if in.ID, err = r.backend.question(in.Kind, in.ID); err != nil {
		return err
	}
	in.By = "user"
	return input(r.backend, in)
}

// SetModel changes the model, where the agent can while it runs.
func (r *Run) SetModel(ctx context.Context, model string) error {
	if r.backend.over() {
		return r.notActive()
	}
	if !r.agent.GetCapabilities().GetSetModel() {
		return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot change its model while it runs", r.meta.Agent).
			WithHint("start a new run with the model")
	}
	return input(r.backend, journal.Input{Kind: code.InputSetModel, Text: model, By: "user"})
}

// SetApprove changes who answers from now on when the agent asks before it acts, whoever
// hosts the run then. What waits is judged again. CAPABILITY_ERROR: the run was started
// with deny or auto, so that its agent may ask about nothing.
func (r *Run) SetApprove(ctx context.Context, mode ApproveMode) error {
	if err := mode.check(); err != nil {
		return err
	}
	if r.backend.over() {
		return r.notActive()
	}
	if !r.agent.GetCapabilities().GetApprovals() || r.spec.Approve != ApproveAsk && r.spec.Approve != ApproveRules {
		return pluginapi.Errorf(pluginapi.CodeCapability, "run %s was started with --approve %s, so that agent %s may ask about nothing", r.ID(), r.spec.Approve, r.meta.Agent).
			WithHint("start a run with --approve ask")
	}
	if mode == ApproveAsk && r.spec.Unattended {
		return pluginapi.Errorf(pluginapi.CodeCapability, "nobody can answer in run %s", r.ID()).WithHint("start it with --detach, or as a conversation")
	}
	return input(r.backend, journal.Input{Kind: code.InputSetApprove, Text: string(mode), By: "user"})
}

// Interrupt asks the agent to leave its turn. A conversation can go on after it.
// An agent that has no way of its own gets Ctrl-C, if it is on a terminal.
func (r *Run) Interrupt(ctx context.Context) error {
	if r.backend.over() {
		return r.notActive() // whatever the agent could have done
	}
	own := r.agent.GetCapabilities().GetInterrupt()
	if !own && !onTerminal(ctx, r) {
		return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot be interrupted", r.meta.Agent).WithHint("stop it instead")
	}
	err := input(r.backend, journal.Input{Kind: code.InputInterrupt, By: "user"})
	if err == nil && !own {
		err = r.Keys(ctx, []byte{3})
	}
	return err
}

// End says that no prompt will follow: the agent finishes its turn and exits.
func (r *Run) End(ctx context.Context) error {
	return input(r.backend, journal.Input{Kind: code.InputEnd, By: "user"})
}

// Stop ends the agent and all its descendants: TERM, the grace time, KILL. It
// does not wait; Wait does.
func (r *Run) Stop(ctx context.Context) error {
	return r.backend.command(code.InputStop, func(c *shim.Conn) error {
		return c.Stop(shim.Stop{Reason: journal.ReasonStop, By: "user", Grace: r.spec.Grace})
	})
}

// Kill ends the agent and all its descendants at once.
func (r *Run) Kill(ctx context.Context) error {
	return r.backend.command(code.InputKill, func(c *shim.Conn) error { return c.Kill(shim.Stop{Reason: journal.ReasonKill, By: "user"}) })
}

// Pause stops every process of the run where it stands; the inactivity clock
// stands still with them.
func (r *Run) Pause(ctx context.Context) error {
	return r.backend.command(code.InputPause, func(c *shim.Conn) error { return c.Pause("user") })
}

// Resume lets a paused run go on.
func (r *Run) Resume(ctx context.Context) error {
	return r.backend.command(code.InputResume, func(c *shim.Conn) error { return c.Resume("user") })
}

// Signal sends a signal: "INT", "SIGUSR1". KILL, TERM, STOP and CONT are Kill, Stop,
// Pause and Resume. HUP, INT and QUIT reach every process of the run, others the
// agent's first one. A run that ends of what was asked for is canceled.
func (r *Run) Signal(ctx context.Context, name string) error {
	name = "SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG")
	switch name {
	case "SIGKILL":
		return r.Kill(ctx)
	case "SIGTERM":
		return r.Stop(ctx)
	case "SIGSTOP":
		return r.Pause(ctx)
	case "SIGCONT":
		return r.Resume(ctx)
	}
	return r.backend.command("signal", func(c *shim.Conn) error { return c.AskSignal(name) })
}

// input gives an input to a run.
func input(to backend, in journal.Input) error {
	if !utf8.ValidString(in.Text) {
		return invalid("the text is not valid UTF-8")
	}
	record := journal.Encode(in)
	if len(record) > maxInput {
		return invalid("the text is longer than %d MiB as JSON", maxInput>>20)
	}
	return to.command(in.Kind, func(c *shim.Conn) error { return c.Append(journal.KindInput, record) })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Tail writes the last n lines that the agent printed, on stdout and on stderr,
// in the order in which they came to their ends; the last of each may have none
// yet. It is what the agent wrote, byte for byte.
func (r *Run) Tail(n int, w io.Writer) error { return record.Tail(r.dir, n, w) }

// TerminalPiece is the next thing that became of a run's terminal; one of its
// fields is set.
type TerminalPiece struct {
	// Output is what the agent printed, control sequences and all. It is valid
	// until the next piece.
	Output []byte
	// Cols and Rows are the terminal's new size.
	Cols, Rows int
	// Opened says that this is the size of a new terminal: nothing that was
	// printed before is on it.
	Opened bool
	// Current says that what was told so far is all there is now.
	Current bool
}

// Terminal yields what the agent has printed on its pseudo-terminal, from the
// start, and the sizes that it had. With live it goes on until the run has
// ended; else it ends with what there is. Each call has a cursor of its own. The
// error, if any, is the last pair: CAPABILITY_ERROR if the agent has no terminal.
// Of a run that is being started it is waited, for a while, whether there will be
// one.
func (r *Run) Terminal(ctx context.Context, live bool) iter.Seq2[TerminalPiece, error] {
	return func(yield func(TerminalPiece, error) bool) {
		gone := false
		err := r.followed().Terminal(ctx, live, func(p follow.Piece) bool {
			gone = !yield(TerminalPiece(p), nil)
			return !gone
		})
		if err != nil && !gone {
			yield(TerminalPiece{}, err)
		}
	}
}

// Keys types on the run's terminal, as a person does: "\x03" is Ctrl-C. What is
// typed is recorded nowhere, only how much.
func (r *Run) Keys(ctx context.Context, keys []byte) error {
	if len(keys) > maxPrompt {
		return invalid("the keys are more than %d MiB", maxPrompt>>20)
	}
	return r.backend.command("type on the terminal of", func(c *shim.Conn) error { return c.Keys(keys) })
}

// Resize gives the run's terminal another size.
func (r *Run) Resize(ctx context.Context, cols, rows int) error {
	return r.backend.command("resize the terminal of", func(c *shim.Conn) error { return c.Resize(shim.Size{Cols: cols, Rows: rows}) })
}

// onTerminal reports whether the run has a terminal.
func onTerminal(ctx context.Context, r *Run) bool {
	for _, err := range r.Terminal(ctx, false) {
		return err == nil
	}
	return false
}

// LeaseTime is how long a lease lasts that is not asked for again.
const LeaseTime = 30 * time.Second

// Lease gives the keyboard of an attached run to holder, a name that the caller chooses,
// for LeaseTime. The holder asks again to keep it longer. While somebody else has it, Lease
// returns INVALID_STATE_TRANSITION, unless steal is set. It does not stop anybody from
// calling Send: whoever is attached should respect it.
func (r *Run) Lease(ctx context.Context, holder string, steal bool) error {
	return lend(r.backend, shim.Lease{Holder: holder, For: LeaseTime, Steal: steal})
}

// GiveBack ends a lease of holder's.
func (r *Run) GiveBack(ctx context.Context, holder string) error {
	return lend(r.backend, shim.Lease{Holder: holder})
}

func lend(to backend, lease shim.Lease) error {
	err := to.command("lease", func(c *shim.Conn) error { return c.Lend(lease) })
	if errors.Is(err, pluginapi.CodeInternal) {
		return nil // a shim of an older build knows no leases
	}
	return err
}

// recorded is what a run's directory says of it to everybody who has that. It does not
// change.
type recorded struct {
	h     *Host
	spec  RunSpec
	meta  store.Meta
	agent *pluginapi.Agent
	dir   *store.Run
}

func (r *recorded) id() string { return r.meta.RunID }

func (r *recorded) notActive() error { return record.NotActive(r.id()) }

func (r *recorded) hostGone() *pluginapi.Error { return record.HostGone(r.id()) }

// notYet is the answer of a run that has no process now, to all but a stop.
func (r *recorded) notYet(what string) error {
	return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s waits for %s and can only be stopped", r.id(), what)
}

// isRefusal reports that a shim has nothing to command, or starts nothing any more.
func isRefusal(err error) bool {
	refused, ok := errors.AsType[*shim.RemoteError](err)
	return ok && refused.Code == pluginapi.CodeRunNotActive
}

// commandError makes one of our errors of what the shim answered.
func (r *recorded) commandError(what string, err error) error {
	if err == nil {
		return nil
	}
	if remote, ok := errors.AsType[*shim.RemoteError](err); ok {
		if remote.Code == code.RunNotActive {
			return r.notActive()
		}
		hint := cmp.Or(remote.Hint, remote.Code.Info().Hint)
		if what == code.InputPrompt && remote.Code == code.StdinNotAvailable {
			hint = "start another run; --resume goes on with the session of this one"
		}
		return (&pluginapi.Error{Code: remote.Code, Op: what + " run " + r.id(), Msg: remote.Msg, Err: err}).WithHint("%s", hint)
	}
	if errors.Is(err, shim.ErrGone) {
		return r.notActive()
	}
	return pluginapi.Errorf(pluginapi.CodeInternal, "%s run %s: %w", what, r.id(), err)
}

// startError is the error of an agent that the shim could not start.
func (r *recorded) startError(err error) error {
	if refused, ok := errors.AsType[*shim.RemoteError](err); ok && refused.Code == code.Spawn {
		return (&pluginapi.Error{Code: pluginapi.CodeSpawn, Op: "agent " + r.meta.Agent, Msg: refused.Msg, Err: err}).WithHint("%s", refused.Hint)
	}
	return r.commandError("start the agent", err)
}
