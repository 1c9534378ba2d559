package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// wants notes what a decider wants done.
type wants struct {
	Effects
	got []string
}

func (w *wants) Input(in journal.Input) {
	w.got = append(w.got, fmt.Sprintf("%s %s by %s: %s", in.Kind, in.ID, in.By, in.Text))
}
func (w *wants) AnswerWithin(id string, after time.Duration) {
	w.got = append(w.got, fmt.Sprintf("limit %s %v", id, after))
}
func (w *wants) EndWithin(after time.Duration) {
	w.got = append(w.got, fmt.Sprintf("end within %v", after))
}
func (w *wants) AwaitPrompt(waits bool)      { w.got = append(w.got, fmt.Sprintf("person %v", waits)) }
func (w *wants) StartAttempt(*journal.Retry) { w.got = append(w.got, "start") }
func (w *wants) Kill(r journal.EndReason)    { w.got = append(w.got, "kill "+string(r)) }
func (w *wants) Append(_ journal.Kind, record []byte) error {
	w.got = append(w.got, string(record))
	return nil
}

// ask is an approval request.
func ask(l *ledger, id string) {
	l.questions.Learn("approval_request", fmt.Appendf(nil, `{"interaction_id":%q,"action":"Bash"}`, id))
}

// twice is an input that each reading gives: the shim takes the first.
func twice(input string) []string { return []string{input, input} }

