package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Policy is what the host of a live run wants of it. Its functions are called with the
// engine's mutex held, and must not call the engine. What they say is recorded: no replay
// asks them again.
type Policy struct {
	// Conversation says that prompts may follow: else the agent is told to finish when it
	// is idle.
	Conversation bool
	// Unattended says that nobody answers: what Judge leaves to people is denied.
	Unattended bool
	// AnswerTime is how long a question waits for people before it is denied.
	AnswerTime time.Duration
	// Judge says what the host itself answers to a request for permission: "approve",
	// "deny" with a reason, or "" if people are to answer, with the reason why.
	Judge func(q *Question, decided Standing) (answer, reason string)
	// Preview, if not nil, says what a request that waits for people would change, or nil if
	// it cannot be told. It is called without the engine's mutex, and may read files.
	Preview func(q *Question) *journal.Preview
	// Retry says whether an attempt is made again. Nil: never.
	Retry func(Failure) (journal.Retry, bool)
	// Overspent says which budget is spent by what the run has used: a message, and the way
	// out; "" if none is. Nil: there is none.
	Overspent func(cost *pluginapi.Money, tokens int64) (msg, hint string)
	// Interrupts says that the agent can leave its turn. One whose budget is spent has Grace
	// for that, and for its end; any other ends at once.
	Interrupts bool
	Grace      time.Duration
	// Used, if not nil, is told what the run has used, each time that this has changed.
	Used func(Usage)
	// Adopted says that another host has begun the run, and this one cannot start its
	// agent.
	Adopted bool
	// Unprompted, if not nil, is the prompt that attempt Attempt lacks: its host died
	// before it could give it.
	Unprompted *journal.Input
	Attempt    int
}

// decider says what a live run does now, by what the ledger says and what it has decided
// before. What a further reading decides again is an input, of which the shim takes the
// first.
type decider struct {
	policy  *Policy
	effects Effects
	status  *statusBoard

	announced string   // state that was recorded last, or is about to be
	waiting   []string // questions that wait for people
	person    *bool    // whether a person has the turn, as was said last
	begun     int      // the last attempt that was started
	used      int      // figures that Policy.Used was told of
	overspent bool     // a budget is spent, as was recorded
	ending    bool     // and the time for its end runs
	cutOff    bool     // and its turn was cut off
	prompted  bool     // Unprompted was given
}

// everyAttempt is more than there may be.
const everyAttempt = 1 << 30

// begin is told where the journal stands when a reading becomes live.
func (d *decider) begin(l *ledger) {
	if l.state != "" {
		d.announced = l.state
	}
}

// recorded is told of a state in the journal. Only that which another part of the host
// records is news.
func (d *decider) recorded(state string) {
	if state == Starting {
		d.announced = state
	}
}

// decide returns what is to be done, in order. It is called with the pass locked.
func (d *decider) decide(l *ledger) (todo []func()) {
	if Terminal(l.state) || l.concluded || l.exit != nil || l.spawnFailed != nil {
		return nil
	}
	do := func(f func()) { todo = append(todo, f) }
	d.tellUsage(l, do)
	d.limitSpending(l, do)
	waiting := d.judge(l, do)
	d.limitAnswers(waiting, do)
	d.givePerson(l, do)
	d.waiting = waiting
	d.start(l, do)
	d.announce(l, do)
	next := 0
	if l.retry != nil {
		next = l.retry.Attempt
	}
	d.status.set(Status{State: d.announced, Waiting: waiting, Next: next})
	ends := !d.policy.Conversation && len(l.questions.Open()) == 0 || d.ending
	if l.idle && !l.endSent && ends {
		l.endSent = true
		do(func() { d.effects.Input(journal.Input{Kind: code.InputEnd, By: byHost}) })
	}
	return todo
}

// tellUsage tells what the run has used.
func (d *decider) tellUsage(l *ledger, do func(func())) {
	if d.policy.Used == nil || l.added == d.used {
		return
	}
	d.used = l.added
	used := l.usage.public()
	do(func() { d.policy.Used(used) })
}

// byHost is who gives an input that nobody has asked for.
const byHost = "host"

