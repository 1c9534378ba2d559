package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/excerpt"
	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

type questionsIn struct {
	RunID string `json:"run_id,omitempty" jsonschema:"one run; default: all live runs"`
}

type questionOut struct {
	RunID    string          `json:"run_id"`
	ID       string          `json:"interaction_id"`
	Approval bool            `json:"approval" jsonschema:"it asks for permission: approve or deny"`
	Asked    string          `json:"asked"`
	Diff     string          `json:"diff,omitempty" jsonschema:"what it would change"`
	Event    json.RawMessage `json:"event"`
}

type questionsOut struct {
	Questions []any `json:"questions"`
}

func (s *server) questions(ctx context.Context, _ func(float64, string), in questionsIn) (questionsOut, error) {
	out := questionsOut{Questions: []any{}}
	ids := []string{in.RunID}
	if in.RunID == "" {
		live, err := s.host.Live(ctx)
		if err != nil {
			return out, err
		}
		ids = nil
		for _, i := range live {
			ids = append(ids, i.ID)
		}
	}
	for _, id := range ids {
		r, err := s.host.Open(ctx, id)
		if err != nil {
			if in.RunID == "" {
				continue // it was deleted meanwhile
			}
			return out, err
		}
		for _, q := range r.Questions() {
			diff, _ := excerpt.Text(q.Diff, defaultRead)
			out.Questions = append(out.Questions, questionOut{r.ID(), q.ID, q.Approval, q.Asked.UTC().Format(time.RFC3339Nano), diff, q.Event})
			if len(out.Questions) == maxRuns {
				return out, nil
			}
		}
	}
	return out, nil
}

type answerIn struct {
	RunID  string `json:"run_id"`
	ID     string `json:"interaction_id" jsonschema:"of run_questions"`
	Answer string `json:"answer" jsonschema:"approve, deny or answer"`
	Text   string `json:"text,omitempty" jsonschema:"the reason of a denial, or the answer to a question"`
}

func (s *server) answer(ctx context.Context, _ func(float64, string), in answerIn) (doneOut, error) {
	r, err := s.host.Open(ctx, in.RunID)
	if err != nil {
		return doneOut{}, err
	}
	// A grant of all runs does not let an agent answer its own questions, nor those of the
	// runs that it is inside of.
	if s.own(r) {
		return doneOut{}, pluginapi.Errorf(pluginapi.CodeValidation, "run %s is the caller's own: somebody else answers it", r.ID())
	}
	switch in.Answer {
	case "approve":
		err = r.Approve(ctx, in.ID, nil)
	case "deny":
		err = r.Deny(ctx, in.ID, in.Text)
	case "answer":
		err = r.Answer(ctx, in.ID, in.Text)
	default:
		err = app.Usagef("invalid answer %q: expected approve, deny or answer", in.Answer)
	}
	if err == nil {
		taken(ctx, r, in.ID)
	}
	return doneOut{r.ID()}, err
}

// takenTime bounds how long an answer waits until the events have it.
const takenTime = 5 * time.Second

// taken returns when a question that was answered is open no more, so that a wait which
// follows does not return because of it.
func taken(ctx context.Context, r app.Recorded, id string) {
	ctx, cancel := context.WithTimeout(ctx, takenTime)
	defer cancel()
	open := func() bool {
		return slices.ContainsFunc(r.Questions(), func(q host.Question) bool { return q.ID == id })
	}
	for open() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}
