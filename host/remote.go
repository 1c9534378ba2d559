package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// remote is a run that another process hosts. Its events are followed in the
// file (follow.go), and it is controlled through its shim's socket, by a
// connection for each command: nothing is held between two calls, so that a Run
// needs no Close.
type remote struct{ *recorded }

func (r remote) lines(ctx context.Context, from uint64, yield func(line []byte) bool) error {
	return r.followLines(ctx, from, yield)
}

func (r remote) copy(ctx context.Context, w io.Writer, from uint64) error {
	return r.followCopy(ctx, w, from)
}

func (r remote) over() bool { return false } // nobody knows before it is asked
// waits asks the judge of the run's host again: it says the same here.
func (r remote) waits(id string) bool {
	if r.spec.Unattended {
		return false
	}
	questions, err := r.questions()
	if err != nil {
		return false
	}
	for _, q := range questions.Open() {
		if q.ID == id {
			answer, _ := "", ""
			if q.Approval {
				answer, _ = judge{&r.spec, r.h.opts.Env}.answer(q)
			}
			return answer == ""
		}
	}
	return false
}

func (r remote) promptID() string { return newPromptID() }

func (r remote) question(kind, id string) (string, error) { return r.questionInEvents(kind, id) }

// Outcome is what came of Cancel and Delete. Both may be repeated.
type Outcome string

// The outcomes.
const (
	CancelRequested Outcome = "cancel_requested"
	AlreadyFinished Outcome = "already_finished"
	NotCancellable  Outcome = "not_cancellable" // no shim takes the command
	NotFound        Outcome = "not_found"
	Deleted         Outcome = "deleted"
	ActiveConflict  Outcome = "active_process_conflict"
)

// Cancel asks for the end of a run, whoever hosts it: by Stop, or by Kill at once.
// It does not wait for the end. The error says more where the outcome is
// NotFound or NotCancellable.
func (h *Host) Cancel(ctx context.Context, ref string, kill bool) (Outcome, error) {
	r, err := h.Open(ctx, ref)
	if errors.Is(err, errNoRun) {
		return NotFound, err
	}
	if err != nil {
		return NotCancellable, err
	}
	if kill {
		err = r.Kill(ctx)
	} else {
		err = r.Stop(ctx)
	}
	switch {
	case err == nil:
		return CancelRequested, nil
	case errors.Is(err, pluginapi.CodeRunNotActive):
		return AlreadyFinished, nil
	}
	return NotCancellable, err
}

func shortID(id string) string { return id[max(0, len(id)-6):] }

const (
	// commandWait is how long a command waits for a run that is being started, or
	// whose end is being told.
	commandWait = 5 * time.Second
	// answerWait is how long a shim may take to answer.
	answerWait = 10 * time.Second
)

