package shim

import (
	"time"

	"github.com/amux-dev/amux/host/journal"
)

func (k *keeper) setTimer(id string, after time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.timers[id]; t != nil {
		t.Stop()
		delete(k.timers, id)
	}
	if after > 0 {
		k.timers[id] = time.AfterFunc(after, func() {
			k.append(journal.KindTimer, journal.Encode(journal.Timer{ID: id}))
		})
	}
}

// arm sets a deadline of the run.
func (k *keeper) arm(limit Limit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armLocked(limit)
}

func (k *keeper) armLocked(limit Limit) {
	if limit.Kind == "answer" {
		k.armAnswer(limit)
		return
	}
	if t := k.limits[limit.Kind]; t != nil {
		t.Stop()
		delete(k.limits, limit.Kind)
	}
	if limit.Kind == "inactivity" {
		k.idle = limit.After
	}
	if limit.After > 0 {
		k.limits[limit.Kind] = time.AfterFunc(limit.After, func() { k.expire(limit.Kind) })
		k.runIdle()
	}
}

// armAnswer sets the deadline of one question. Each has its own, from when it was
// first armed; a later host that arms it again changes nothing. Called with mu
// held, as are the next three.
func (k *keeper) armAnswer(limit Limit) {
	switch {
	case limit.After <= 0:
		k.forget(limit.ID)
	case k.answers[limit.ID] == nil && !k.answered[limit.ID]:
		k.answers[limit.ID] = time.AfterFunc(limit.After, func() { k.deny(limit) })
	}
	k.runIdle()
}

// answer reports whether the question had no answer before.
func (k *keeper) answer(id string) bool {
	k.forget(id)
	first := !k.answered[id]
	k.answered[id] = true
	return first
}

func (k *keeper) forget(id string) {
	if t := k.answers[id]; t != nil {
		t.Stop()
		delete(k.answers, id)
	}
}

// runIdle starts the inactivity clock anew, or holds it: neither a pause nor the
// time that people take to answer is the agent's.
func (k *keeper) runIdle() {
	t := k.limits["inactivity"]
	switch {
	case t == nil:
	case k.paused || len(k.answers) > 0:
		t.Stop()
	default:
		t.Reset(k.idle)
	}
}

// active restarts the inactivity clock.
func (k *keeper) active() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runIdle()
}

// deny answers a question that nobody has answered in time.
func (k *keeper) deny(limit Limit) {
	k.mu.Lock()
	late := k.child == nil || k.ending || k.reason != "" || k.answers[limit.ID] == nil || !k.answer(limit.ID)
	if !late {
		k.runIdle()
	}
	k.mu.Unlock()
	if !late {
		k.append(journal.KindInput, journal.Encode(journal.Input{
			Kind: "deny", ID: limit.ID, Text: "nobody answered within " + limit.After.String(), By: "shim",
		}))
	}
}

func (k *keeper) expire(kind string) {
	k.mu.Lock()
	child := k.child
	late := child == nil || k.ending || k.reason != "" || kind == "inactivity" && (k.paused || len(k.answers) > 0)
	if !late {
		k.reason = map[string]string{"run": "timeout", "inactivity": "inactivity"}[kind]
	}
	k.mu.Unlock()
	if late {
		return
	}
	k.append(journal.KindTimeout, journal.Encode(journal.Timeout{Kind: kind}))
	child.request(stopRequest{grace: child.spawn.Grace})
}
