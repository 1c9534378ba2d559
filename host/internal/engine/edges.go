package engine

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Journal is what an engine reads.
type Journal interface {
	io.ReaderAt
	// Committed is the size up to which records are whole.
	Committed() int64
	// Wait returns when Committed has grown, with io.EOF when it never will, and with
	// ErrShimGone when the shim has left before the run's last record.
	Wait(ctx context.Context) error
	// Alone reports that the shim has left: no record of its follows, and on a full disk
	// there is nothing more to wait for.
	Alone() bool
}

// ErrShimGone says that the shim has left before the run's last record. The journal
// is this process's from then on.
var ErrShimGone = errors.New("the shim is gone")

// Log is where events go: an *eventlog.Log.
type Log interface {
	Count() uint64
	Add(t string, at time.Time, object []byte) error
	Begin(t string, at time.Time) error
	Piece(data []byte) error
	End() error
	Commit(before func(line []byte)) error
	Rollback()
	Idle()
}

// Conversation is the adapter's stream of the run: an *adapter.Conversation. Send and
// Recv are called concurrently.
type Conversation interface {
	Send(*pb.ConverseRequest) error
	Recv() (*pb.ConverseResponse, error)
	// Error makes an error of Send or Recv one that names the plugin and the cause.
	Error(error) error
}

// Clock is the time that passes while an engine waits. None of it is in an event.
type Clock interface {
	Now() time.Time
	Sleep(d time.Duration)
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a *time.Timer.
type Timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

type systemClock struct{}

func (systemClock) Now() time.Time                            { return time.Now() }
func (systemClock) Sleep(d time.Duration)                     { time.Sleep(d) }
func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// EffectID is the number of an output: input N, output K of it.
type EffectID struct {
	N uint64
	K uint32
}

// After reports whether e comes after other.
func (e EffectID) After(other EffectID) bool {
	return e.N > other.N || e.N == other.N && e.K > other.K
}

// Effects is what an engine wants done. The methods are called in the order of the
// journal, one at a time but for Write, CloseStdin, SetTimer and Signal, which have an
// order of their own. What fails shows in the journal, or not at all: only Append and
// Settle say so.
type Effects interface {
	// Write, CloseStdin, SetTimer and Signal are wanted by the adapter. A reading asks
	// again for what an earlier one has asked for, by the same id.
	Write(id EffectID, data []byte)
	CloseStdin(id EffectID)
	SetTimer(id EffectID, name string, after time.Duration)
	Signal(id EffectID, name string)

	// Input gives an input to the run, as a person would. Somebody else may have
	// answered the question already.
	Input(in journal.Input)
	// AnswerWithin has the question denied if it has no answer after that time; 0 calls
	// that off.
	AnswerWithin(question string, after time.Duration)
	// AwaitPrompt says whether a person has the turn: silence is no fault then.
	AwaitPrompt(waits bool)
	// EndWithin has the run's processes end after that time, because a budget is spent,
	// whatever becomes of this process. What was said first counts.
	EndWithin(after time.Duration)
	// StartAttempt starts the attempt that the journal has announced.
	StartAttempt(retry *journal.Retry)
	// Kill ends the run's processes at once, for a reason of the host's.
	Kill(reason journal.EndReason)

	// Append commits a record, which the engine will read.
	Append(kind journal.Kind, record []byte) error
	// Settle returns when no process of the run is left and this process alone writes the
	// journal. lost says that no record tells of an end.
	Settle(lost bool) (Settled, error)
}

// Settled is what is known once nothing of a run is left.
type Settled struct {
	// Exit is what the shim, or a host that gave up, wrote beside a journal that took no
	// more; nil if there is none.
	Exit *journal.Exit
	// Started says that this process has started the agent, or was about to: a run that
	// has no end has lost its shim, not its host.
	Started bool
	// Heard says that somebody listens to the events now, and is told an end that cannot
	// be recorded.
	Heard bool
}
