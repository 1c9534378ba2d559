package host

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/follow"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/eventlog"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// remote is a run that another process hosts. Its events are followed in the
// file (follow.go), and it is controlled through its shim's socket, by a
// connection for each command: nothing is held between two calls, so that a Run
// needs no Close.
type remote struct{ *recorded }

func (r remote) events(from uint64) cursor { return follow.Cursor{Run: r.followed(), From: from} }

func (r remote) over() bool { return false } // nobody knows before it is asked

func (r remote) waits(id string) bool {
	return slices.ContainsFunc(r.questions(), func(q Question) bool { return q.ID == id })
}

func (r remote) promptID() string { return newPromptID() }

func (r remote) question(kind, id string) (string, error) { return record.Question(r.dir, kind, id) }

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
		hosted := record.Hosted(r.dir) // before the look at the events: who leaves writes the last one first
		info, infoErr := record.Read(r.dir)
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
	shimInfo, lives := record.Shim(r.dir)
	if !lives {
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
func (r remote) wait(ctx context.Context) (Result, error) {
	info, _ := record.Read(r.dir)
	err := r.events(info.Events+1).Copy(ctx, io.Discard)
	info, infoErr := record.Read(r.dir)
	if infoErr == nil && info.End != nil {
		return resultOf(info), nil
	}
	if err != nil && ctx.Err() != nil {
		return Result{}, ctx.Err()
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
	}}, nil
}

func (r *recorded) followed() follow.Run {
	return follow.Run{Dir: r.dir, Detached: r.spec.Detached, Dial: r.h.edges.dial, OnOrphan: r.h.opts.OnOrphan}
}

// finished is a run that had ended when it was opened.
type finished struct {
	*recorded
	log    *eventlog.Log
	result Result
}

func (r *finished) events(from uint64) cursor { return r.log.From(from) }

func (r *finished) wait(context.Context) (Result, error) { return r.result, nil }

func (r *finished) over() bool { return true }

func (r *finished) command(string, func(*shim.Conn) error) error { return r.notActive() }
func (r *finished) question(string, string) (string, error)      { return "", r.notActive() }
func (r *finished) waits(string) bool                            { return false }
func (r *finished) promptID() string                             { return newPromptID() }
