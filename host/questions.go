package host

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/amux-dev/amux/host/internal/record"
)

// Question is what an agent asks people: for permission, or for an answer.
type Question struct {
	RunID    string    `json:"run_id"`
	ID       string    `json:"interaction_id"`
	Approval bool      `json:"approval"` // it asks for permission
	Asked    time.Time `json:"asked"`
	// Cwd is the folder of the run, in which a relative path or a command begins.
	Cwd string `json:"cwd"`
	// Why says which rule may forbid it, or which rules are about the tool but do not
	// cover all of it; empty if no rule is about it.
	Why string `json:"why,omitempty"`
	// Rules would allow this request and others of its kind: see Run.Allow. None: no rules
	// can.
	Rules []string `json:"rules,omitempty"`
	// Diff is what the request would change in a file that it writes whole, as a unified
	// diff against its present content; empty for any other request, and for a file that is
	// not a text of at most 1 MiB.
	Diff string `json:"diff,omitempty"`
	// Editable: the agent takes an input that was changed: see Run.Approve.
	Editable bool `json:"editable,omitempty"`
	// Event is the approval_request or input_required.
	Event json.RawMessage `json:"event"`
}

// Questions are those of the run that wait for people now, the first asked first. They
// are read from the run's record, whoever hosts it.
func (r *Run) Questions() []Question {
	if r.backend.over() {
		return nil
	}
	return r.questions()
}

// questions asks the judge of the run's host again: it says the same here.
func (r *recorded) questions() []Question {
	if info, err := record.Read(r.dir); r.spec.Unattended || err != nil || info.End != nil {
		return nil
	}
	asked, err := record.Questions(r.dir)
	if err != nil || len(asked.Open()) == 0 {
		return nil
	}
	judge, decided := r.spec.judge(r.h.opts.Env), record.Standing(r.dir.Path("journal"))
	var waiting []Question
	for _, q := range asked.Open() {
		found := Question{RunID: r.id(), ID: q.ID, Approval: q.Approval, Cwd: r.spec.Cwd, Event: q.Event}
		if q.Approval {
			answer, why := judge.Answer(q, decided)
			if answer != "" {
				continue
			}
			found.Rules, found.Why = judge.Suggest(q), why
			found.Editable, found.Diff = r.agent.GetCapabilities().GetEditApprovals(), wholeFile(q.Event, r.spec.here())
			if near := judge.Near(q, decided.Allow); why == "" && len(near) > 0 {
				found.Why = "not covered by " + strings.Join(near, ", ")
			}
		}
		if head, err := record.Parse(q.Event); err == nil {
			found.Asked = head.Time
		}
		waiting = append(waiting, found)
	}
	return waiting
}
