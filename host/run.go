package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/amux-dev/amux/host/adapter"
	"github.com/amux-dev/amux/host/eventlog"
	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Run is one execution of an agent. Its methods may be called concurrently. What
// is asked of it is in its journal when the method returns, not yet done.
type Run struct {
	h      *Host
	spec   RunSpec
	meta   store.Meta
	agent  *pluginapi.Agent
	plugin registry.Verified
	dir    *store.Run
	log    *eventlog.Log

	launch   *launch         // of what is still to be started; nil if there is nothing
	life     context.Context // ends when this host lets the run go
	attempts attempts        // what is being started
	place    *place          // in the host's queue

	conn        *shim.Conn
	src         *liveSource
	shimExited  <-chan struct{}
	leave       func()           // forgets the shim's process
	adoptedShim shim.Info        // of an adopted run
	process     *adapter.Process // the shared one it began with
	own         *adapter.Process // its own, after the shared one failed it

	engine *engine.Engine

	mu      sync.Mutex
	prompts int
	queued  bool // its turn has not come
	started int  // the last attempt that startAgain has started, or tried to
	result  Result

	disk disk // how the record gets there

	remote  bool           // another process hosts it
	adopted bool           // another process hosted it before
	faulty  *journal.Fault // that process had found
	// What its agent lacks, and the attempt of that agent; nil for nothing.
	unprompted        *journal.Input
	unpromptedAttempt int
	letGo             context.CancelFunc
	done              chan struct{}
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
		if r.remote {
			if err := r.followLines(ctx, from, each); err != nil {
				yield(Event{}, err)
			}
			return
		}
		if err := r.log.From(from).Lines(ctx, each); err != nil {
			yield(Event{}, pluginapi.Errorf(pluginapi.CodeInternal, "read events of run %s: %w", r.ID(), err))
		}
	}
}