// Each step is decided once, whatever reading sees it, and the status says so.
func TestDeciderActsOnce(t *testing.T) {
	const spent, spentInTalk, end = `{"message":"spent","hint":"raise it"}`, `{"message":"spent","hint":"raise it","conversation":true}`, "end  by host: "
	budget := Policy{Interrupts: true, Grace: time.Second, Overspent: func(_ *pluginapi.Money, tokens int64) (msg, hint string) {
		if tokens < 100 {
			return "", ""
		}
		return "spent", "raise it"
	}}
	talk, deaf := budget, budget
	talk.Conversation, deaf.Interrupts = true, false
	use := func(l *ledger, tokens int64) { l.addTokens(pluginapi.TokenUsage{OutputTokens: &tokens}) }
	running := func(l *ledger) { l.state, l.spawned, l.number = Running, true, 1 }
	for _, test := range []struct {
		name   string
		policy Policy
		ledger func(*ledger)
		want   []string
		status Status
	}{
		{"the agent is there", Policy{}, func(l *ledger) { l.state, l.spawned = Starting, true },
			[]string{`{"from":"starting","to":"running"}`}, Status{State: Running}},
		{"an approval for people", Policy{AnswerTime: time.Minute}, func(l *ledger) { running(l); ask(l, "a") },
			[]string{"limit a 1m0s", `{"from":"running","to":"waiting"}`}, Status{State: Waiting, Waiting: []string{"a"}}},
		{"an approval and nobody", Policy{Unattended: true}, func(l *ledger) { running(l); ask(l, "a") },
			twice("deny a by policy: nobody is there to answer"), Status{State: Running}},
		{"idle", Policy{}, func(l *ledger) { running(l); l.idle = true }, twice("end  by host: "), Status{State: Running}},
		{"idle in a conversation", Policy{Conversation: true}, func(l *ledger) { running(l); l.idle, l.prompted = true, true },
			[]string{"person true"}, Status{State: Running}},
		{"paused", Policy{}, func(l *ledger) { running(l); l.paused = true }, []string{`{"from":"running","to":"paused"}`}, Status{State: Paused}},
		{"a retry is announced", Policy{}, func(l *ledger) { running(l); l.again(&journal.Retry{Attempt: 2}) }, []string{"start"}, Status{State: Running, Next: 2}},
		{"adopted before its agent was there", Policy{Adopted: true}, func(l *ledger) { l.state = Starting }, []string{"kill host_gone"}, Status{State: Starting}},
		{"adopted without its prompt", Policy{Unprompted: &journal.Input{Kind: "prompt", ID: "p", Text: "hi"}, Attempt: 1}, running,
			[]string{"prompt p by : hi"}, Status{State: Running}},
		{"within its budget", budget, func(l *ledger) { running(l); l.turnActive = true; use(l, 99) }, nil, Status{State: Running}},
		{"a budget is spent", budget, func(l *ledger) { running(l); l.turnActive = true; use(l, 100) },
			[]string{spent, "end within 1s", "interrupt  by host: "}, Status{State: Running}},
		{"a budget is spent, and the agent has no interrupt", deaf, func(l *ledger) { running(l); l.turnActive = true; use(l, 100) },
			[]string{spent, "end within 1ms"}, Status{State: Running}},
		{"a budget is spent behind a turn", talk, func(l *ledger) { running(l); l.idle = true; use(l, 100) },
			[]string{spentInTalk, "end within 1s", "person true", end, end}, Status{State: Running}},
		{"a budget is spent by work that is done", budget, func(l *ledger) { running(l); l.idle = true; use(l, 100) }, twice(end), Status{State: Running}},
		{"a budget is spent when somebody has asked for the end", budget, func(l *ledger) { running(l); l.turnActive, l.askedAt = true, 1; use(l, 100) }, nil, Status{State: Running}},
		{"an earlier host said that a budget is spent", budget, func(l *ledger) { running(l); l.turnActive, l.askedAt, l.budget = true, 1, &journal.Budget{} },
			[]string{"end within 1s", "interrupt  by host: "}, Status{State: Running}},
		{"an earlier host has interrupted it", budget, func(l *ledger) { running(l); l.turnActive, l.cutOff, l.budget = true, true, &journal.Budget{} },
			[]string{"end within 1s"}, Status{State: Running}},
		{"ended", Policy{}, func(l *ledger) { running(l); ask(l, "a"); l.exit = &journal.Exit{} }, nil, Status{}},
	} {
		w, board := &wants{}, &statusBoard{}
		test.policy.Judge = func(*Question, Standing) (string, string) { return "", "" }
		d := &decider{policy: &test.policy, effects: w, status: board}
		var first, second ledger // of two readings
		for i, l := range []*ledger{&first, &second} {
			test.ledger(l)
			if i == 0 {
				d.begin(l)
			}
			for range 2 {
				for _, do := range d.decide(l) {
					do()
				}
			}
		}
		if !slices.Equal(w.got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, w.got, test.want)
		}
		if got := board.get(); got.State != test.status.State || got.Next != test.status.Next || !slices.Equal(got.Waiting, test.status.Waiting) {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.status)
		}
	}
}

// A rule that a person makes answers what waits already, too.
func TestDeciderAppliesNewRules(t *testing.T) {
	w := &wants{}
	policy := Policy{Judge: func(q *Question, decided Standing) (string, string) {
		if slices.Contains(decided.Allow, q.ID) {
			return "approve", ""
		}
		return "", ""
	}}
	l := ledger{state: Running, attempt: attempt{spawned: true}, number: 1}
	ask(&l, "a")
	ask(&l, "b")
	ask(&l, "c")
	d := &decider{policy: &policy, effects: w, status: &statusBoard{}}
	step := func() []string {
		w.got = nil
		for _, do := range d.decide(&l) {
			do()
		}
		return w.got
	}
	step()
	l.decided(journal.Input{Kind: code.InputApprove})
	if got := step(); len(got) > 0 {
		t.Errorf("no rule: %q", got)
	}
	l.questions.Close("a")
	l.decided(journal.Input{Kind: code.InputApprove, Allow: []string{"b"}})
	want := []string{"approve b by policy: ", "limit a 0s", "limit b 0s"}
	if got := step(); !slices.Equal(got, want) {
		t.Errorf("a rule: %q, want %q", got, want)
	}
	if got := step(); len(got) > 0 {
		t.Errorf("again: %q", got)
	}
}
