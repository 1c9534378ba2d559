package host

import (
	"errors"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/pluginapi"
)

// effects is what the engine of a live run has done: by its shim, and at the end by this
// process.
type effects struct{ r *hosted }

var _ engine.Effects = effects{}

func (e effects) Write(id engine.EffectID, data []byte) {
	e.done(e.r.shim.conn.Write(shim.EffectID(id), data))
}

func (e effects) CloseStdin(id engine.EffectID) { e.done(e.r.shim.conn.CloseStdin(shim.EffectID(id))) }

func (e effects) SetTimer(id engine.EffectID, name string, after time.Duration) {
	e.done(e.r.shim.conn.SetTimer(shim.EffectID(id), name, after))
}

func (e effects) Signal(id engine.EffectID, name string) {
	e.done(e.r.shim.conn.Signal(shim.EffectID(id), name))
}

// done is what became of an effect.
func (e effects) done(err error) {
	if refused, ok := errors.AsType[*shim.RemoteError](err); ok && refused.Code == pluginapi.CodeStdinNotAvailable {
		// What the agent was to be told is lost: the run cannot go on as if it
		// had been.
		e.Kill(journal.ReasonStdinFull)
	}
	if err != nil {
		// An agent that has exited takes no more input.
		e.r.h.log.Named("run").Debug("effect failed", "run_id", e.r.id(), "error", err)
	}
}

func (e effects) Input(in journal.Input) { _ = input(e.r, in) } // it may have been answered already

func (e effects) AnswerWithin(question string, after time.Duration) {
	_ = e.r.shim.conn.SetLimit(shim.Limit{Kind: "answer", ID: question, After: after})
}

func (e effects) AwaitPrompt(waits bool) {
	limit := shim.Limit{Kind: "answer", ID: shim.NextPrompt}
	if waits {
		limit.After = shim.Forever
	}
	_ = e.r.shim.conn.SetLimit(limit) // of an agent that has ended no clock runs
}

func (e effects) StartAttempt(retry *journal.Retry) {
	e.r.attempts.Go(func() { e.r.attempts.startAgain(retry) })
}

func (e effects) Kill(reason journal.EndReason) {
	_ = e.r.shim.conn.Kill(shim.Stop{Reason: reason, By: "host"}) // it may have ended
}

func (e effects) Append(kind journal.Kind, record []byte) error { return e.r.src.Append(kind, record) }

// Settle lets the shim go. If that has left without a word, what it left running is
// killed.
func (e effects) Settle(lost bool) (engine.Settled, error) {
	r := e.r
	r.shim.release()
	r.attempts.Wait() // they record nothing any more
	settled := engine.Settled{Heard: true}
	if lost {
		r.h.edges.sweep(r.meta)
		if exit, ok := record.ReadExit(r.dir.Path("exit")); ok {
			settled.Exit = &exit
		}
		settled.Started = r.inherited == nil // no host has died, but the shim
	}
	return settled, r.src.TakeOver()
}
