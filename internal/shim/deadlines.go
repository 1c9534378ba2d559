package shim

import (
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi/code"
)

// deadlines are the clocks of one agent. The supervisor's mu guards them: every method
// is called with it held, and what they call when time is over takes it.
type deadlines struct {
	fired  func(timer string) // a timer of the adapter
	expire func(limit string)
	deny   func(Limit) // nobody has answered a question in time

	timers   map[string]*time.Timer
	limits   map[string]*time.Timer // run, inactivity, budget
	answers  map[string]*time.Timer // of the questions that wait for people, by id
	answered map[string]bool
	idle     time.Duration // inactivity limit, 0 if none
	paused   bool          // the agent is stopped
}

func newDeadlines(fired, expire func(string), deny func(Limit)) deadlines {
	return deadlines{
		fired: fired, expire: expire, deny: deny,
		timers: map[string]*time.Timer{}, limits: map[string]*time.Timer{},
		answers: map[string]*time.Timer{}, answered: map[string]bool{},
	}
}

// begin forgets the answers that the agent before had.
func (d *deadlines) begin() { d.answered, d.paused = map[string]bool{}, false }

// end stops all clocks.
func (d *deadlines) end() {
	for _, clocks := range []map[string]*time.Timer{d.timers, d.limits, d.answers} {
		for id := range clocks {
			stopClock(clocks, id)
		}
	}
}

func stopClock(clocks map[string]*time.Timer, id string) {
	if t := clocks[id]; t != nil {
		t.Stop()
		delete(clocks, id)
	}
}

// setTimer sets a timer of the adapter; 0 takes it back.
func (d *deadlines) setTimer(id string, after time.Duration) {
	stopClock(d.timers, id)
	if after > 0 {
		d.timers[id] = time.AfterFunc(after, func() { d.fired(id) })
	}
}

// arm sets a deadline of the run, or of a question.
func (d *deadlines) arm(limit Limit) {
	if limit.Kind == "answer" {
		d.armAnswer(limit)
		return
	}
	if limit.Kind == "budget" && d.limits[limit.Kind] != nil {
		return // another host was first
	}
	stopClock(d.limits, limit.Kind)
	if limit.Kind == "inactivity" {
		d.idle = limit.After
	}
	if limit.After > 0 {
		d.limits[limit.Kind] = time.AfterFunc(limit.After, func() { d.expire(limit.Kind) })
		d.restartIdle()
	}
}

// armAnswer sets the deadline of one question. Each has its own, from when it was
// first armed; a later host that arms it again changes nothing.
func (d *deadlines) armAnswer(limit Limit) {
	switch {
	case limit.After <= 0:
		stopClock(d.answers, limit.ID)
	case d.answers[limit.ID] == nil && !d.answered[limit.ID]:
		d.answers[limit.ID] = time.AfterFunc(limit.After, func() { d.deny(limit) })
	}
	d.restartIdle()
}

// answer reports whether the question had no answer before.
func (d *deadlines) answer(id string) bool {
	stopClock(d.answers, id)
	first := !d.answered[id]
	d.answered[id] = true
	return first
}

// held reports whether the inactivity clock stands: neither a pause nor the time that
// people take to answer is the agent's.
func (d *deadlines) held() bool { return d.paused || len(d.answers) > 0 }

// restartIdle starts the inactivity clock again, or holds it.
func (d *deadlines) restartIdle() {
	t := d.limits["inactivity"]
	switch {
	case t == nil:
	case d.held():
		t.Stop()
	default:
		t.Reset(d.idle)
	}
}

func (s *supervisor) timerFired(id string) {
	s.recorder.append(journal.KindTimer, journal.Encode(journal.Timer{ID: id}))
}

// active restarts the inactivity clock.
func (s *supervisor) active() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadlines.restartIdle()
}

// deny answers a question that nobody has answered in time.
func (s *supervisor) deny(limit Limit) {
	s.mu.Lock()
	d := &s.deadlines
	late := s.child == nil || s.ending || s.reason != "" || d.answers[limit.ID] == nil || !d.answer(limit.ID)
	if !late {
		d.restartIdle()
	}
	s.mu.Unlock()
	if !late {
		s.recorder.append(journal.KindInput, journal.Encode(journal.Input{
			Kind: code.InputDeny, ID: limit.ID, Text: "nobody answered within " + limit.After.String(), By: "shim",
		}))
	}
}

// expire ends the agent whose time is over.
func (s *supervisor) expire(limit string) {
	s.mu.Lock()
	child := s.child
	late := child == nil || s.ending || s.reason != "" || limit == "inactivity" && s.deadlines.held()
	if !late {
		s.reason = map[string]journal.EndReason{"run": journal.ReasonTimeout, "inactivity": journal.ReasonInactivity, "budget": journal.ReasonBudget}[limit]
	}
	s.mu.Unlock()
	if late {
		return
	}
	s.recorder.append(journal.KindTimeout, journal.Encode(journal.Timeout{Kind: limit}))
	child.request(stopRequest{grace: child.spawn.Grace})
}
