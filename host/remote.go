package host

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/pluginapi"
)

// A remote run is one that another process hosts. Its events are followed in the
// file (follow.go), and it is controlled through its shim's socket, by a
// connection for each command: nothing is held between two calls, so that a Run
// needs no Close.

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

// hosted reports whether somebody will write the rest of the run's events.
func (r *Run) hosted() bool { return hosted(r.dir) }

func hosted(dir *store.Run) bool {
	shimInfo, err := shim.ReadInfo(dir.Dir)
	return err == nil && shimLives(shimInfo) || dir.Held()
}

func (r *Run) hostGone() *pluginapi.Error {
	return pluginapi.Errorf(pluginapi.CodeHostGone, "the process that hosted run %s has died", r.ID()).
		WithHint("%s", strings.ReplaceAll(pluginapi.CodeHostGone.Info().Hint, "RUN", shortID(r.ID())))
}

func shortID(id string) string { return id[max(0, len(id)-6):] }

const (
	// commandWait is how long a command waits for a run that is being started, or
	// whose end is being told.
	commandWait = 5 * time.Second
	// answerWait is how long a shim may take to answer.
	answerWait = 10 * time.Second
)

// remoteCommand has the run's shim do something. A shim that has no agent yet,
// or no more, refuses; the run's events then tell which it is.
func (r *Run) remoteCommand(what string, do func(*shim.Conn) error) error {
	for deadline := time.Now().Add(commandWait); ; {
		err := r.ask(do)
		if err == nil || !isRefusal(err) && !errors.Is(err, shim.ErrGone) {
			return r.commandError(what, err)
		}
		hosted := r.hosted() // before the look at the events: who leaves writes the last one first
		info, infoErr := readInfo(r.dir)
		if infoErr != nil || info.End != nil {
			return r.notActive()
		}
		if hosted && info.State == engine.Queued && what != "stop" && what != "kill" {
			return r.notYet("its turn")
		}
		if _, err := r.dir.ReadMeta(); err != nil {
			return r.notActive() // it was deleted under our eyes
		}
		if !hosted {
			return r.hostGone()
		}
		if time.Now().After(deadline) {
			return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s is being started, or ends, and takes no command", r.ID()).
				WithHint("try again in a moment")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ask makes one connection to the shim for one command.
func (r *Run) ask(do func(*shim.Conn) error) error {
	shimInfo, err := shim.ReadInfo(r.dir.Dir)
	if err != nil || !shimLives(shimInfo) {
		return shim.ErrGone
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWait)
	defer cancel()
	conn, err := shim.Dial(ctx, shimInfo)
	if err != nil {
		return err
	}
	defer conn.Close()
	hurry := time.AfterFunc(answerWait, func() { conn.Close() })
	defer hurry.Stop()
	return do(conn)
}

// remotePrompt is the id of a prompt that does not come from the run's host,
// which counts its own.
func remotePrompt() string { return "prompt-" + ulid.Make().String() }

// waiting is a question of the agent as its events tell it.
type waiting struct {
	id       string
	approval bool
}

// questions reads what the agent has asked: what waits for an answer, and what has
// got one.
func (r *Run) questions() (open []waiting, answered map[string]bool, err error) {
	file, err := os.Open(r.dir.Path("events.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil // the run is being started
	}
	if err != nil {
		return nil, nil, pluginapi.Errorf(pluginapi.CodeParse, "events of run %s: %w", r.ID(), plain(err))
	}
	defer file.Close()
	answered = map[string]bool{}
	lines := bufio.NewReaderSize(file, 256<<10)
	for {
		line, long, err := wantedLine(lines)
		if err != nil {
			return open, answered, nil // the end, or a line that is being written
		}
		if isType(line, "retry") && bytes.Contains(line, []byte(`"code":`)) {
			open, answered = nil, map[string]bool{} // they were those of a process that has ended
			continue
		}
		asked := isType(line, "approval_request") || isType(line, "input_required")
		if long || !asked && !isType(line, "approval_granted") && !isType(line, "approval_denied") && !isType(line, "input_answered") {
			continue
		}
		var e struct {
			InteractionID string `json:"interaction_id"`
		}
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if asked {
			open = append(open, waiting{e.InteractionID, isType(line, "approval_request")})
			delete(answered, e.InteractionID)
			continue
		}
		answered[e.InteractionID] = true
		open = slices.DeleteFunc(open, func(w waiting) bool { return w.id == e.InteractionID })
	}
}

// wantedLine reads a line. Of one that is longer than the buffer and asks nothing
// only the beginning is kept.
func wantedLine(r *bufio.Reader) (line []byte, cut bool, err error) {
	line, err = r.ReadSlice('\n')
	if err == nil || !errors.Is(err, bufio.ErrBufferFull) {
		return line, false, err
	}
	if isType(line, "approval_request") || isType(line, "input_required") {
		whole := bytes.Clone(line)
		rest, err := r.ReadBytes('\n')
		return append(whole, rest...), false, err
	}
	line = bytes.Clone(line[:64])
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return line, true, err
}

// interaction finds the question that an answer of this kind is for, by the events; an
// empty id is the only one that waits.
func (r *Run) interaction(kind, id string) (string, error) {
	if info, err := readInfo(r.dir); err != nil || info.End != nil {
		return "", r.notActive()
	}
	open, answered, err := r.questions()
	if err != nil {
		return "", err
	}
	fits := func(w waiting) bool { return kind == "deny" || w.approval == (kind == "approve") }
	if id == "" {
		fitting := slices.DeleteFunc(slices.Clone(open), func(w waiting) bool { return !fits(w) })
		switch {
		case len(fitting) == 1:
			return fitting[0].id, nil
		case len(fitting) > 1:
			var ids []string
			for _, w := range fitting {
				ids = append(ids, w.id)
			}
			return "", invalid("run %s waits for %d answers", r.ID(), len(ids)).
				WithHint("name one by its interaction id: %s", strings.Join(ids, ", "))
		case len(open) == 0:
			return "", pluginapi.Errorf(pluginapi.CodeNoPendingInteraction, "run %s waits for no answer", r.ID())
		}
		id = open[0].id
	}
	for _, w := range open {
		switch {
		case w.id != id:
		case fits(w):
			return id, nil
		case w.approval:
			return "", invalid("%s of run %s asks for leave, not for an answer", id, r.ID()).WithHint("use amux approve or amux deny")
		default:
			return "", invalid("%s of run %s is a question", id, r.ID()).WithHint("use amux answer or amux deny")
		}
	}
	if answered[id] {
		return "", pluginapi.Errorf(pluginapi.CodeAlreadyAnswered, "somebody else has answered %s", id)
	}
	return "", pluginapi.Errorf(pluginapi.CodeInteractionNotFound, "run %s has asked no question with the id %q", r.ID(), id)
}

// remoteWait waits for the last event.
func (r *Run) remoteWait() Result {
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
	return Result{RunID: r.ID(), State: engine.Failed, Err: e, End: pluginapi.RunEnd{
		State: engine.Failed, Reason: "host_gone", Code: e.Code, Message: e.Error(),
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
	return r.command("signal", func(c *shim.Conn) error { return c.AskSignal(name) })
}

// Tail writes the last n lines that the agent printed, on stdout and on stderr,
// in the order in which they came to their ends; the last of each may have none
// yet. It is what the agent wrote, byte for byte.
func (r *Run) Tail(n int, w io.Writer) error {
	src, err := openFileSource(r.dir.Path("journal"))
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "run %s has no journal: %w", r.ID(), plain(err))
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