// command has the run's shim do something. A shim that has no agent yet,
// or no more, refuses; the run's events then tell which it is.
func (r remote) command(what string, do func(*shim.Conn) error) error {
	for deadline := time.Now().Add(commandWait); ; {
		err := r.ask(do)
		if err == nil || !isRefusal(err) && !errors.Is(err, shim.ErrGone) {
			return r.commandError(what, err)
		}
		hosted := isHosted(r.dir) // before the look at the events: who leaves writes the last one first
		info, infoErr := readInfo(r.dir)
		if infoErr != nil || info.End != nil {
			return r.notActive()
		}
		if hosted && info.State == engine.Queued && what != code.InputStop && what != code.InputKill {
			return r.notYet("its turn")
		}
		if _, err := r.dir.ReadMeta(); err != nil {
			return r.notActive() // it was deleted under our eyes
		}
		if !hosted {
			return r.hostGone()
		}
		if isRefusal(err) && (what == "approve" || what == "deny" || what == "answer") {
			return r.notYet("its next attempt") // which has not asked: its agent is another
		}
		if time.Now().After(deadline) {
			return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s is being started, or ends, and takes no command", r.id()).
				WithHint("try again in a moment")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ask makes one connection to the shim for one command.
func (r remote) ask(do func(*shim.Conn) error) error {
	shimInfo, err := shim.ReadInfo(r.dir.Dir)
	if err != nil || !shimLives(shimInfo) {
		return shim.ErrGone
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWait)
	defer cancel()
	conn, err := r.h.edges.dial.Dial(ctx, shimInfo)
	if err != nil {
		return err
	}
	defer conn.Close()
	hurry := time.AfterFunc(answerWait, func() { conn.Close() })
	defer hurry.Stop()
	return do(conn)
}

// newPromptID is the id of a prompt that does not come from the host that began the run,
// which counts its own.
func newPromptID() string { return "prompt-" + ulid.Make().String() }

// wait waits for the last event.
func (r remote) wait() Result {
	info, _ := readInfo(r.dir)
	err := r.followLines(context.Background(), info.Events+1, func([]byte) bool { return true })
	info, infoErr := readInfo(r.dir)
	if infoErr == nil && info.End != nil {
		return resultOf(info)
	}
	e := pluginapi.AsError(errors.Join(err, infoErr))
	if e == nil || e.Code == pluginapi.CodeInternal {
		e = r.hostGone() // its record was deleted
	}
	if gone, ok := errors.AsType[*pluginapi.Error](err); ok {
		e = gone
	}
	return Result{RunID: r.id(), State: engine.Failed, Err: e, End: pluginapi.RunEnd{
		State: engine.Failed, Reason: code.ReasonHostGone, Code: e.Code, Message: e.Error(),
	}}
}

// resultOf is the result of a run that has ended.
func resultOf(info RunInfo) Result {
	result := Result{RunID: info.ID, State: info.State}
	if info.End == nil {
		result.End = pluginapi.RunEnd{State: info.State, Reason: info.Reason, Code: info.Code}
		return result
	}
	result.End = *info.End
	if info.Code != "" {
		result.Err = &pluginapi.Error{Code: info.Code, Msg: info.End.Message, Hint: cmp.Or(info.End.Hint, info.Code.Info().Hint)}
	}
	return result
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

// Tail writes the last n lines that the agent printed, on stdout and on stderr,
// in the order in which they came to their ends; the last of each may have none
// yet. It is what the agent wrote, byte for byte.
func (r *Run) Tail(n int, w io.Writer) error {
	src, err := openFileSource(r.dir.Path("journal"))
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "run %s has no journal: %w", r.ID(), fault.Plain(err))
	}
	defer src.Close()
	reader, err := journal.NewReader(src)
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "journal of run %s: %w", r.ID(), err)
	}
	if n <= 0 {
		return nil
	}
	last := make([][]byte, 0, min(n, 1000))
	add := func(line []byte) {
		if len(last) == n {
			last = slices.Delete(last, 0, 1)
		}
		last = append(last, line)
	}
	var begun [2][]byte // a line of each stream that has no end yet
	first := 0          // the stream whose line was begun first
	for {
		rec, err := reader.Next(src.Committed())
		if err != nil {
			break // the end, or what is being written
		}
		stream := 0
		switch rec.Kind {
		case journal.KindStdout:
		case journal.KindStderr:
			stream = 1
		default:
			continue
		}
		for line := range bytes.Lines(rec.Payload) {
			if len(begun[stream]) == 0 {
				line = bytes.Clone(line)
			} else {
				line = append(begun[stream], line...)
				begun[stream] = nil
			}
			if line[len(line)-1] == '\n' {
				add(line)
				continue
			}
			begun[stream] = line
			if len(begun[1-stream]) == 0 {
				first = stream
			}
		}
	}
	for _, stream := range []int{first, 1 - first} {
		if len(begun[stream]) > 0 {
			add(begun[stream])
		}
	}
	for i, line := range last {
		if i < len(last)-1 && line[len(line)-1] != '\n' {
			line = append(line, '\n') // two lines without end
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}