func parseEvent(line []byte) (Event, error) {
	var head struct {
		Type  pluginapi.Type `json:"type"`
		RunID string         `json:"run_id"`
		Seq   uint64         `json:"seq"`
		Time  time.Time      `json:"time"`
		Agent string         `json:"agent"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return Event{}, pluginapi.Errorf(pluginapi.CodeParse, "event: %w", err)
	}
	raw := append(json.RawMessage(nil), line...)
	return Event{head.Type, head.RunID, head.Seq, head.Time, head.Agent, raw}, nil
}

// CopyEvents writes the events from number from on to w, one JSON object a line,
// until the run has ended. It is the quick way: nothing is decoded. Of a run that
// another process hosts, HOST_GONE says that it will not end: see Recover.
func (r *Run) CopyEvents(ctx context.Context, w io.Writer, from uint64) error {
	if r.remote {
		return r.followCopy(ctx, w, from)
	}
	return copyEvents(ctx, r.log, w, from)
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
func (r *Run) Wait() Result {
	if r.remote {
		return r.remoteWait()
	}
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result
}

// ---- control ----

// Send gives the agent another prompt. While it works on one, the agent decides
// whether it joins the running turn.
func (r *Run) Send(ctx context.Context, prompt string) error {
	if r.finished() {
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
	r.mu.Lock()
	r.prompts++
	id := "prompt-" + strconv.Itoa(r.prompts+1)
	r.mu.Unlock()
	if r.remote || r.adopted {
		id = remotePrompt()
	}
	return r.input(journal.Input{Kind: "prompt", ID: id, Text: prompt, By: "user"})
}

// Approve grants what the agent asked for. An empty id is the one request that
// waits; updatedInput, if not nil, replaces the tool's input where the agent
// allows it. The first answer wins: ALREADY_ANSWERED.
func (r *Run) Approve(ctx context.Context, id string, updatedInput json.RawMessage) error {
	if updatedInput != nil && !json.Valid(updatedInput) {
		return invalid("the updated input is not JSON")
	}
	return r.respond("approve", id, "", updatedInput)
}

// Deny refuses what the agent asked for.
func (r *Run) Deny(ctx context.Context, id, reason string) error {
	return r.respond("deny", id, reason, nil)
}

// Answer answers a question. Where the event has several, text is a JSON object:
// question → answer.
func (r *Run) Answer(ctx context.Context, id, text string) error {
	return r.respond("answer", id, text, nil)
}

// Waits reports whether the question of that id waits for people now. Of a run that
// another process hosts it is false.
func (r *Run) Waits(id string) bool {
	return r.engine != nil && slices.Contains(r.engine.Status().Waiting, id)
}

func (r *Run) respond(kind, id, text string, data json.RawMessage) error {
	if r.finished() {
		return r.notActive()
	}
	var waiting []string
	if r.engine != nil {
		waiting = r.engine.Status().Waiting
	}
	if r.remote || id != "" && !slices.Contains(waiting, id) {
		// The events may know of it already. An answer to what was never asked is
		// not recorded: it would keep others from answering when it is.
		err := r.unstarted()
		if err != nil {
			return err
		}
		if id, err = r.interaction(kind, id); err != nil {
			return err
		}
	}
	if id == "" {
		switch len(waiting) {
		case 0:
			return pluginapi.Errorf(pluginapi.CodeNoPendingInteraction, "run %s waits for no answer", r.ID())
		case 1:
			id = waiting[0]
		default:
			return invalid("run %s waits for %d answers", r.ID(), len(waiting)).WithHint("name one by its interaction id")
		}
	}
	in := journal.Input{Kind: kind, ID: id, Text: text, By: "user"}
	if kind == "approve" && data != nil {
		in.Data, _ = json.Marshal(map[string]json.RawMessage{"updated_input": data})
	}
	return r.input(in)
}

// SetModel changes the model, where the agent can while it runs.
func (r *Run) SetModel(ctx context.Context, model string) error {
	if r.finished() {
		return r.notActive()
	}
	if !r.agent.GetCapabilities().GetSetModel() {
		return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot change its model while it runs", r.Agent()).
			WithHint("start a new run with the model")
	}
	return r.input(journal.Input{Kind: "set_model", Text: model, By: "user"})
}

// Interrupt asks the agent to leave its turn. A conversation can go on after it.
// An agent that has no way of its own gets Ctrl-C, if it is on a terminal.
func (r *Run) Interrupt(ctx context.Context) error {
	if r.finished() {
		return r.notActive() // whatever the agent could have done
	}
	own := r.agent.GetCapabilities().GetInterrupt()
	if !own && !r.onTerminal(ctx) {
		return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot be interrupted", r.Agent()).WithHint("stop it instead")
	}
	err := r.input(journal.Input{Kind: "interrupt", By: "user"})
	if err == nil && !own {
		err = r.Keys(ctx, []byte{3})
	}
	return err
}

// End says that no prompt will follow: the agent finishes its turn and exits.
func (r *Run) End(ctx context.Context) error {
	return r.input(journal.Input{Kind: "end", By: "user"})
}

// Stop ends the agent and all its descendants: TERM, the grace time, KILL. It
// does not wait; Wait does.
func (r *Run) Stop(ctx context.Context) error {
	return r.command("stop", func(c *shim.Conn) error {
		return c.Stop(shim.Stop{Reason: "stop", By: "user", Grace: r.spec.Grace})
	})
}

// Kill ends the agent and all its descendants at once.
func (r *Run) Kill(ctx context.Context) error {
	return r.command("kill", func(c *shim.Conn) error { return c.Kill(shim.Stop{Reason: "kill", By: "user"}) })
}

// Pause stops every process of the run where it stands; the inactivity clock
// stands still with them.
func (r *Run) Pause(ctx context.Context) error {
	return r.command("pause", func(c *shim.Conn) error { return c.Pause("user") })
}

// Resume lets a paused run go on.
func (r *Run) Resume(ctx context.Context) error {
	return r.command("resume", func(c *shim.Conn) error { return c.Resume("user") })
}

func (r *Run) input(in journal.Input) error {
	if !utf8.ValidString(in.Text) {
		return invalid("the text is not valid UTF-8")
	}
	record := journal.Encode(in)
	if len(record) > maxInput {
		return invalid("the text is longer than %d MiB as JSON", maxInput>>20)
	}
	return r.command(in.Kind, func(c *shim.Conn) error { return c.Append(journal.KindInput, record) })
}

func (r *Run) command(what string, do func(*shim.Conn) error) error {
	if r.remote {
		return r.remoteCommand(what, do)
	}
	if r.conn == nil || isClosed(r.done) {
		return r.notActive()
	}
	return r.commandError(what, do(r.conn))
}

// finished reports whether the run is known to have finished.
func (r *Run) finished() bool { return !r.remote && isClosed(r.done) }

func (r *Run) notActive() error {
	return pluginapi.Errorf(pluginapi.CodeRunNotActive, "run %s has already finished", r.ID())
}

// notYet is the answer of a run that has no process now, to all but a stop.
func (r *Run) notYet(what string) error {
	return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s waits for %s and can only be stopped", r.ID(), what)
}

// unstarted is an error while the run waits for its turn or its next attempt.
func (r *Run) unstarted() error {
	r.mu.Lock()
	queued := r.queued
	r.mu.Unlock()
	switch {
	case isClosed(r.done) || r.engine == nil:
	case queued:
		return r.notYet("its turn")
	case r.engine.Status().Next > 0:
		return r.notYet("its next attempt")
	}
	return nil
}

// isRefusal reports that a shim has nothing to command, or starts nothing any more.
func isRefusal(err error) bool {
	refused, ok := errors.AsType[*shim.RemoteError](err)
	return ok && pluginapi.Code(refused.Code) == pluginapi.CodeRunNotActive
}

// commandError makes one of our errors of what the shim answered.
func (r *Run) commandError(what string, err error) error {
	if err == nil {
		return nil
	}
	if remote, ok := errors.AsType[*shim.RemoteError](err); ok {
		code := pluginapi.Code(remote.Code)
		if code == pluginapi.CodeRunNotActive {
			if err := r.unstarted(); err != nil && what != "stop" && what != "kill" {
				return err
			}
			return r.notActive()
		}
		hint := code.Info().Hint
		if what == "prompt" && code == pluginapi.CodeStdinNotAvailable {
			hint = "start another run; --resume goes on with the session of this one"
		}
		return (&pluginapi.Error{Code: code, Op: what + " run " + r.ID(), Msg: remote.Msg, Err: err}).WithHint("%s", hint)
	}
	if errors.Is(err, shim.ErrGone) {
		return r.notActive()
	}
	return pluginapi.Errorf(pluginapi.CodeInternal, "%s run %s: %w", what, r.ID(), err)
}

// ---- the run's own goroutine ----

// main makes the run's events until it has ended. A plugin that dies or hangs gets
// another chance in a process of the run's own, which is fed the journal again, for as
// long as that helps.
func (r *Run) main(ctx context.Context) {
	defer r.letGo()
	if r.faulty != nil {
		r.endFaulty(ctx)
		return
	}
	var suspect crashSuspect
	var past lives
	for attempt := 1; ; attempt++ {
		since := time.Now()
		reading, err := r.reading(ctx, attempt, suspect)
		took := time.Since(since)
		if err == nil {
			reading.Progress = past.left(r.h.limits)
			err = r.engine.Run(ctx, reading)
		}
		if err == nil {
			r.finish(r.engine)
			return
		}
		if ctx.Err() != nil {
			r.part()
			return
		}
		broken, ok := errors.AsType[*engine.Broken](err)
		if !ok {
			broken = &engine.Broken{Cause: err, Done: r.engine.Answered()}
		}
		if broken.Further {
			past = lives{}
		}
		if pluginapi.AsError(broken.Cause).Code == pluginapi.CodeDiskFull {
			r.abandon(broken.Cause, r.engine) // the journal has the rest; the next start of amux tells it
			return
		}
		if errors.Is(broken.Cause, engine.ErrHung) && r.own == nil {
			r.h.plugins.retire(r.process)
		}
		r.h.log.Named("run").Debug("conversation failed", "run_id", r.ID(), "attempt", attempt, "error", err)
		// A typed error of the SDK is the adapter's own word; to ask again would
		// give it again.
		took += broken.Stalled
		slow := broken.Stalled > r.h.limits.progress/4
		if !past.again(ctx, broken.Cause, took, r.h.limits) || !suspect.again(broken, slow) {
			r.fault(ctx, broken)
			return
		}
	}
}

// reading is the next one of the run's journal: the first with the shared process of
// its plugin, others with a new one of the run's own.
func (r *Run) reading(ctx context.Context, attempt int, suspect crashSuspect) (reading engine.Reading, err error) {
	if r.process == nil && attempt == 1 {
		if err := r.findPlugin(ctx); err != nil {
			return reading, err
		}
	}
	process := r.process
	if attempt > 1 {
		if r.own != nil {
			r.h.plugins.drop(r.own)
			r.own = nil
		}
		own, err := r.h.plugins.start(ctx, r.plugin)
		if err != nil {
			return reading, err
		}
		r.own, process = own, own
	}
	conv, leave, err := r.h.plugins.converse(ctx, process)
	if err != nil {
		return reading, err
	}
	reading.Conversation, reading.Leave = conv, leave
	if suspect.single {
		reading.After, reading.UpTo = suspect.from, suspect.to
	}
	if attempt > 1 || r.adopted {
		reading.Behind = r.src.Committed()
	}
	return reading, nil
}

// newEngine makes the engine of a run whose last recorded state is state.
func (r *Run) newEngine(state string) *engine.Engine {
	config := engine.Config{
		Journal: r.src, Log: r.log, Limits: r.h.limits.engine(), State: state,
		Start:  &pb.Start{Agent: r.spec.adapter(), Options: r.spec.recorded(r.agent)},
		Schema: r.spec.JSONSchema, Effects: effects{r},
		Mute: r.adopted, // what was told before cannot be made again without the adapter
		Policy: &engine.Policy{
			Conversation: r.spec.Conversation, Unattended: r.spec.Unattended, AnswerTime: r.h.limits.answer,
			Judge: r.judge, Retry: r.nextAttempt, Adopted: r.adopted, Unprompted: r.unprompted, Attempt: r.unpromptedAttempt,
		},
	}
	if r.spec.OnEvent != nil {
		config.OnEvent = func(line []byte) {
			if event, err := parseEvent(line); err == nil {
				r.spec.OnEvent(event)
			}
		}
	}
	return engine.New(config)
}

// answerTime is how long a question waits for people before it is denied.
const answerTime = 10 * time.Minute

// fault ends a run whose adapter cannot go on, and tells the rest without it.
func (r *Run) fault(ctx context.Context, broken *engine.Broken) {
	e := pluginapi.AsError(broken.Cause)
	if e.Code == pluginapi.CodeInternal {
		e = pluginapi.Errorf(pluginapi.CodePluginCrashed, "%w", broken.Cause)
	}
	msg := e.Error()
	if e.Code == pluginapi.CodePluginCrashed {
		if !strings.Contains(msg, "plugin "+r.plugin.Plugin.Name) {
			msg = "plugin " + r.plugin.Plugin.Name + " " + msg
		}
		if !strings.Contains(msg, "input") && broken.Sent > broken.Done {
			msg += " at input " + strconv.FormatUint(broken.Done+1, 10)
		}
	}
	hint := cmp.Or(e.Hint, e.Code.Info().Hint)
	if held := cmp.Or(r.own, r.process).Memory(); errors.Is(broken.Cause, engine.ErrHung) && held > r.h.limits.memory/8 {
		// It is more than slow, and would have reached its limit.
		msg += fmt.Sprintf("; it holds %d MiB of memory", held>>20)
		hint = "its adapter may recurse or collect without end: report it to the plugin's author"
	}
	record := journal.Fault{
		Code: string(e.Code), Msg: msg, Hint: hint, Done: r.engine.Answered(),
	}
	if e.Code == pluginapi.CodeDiskFull {
		record.Hint = e.Code.Info().Hint
	}
	_ = r.src.append(journal.KindFault, journal.Encode(record)) // without it the end is told all the same
	if r.conn.Kill(shim.Stop{Reason: "fault", By: "host"}) != nil {
		// The agent has ended already.
		r.h.log.Named("run").Debug("nothing to kill", "run_id", r.ID())
	}
	r.last(ctx, r.engine, r.engine.Finish(ctx, &record))
}

// last is what follows the reading that tells the end.
func (r *Run) last(ctx context.Context, e *engine.Engine, err error) {
	switch {
	case err == nil:
		r.finish(e)
	case ctx.Err() != nil:
		r.part()
	default:
		r.abandon(err, e)
	}
}

// endFaulty ends an adopted run whose adapter had failed the host before.
func (r *Run) endFaulty(ctx context.Context) {
	_ = r.conn.Kill(shim.Stop{Reason: "fault", By: "host"}) // it may have been done
	e, err := r.h.retell(ctx, r.meta, nil, r.src, r.log, effects{r})
	if err != nil && ctx.Err() == nil && pluginapi.AsError(err).Code != pluginapi.CodeDiskFull {
		e, err = r.h.tellEnd(ctx, r.src, r.log, effects{r}, r.spec.JSONSchema)
	}
	r.last(ctx, e, err)
}

// findPlugin starts, or finds, the plugin that an adopted run was started with.
func (r *Run) findPlugin(ctx context.Context) (err error) {
	if r.plugin.Path, err = r.h.registry.Pinned(r.plugin.SHA256); err != nil {
		return err
	}
	r.process, err = r.h.plugins.get(ctx, r.plugin)
	return err
}

// part lets a detached run go on without this host.
func (r *Run) part() {
	r.log.Rollback()
	r.log.Finish()
	r.disk.finish()
	if r.leave != nil {
		r.leave()
	}
	r.conn.Close()
	r.attempts.Wait()
	r.place.leave()
	r.src.close()
	if r.own != nil {
		r.h.plugins.drop(r.own)
	}
	e := r.hostGone()
	state := r.engine.Status().State
	r.mu.Lock()
	r.result = Result{RunID: r.ID(), State: state, Err: e, End: pluginapi.RunEnd{
		State: state, Reason: "host_gone", Code: e.Code, Message: e.Error(),
	}}
	r.mu.Unlock()
	r.dir.Unlock()
	r.h.mu.Lock()
	delete(r.h.runs, r.ID())
	r.h.mu.Unlock()
	close(r.done)
}

// waitShim waits until the shim's process is gone, whose connection is.
func (r *Run) waitShim() {
	if r.shimExited != nil {
		<-r.shimExited
	} else {
		waitGone(context.Background(), r.adoptedShim)
	}
}

// readExit reads what the shim wrote beside a journal that took no more.
func readExit(path string) (exit journal.Exit, ok bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return exit, false
	}
	for i, c := range data {
		if c == '\n' {
			return exit, json.Unmarshal(data[:i], &exit) == nil
		}
	}
	return exit, false
}

// amendExit writes a reason of the host's own into the file, once the shim is
// gone. The file has had its room from the start, whatever the disk says now.
func amendExit(path, reason string) {
	exit, _ := readExit(path)
	exit.Reason = reason
	if f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
		_, _ = f.WriteAt(append(journal.Encode(exit), '\n'), 0)
		_ = f.Close()
	}
}

// finish takes the result and clears up.
func (r *Run) finish(e *engine.Engine) {
	told := e.Summary()
	r.mu.Lock()
	r.result = Result{RunID: r.ID(), State: told.State, Text: told.Text}
	r.mu.Unlock()
	r.clear(&told)
}

// abandon ends a run whose events cannot be made any more: only the result tells.
// The run has failed, also for whoever makes the rest of its events later, unless
// the journal has another end already. told may be nil.
func (r *Run) abandon(err error, told *engine.Engine) {
	e := pluginapi.AsError(err)
	reason := "abandoned"
	if e.Code == pluginapi.CodeDiskFull {
		reason = "disk_full"
	}
	_ = r.conn.Kill(shim.Stop{Reason: reason, By: "host"}) // it may have ended
	_ = r.conn.Release()
	<-r.conn.Gone()
	r.waitShim()
	state := engine.Failed
	if told != nil && engine.Terminal(told.Summary().State) {
		state = told.Summary().State
	}
	if state == engine.Failed {
		amendExit(r.dir.Path("exit"), reason)
	}
	r.mu.Lock()
	r.result = Result{RunID: r.ID(), State: state, Err: e, End: pluginapi.RunEnd{
		State: state, Reason: reason, Code: e.Code, Message: e.Error(),
	}}
	r.mu.Unlock()
	r.clear(nil)
}

// clear clears up behind a run of which nothing is left. told is nil if its events have no
// end.
func (r *Run) clear(told *engine.Summary) {
	r.attempts.Wait()
	r.place.leave()
	r.log.Finish()
	r.disk.finish()
	if told != nil {
		r.readEnd()
	}
	_ = os.RemoveAll(r.meta.TempDir)
	_ = os.Remove(socketPath(r.h.opts.RuntimeDir, r.ID())) // a shim that was killed leaves it
	if told != nil && !told.Ended.IsZero() {
		r.h.index(r.meta, r.result.End, told.Ended)
		r.dir.MarkEnded()
	}
	r.conn.Close()
	r.src.close()
	if r.own != nil {
		r.h.plugins.drop(r.own)
	}
	if r.spec.NoRecord {
		_ = r.dir.Remove()
	}
	r.dir.Unlock()
	r.h.mu.Lock()
	delete(r.h.runs, r.ID())
	r.h.mu.Unlock()
	close(r.done)
}

// readEnd takes the result from the run's last event.
func (r *Run) readEnd() {
	var last []byte
	_ = r.log.From(r.log.Count()).Lines(context.Background(), func(line []byte) bool {
		last = append(last[:0], line...)
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if json.Unmarshal(last, &r.result.End) == nil && r.result.End.Code != "" {
		code := r.result.End.Code
		r.result.Err = &pluginapi.Error{Code: code, Msg: r.result.End.Message, Hint: cmp.Or(r.result.End.Hint, code.Info().Hint)}
	}
}
