package app

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Asked is a question that waits for people, and the run that asks it.
type Asked struct {
	host.Question
	Name    string   `json:"name,omitempty"`
	Agent   string   `json:"agent"`
	Project string   `json:"project,omitempty"`
	Tags    []string `json:"tags,omitempty"`
}

// From says in a few words which run asks: "nightly 86CCFA · claude".
func (q Asked) From() string {
	from := render.ShortID(q.RunID) + " · " + q.Agent
	if q.Name != "" {
		from = q.Name + " " + from
	}
	return from
}

// Inbox looks for open questions, again and again. A look costs as much as the live runs
// are many; only what a run has written since is read.
type Inbox struct {
	runs *Runs
	fits func(host.RunInfo) bool
	seen map[string]asking // by run
}

// asking is what a run asked when it was last looked at.
type asking struct {
	events uint64
	asked  []Asked
}

// Inbox returns the open questions of the selected runs.
func (r *Runs) Inbox(s *Selection) (*Inbox, error) {
	fits, err := s.Compile(r.process)
	return &Inbox{r, fits, map[string]asking{}}, err
}

// Look returns the questions that are open now, the first asked first.
func (i *Inbox) Look() ([]Asked, error) {
	h, err := i.runs.opener.ForRuns()
	if err != nil {
		return nil, err
	}
	live, err := h.Live(context.Background())
	if err != nil {
		return nil, err
	}
	var all []Asked
	seen := map[string]asking{}
	for _, info := range live {
		// A run that is paused may have asked before.
		if info.State != code.StateWaiting && info.State != code.StatePaused || !i.fits(info) {
			continue
		}
		was, known := i.seen[info.ID]
		if !known || was.events != info.Events {
			was = asking{info.Events, ask(h, info)}
		}
		seen[info.ID] = was
		all = append(all, was.asked...)
	}
	i.seen = seen
	slices.SortStableFunc(all, func(a, b Asked) int { return a.Asked.Compare(b.Asked) })
	return all, nil
}

func ask(h Host, info host.RunInfo) (all []Asked) {
	run, err := h.Open(context.Background(), info.ID)
	if err != nil {
		return nil // it was deleted meanwhile
	}
	for _, q := range run.Questions() {
		all = append(all, Asked{q, info.Name, info.Agent, info.Project, info.Tags})
	}
	return all
}

// Questions are those of a run, for lists; [] in JSON if there are none.
func (r *Runs) Questions(info host.RunInfo) []host.Question {
	questions := []host.Question{}
	if h, err := r.opener.ForRuns(); err == nil && (info.State == code.StateWaiting || info.State == code.StatePaused) {
		for _, q := range ask(h, info) {
			questions = append(questions, q.Question)
		}
	}
	return questions
}

// TheQuestion returns the only open question that fits, or the one that the person at the
// terminal picks.
func (r *Runs) TheQuestion(fits func(host.Question) bool, usage string) (Asked, error) {
	inbox, err := r.Inbox(&Selection{})
	if err != nil {
		return Asked{}, err
	}
	open, err := inbox.Look()
	open = slices.DeleteFunc(open, func(q Asked) bool { return !fits(q.Question) })
	switch {
	case err != nil:
		return Asked{}, err
	case len(open) == 0:
		return Asked{}, Usagef("no run waits for an answer").WithHint("live runs: amux ps")
	case len(open) == 1:
		return open[0], nil
	case !r.process.Attended():
		for _, q := range open {
			r.print.Notef("%s %s: %s", q.From(), q.ID, render.QuestionLine(q.Question))
		}
		return Asked{}, Usagef("%d questions wait for an answer; name one by its run, or by run and id", len(open)).WithHint("usage: %s", usage)
	}
	var rows [][]string
	for i, q := range open[:min(len(open), mostPicked)] {
		rows = append(rows, []string{strconv.Itoa(i+1) + ")", render.ShortID(q.RunID), cmp.Or(q.Name, q.Agent), render.Age(time.Since(q.Asked)), render.Excerpt(render.QuestionLine(q.Question), 60)})
	}
	if more := len(open) - len(rows); more > 0 {
		r.print.Notef("%s more: amux inbox", render.Number(int64(more)))
	}
	table(r.process.IO.Err, rows)
	n, err := strconv.Atoi(r.process.IO.Ask("question: "))
	if err != nil || n < 1 || n > len(rows) {
		return Asked{}, Usagef("no question was chosen").WithHint("choose a number from 1 to %d", len(rows))
	}
	return open[n-1], nil
}
