package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"unicode/utf8"

	"github.com/amux-dev/amux/host/eventlog"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/shim"
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
	// lines calls yield for every event from number from on, without its ending, until
	// the run has ended or yield returns false.
	lines(ctx context.Context, from uint64, yield func(line []byte) bool) error
	copy(ctx context.Context, w io.Writer, from uint64) error
	wait() Result
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

// ID is the run's ULID.
func (r *Run) ID() string { return r.meta.RunID }

// Agent is the name of the run's agent.
func (r *Run) Agent() string { return r.meta.Agent }

// Dir is the run's directory, which is gone after a run without record.
func (r *Run) Dir() string { return r.dir.Dir }

// Events yields the events from number from on (1 is the first), and waits for
// more until the run has ended. Each call has a cursor of its own: a slow reader
// loses nothing and delays nobody. The error, if any, is the last pair.
func (r *Run) Events(from uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		each := func(line []byte) bool {
			event, err := parseEvent(line)
			return yield(event, err)
		}
		if err := r.backend.lines(ctx, from, each); err != nil {
			yield(Event{}, err)
		}
	}
}

func parseEvent(line []byte) (Event, error) {
	head, err := record.Parse(line)
	if err != nil {
		return Event{}, err
	}
	return Event{head.Type, head.RunID, head.Seq, head.Time, head.Agent, bytes.Clone(line)}, nil
}

// CopyEvents writes the events from number from on to w, one JSON object a line,
// until the run has ended. It is the quick way: nothing is decoded. Of a run that
// another process hosts, HOST_GONE says that it will not end: see Recover.
func (r *Run) CopyEvents(ctx context.Context, w io.Writer, from uint64) error {
	return r.backend.copy(ctx, w, from)
}

func copyEvents(ctx context.Context, log *eventlog.Log, w io.Writer, from uint64) error {
	cursor := log.From(from)
	for {
		data, err := cursor.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
}

// Wait returns when the run has ended and nothing of it is left.
func (r *Run) Wait() Result { return r.backend.wait() }

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
	return r.input(journal.Input{Kind: code.InputPrompt, ID: r.backend.promptID(), Text: prompt, By: "user"})
}

// Approve lets the agent do what it asked to do. An empty id is the one request that
// waits; updatedInput, if not nil, replaces the tool's input where the agent
// allows it. The first answer wins: ALREADY_ANSWERED.
func (r *Run) Approve(ctx context.Context, id string, updatedInput json.RawMessage) error {
	if updatedInput != nil && !json.Valid(updatedInput) {
		return invalid("the updated input is not JSON")
	}
	return r.respond(code.InputApprove, id, "", updatedInput)
}

// Deny refuses what the agent asked for.
func (r *Run) Deny(ctx context.Context, id, reason string) error {
	return r.respond(code.InputDeny, id, reason, nil)
}

// Answer answers a question. Where the event has several, text is a JSON object:
// question → answer.
func (r *Run) Answer(ctx context.Context, id, text string) error {
	return r.respond(code.InputAnswer, id, text, nil)
}

// Waits reports whether the question of that id waits for people now: neither the host
// nor anybody else has answered it. Of a run that another process hosts that is what the
// events and the run's rules say.
func (r *Run) Waits(id string) bool { return r.backend.waits(id) }

func (r *Run) respond(kind, id, text string, data json.RawMessage) error {
	if r.backend.over() {
		return r.notActive()
	}
	id, err := r.backend.question(kind, id)
	if err != nil {
		return err
	}
	in := journal.Input{Kind: kind, ID: id, Text: text, By: "user"}
	if kind == code.InputApprove && data != nil {
		in.Data, _ = json.Marshal(map[string]json.RawMessage{"updated_input": data})
	}
	return r.input(in)
}

// SetModel changes the model, where the agent can while it runs.
func (r *Run) SetModel(ctx context.Context, model string) error {
	if r.backend.over() {
		return r.notActive()
	}
	if !r.agent.GetCapabilities().GetSetModel() {
		return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot change its model while it runs", r.Agent()).
			WithHint("start a new run with the model")
	}
	return r.input(journal.Input{Kind: code.InputSetModel, Text: model, By: "user"})
}

// Interrupt asks the agent to leave its turn. A conversation can go on after it.
// An agent that has no way of its own gets Ctrl-C, if it is on a terminal.
func (r *Run) Interrupt(ctx context.Context) error {
	if r.backend.over() {
		return r.notActive() // whatever the agent could have done
	}
	own := r.agent.GetCapabilities().GetInterrupt()
	if !own && !r.onTerminal(ctx) {
		return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot be interrupted", r.Agent()).WithHint("stop it instead")
	}
	err := r.input(journal.Input{Kind: code.InputInterrupt, By: "user"})
	if err == nil && !own {
		err = r.Keys(ctx, []byte{3})
	}
	return err
}

// End says that no prompt will follow: the agent finishes its turn and exits.
func (r *Run) End(ctx context.Context) error {
	return r.input(journal.Input{Kind: code.InputEnd, By: "user"})
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

func (r *Run) input(in journal.Input) error { return input(r.backend, in) }

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
