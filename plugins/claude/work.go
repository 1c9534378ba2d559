package main

import (
	"slices"
	"time"

	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// When background work ends, the CLI begins a turn of its own to tell the
// model, a moment later. It is not idle in between.
const (
	settleTimer = "settle"
	settleDelay = 2 * time.Second
)

// work is what will make the CLI speak outside a turn: prompts it still has to take,
// background work, and a turn about work that has just ended.
type work struct {
	pending    []string // ids of prompts that no turn has finished
	lifecycles bool     // the CLI tells what becomes of prompts
	tasks      int      // in the background
	notified   bool     // background work has ended; a turn about it may come
	settling   bool     // the timer is set
	answered   bool     // there was a result
}

// done reports whether there is none any more; it may set a timer to see.
func (w *work) done(out *sdk.Out) bool {
	if !w.answered || len(w.pending) > 0 || w.tasks > 0 {
		return false
	}
	if w.notified && !w.settling {
		w.settling = true
		out.SetTimer(settleTimer, settleDelay)
	}
	return !w.notified
}

// settled is the timer: no turn has come. It reports whether the timer was waited for.
func (w *work) settled() bool {
	waited := w.settling
	if waited {
		w.settling, w.notified = false, false
	}
	return waited
}

func (w *work) turnStart(out *sdk.Out) {
	if w.settling {
		out.SetTimer(settleTimer, 0)
	}
	w.settling, w.notified = false, false
}

// background takes in how many tasks there are.
func (w *work) background(tasks int) {
	w.notified = w.notified || tasks < w.tasks
	w.tasks = tasks
}

// lifecycle says what became of a prompt: queued, started, completed, cancelled.
// A prompt folded into a running turn is completed before the turn's result, the
// turn's own one after it. It reports whether the CLI is done with a prompt.
func (w *work) lifecycle(line jsonl.Value) bool {
	w.lifecycles = true
	switch line.Text("state") {
	case "queued", "started":
		return false
	}
	w.promptDone(line.Text("command_uuid"))
	return true
}

// result is the end of a turn.
func (w *work) result(line jsonl.Value) {
	w.answered = true
	for _, uuid := range line.Items("user_message_uuids") {
		w.promptDone(uuid.Text())
	}
	if !w.lifecycles {
		w.pending = nil // an older CLI does not say which prompts a turn was for
	}
}

func (w *work) promptDone(uuid string) {
	if i := slices.Index(w.pending, uuid); i >= 0 {
		w.pending = slices.Delete(w.pending, i, i+1)
	}
}