// limitSpending ends a run whose budget is spent. That it is comes into the journal first:
// another host goes on with the end, and no replay asks again. A run of one prompt whose
// agent has finished ends by itself.
func (d *decider) limitSpending(l *ledger, do func(func())) {
	if l.budget == nil && !d.overspent {
		finished := !d.policy.Conversation && !l.turnActive && (l.idle || l.endSent || l.outcome != nil)
		if d.policy.Overspent == nil || !l.spawned || l.askedAt != 0 || finished {
			return
		}
		msg, hint := d.policy.Overspent(l.cost, l.allTokens())
		if msg == "" {
			return
		}
		d.overspent = true
		spent := journal.Budget{Msg: msg, Hint: hint, Conversation: d.policy.Conversation}
		do(func() { _ = d.effects.Append(journal.KindBudget, journal.Encode(spent)) })
	}
	if !d.ending {
		d.ending = true
		after := d.policy.Grace
		if l.turnActive && !d.policy.Interrupts {
			after = time.Millisecond
		}
		do(func() { d.effects.EndWithin(after) })
	}
	if l.turnActive && d.policy.Interrupts && !l.cutOff && !d.cutOff { // perhaps a turn that a waiting prompt has begun
		d.cutOff = true
		do(func() { d.effects.Input(journal.Input{Kind: code.InputInterrupt, By: byHost}) })
	}
}

// judge answers what the host answers itself, and returns what waits for people.
func (d *decider) judge(l *ledger, do func(func())) (waiting []string) {
	for _, q := range l.questions.Open() {
		if !q.judged {
			q.judged = true
			answer, reason := "", ""
			if q.Approval {
				answer, reason = d.policy.Judge(q, l.standing)
			}
			if answer == "" && d.policy.Unattended {
				answer, reason = code.InputDeny, cmp.Or(reason, "nobody is there to answer")
			}
			if answer != "" {
				in := journal.Input{Kind: answer, ID: q.ID, Text: reason, By: "policy"}
				q.answered = true
				do(func() { d.effects.Input(in) })
			} else if q.Approval && !q.previewing && d.policy.Preview != nil {
				q.previewing = true
				asked := *q
				do(func() { d.preview(&asked) })
			}
		}
		if !q.answered {
			waiting = append(waiting, q.ID)
		}
	}
	return waiting
}

// preview records what a request would change.
func (d *decider) preview(q *Question) {
	if p := d.policy.Preview(q); p != nil {
		_ = d.effects.Append(journal.KindPreview, journal.Encode(p))
	}
}

// limitAnswers has each question that waits for people now watched over, so that its
// deadline holds whatever becomes of this process.
func (d *decider) limitAnswers(waiting []string, do func(func())) {
	for _, id := range waiting {
		if !slices.Contains(d.waiting, id) {
			do(func() { d.effects.AnswerWithin(id, d.policy.AnswerTime) })
		}
	}
	for _, id := range d.waiting {
		if !slices.Contains(waiting, id) {
			do(func() { d.effects.AnswerWithin(id, 0) })
		}
	}
}

// givePerson has silence counted only while the agent has the turn: between the turns of
// a conversation it waits for a person, who may take any time.
func (d *decider) givePerson(l *ledger, do func(func())) {
	if !d.policy.Conversation || !l.spawned {
		return
	}
	person := !l.turnActive && (l.idle || !l.prompted)
	if d.person != nil && *d.person == person {
		return
	}
	d.person = &person
	do(func() { d.effects.AwaitPrompt(person) })
}

// start starts what the journal has announced, or what an adopted run lacks.
func (d *decider) start(l *ledger, do func(func())) {
	switch retry := l.retry; {
	case l.spawned && d.policy.Unprompted != nil && !d.prompted && l.number == d.policy.Attempt:
		d.prompted = true
		do(func() { d.effects.Input(*d.policy.Unprompted) })
	case l.spawned || l.gaveUp != "":
	case d.policy.Adopted && d.begun == 0:
		// Its host died before it had started what it should, and this one does not
		// know the environment.
		d.begun = everyAttempt
		do(func() { d.effects.Kill(journal.ReasonHostGone) })
	case retry != nil && d.begun < retry.Attempt:
		d.begun = retry.Attempt
		do(func() { d.effects.StartAttempt(retry) })
	}
}

// announce records a change of state.
func (d *decider) announce(l *ledger, do func(func())) {
	if !l.spawned && (l.retry == nil || d.announced == Starting) {
		return
	}
	want := Running
	switch {
	case d.announced == Starting:
	case l.paused:
		want = Paused
	case len(d.waiting) > 0:
		want = Waiting
	}
	if want == d.announced || checkTransition(d.announced, want) != nil {
		return
	}
	state := journal.State{From: d.announced, To: want}
	do(func() { _ = d.effects.Append(journal.KindState, journal.Encode(state)) })
	d.announced = want
}
