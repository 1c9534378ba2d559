package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Question is what an agent asks people.
type Question struct {
	RunID    string    `json:"run_id"`
	ID       string    `json:"interaction_id"`
	Agent    string    `json:"agent"`
	Name     string    `json:"name,omitempty" doc:"of the run"`
	Approval bool      `json:"approval" doc:"it asks for permission; else answer it with a text"`
	Asked    time.Time `json:"asked"`
	Cwd      string    `json:"cwd"`
	Why      string    `json:"why,omitempty" doc:"which rule leaves it to people"`
	Rules    []string  `json:"rules,omitempty" nullable:"false" doc:"that would allow this and others of its kind"`
	Diff     string    `json:"diff,omitempty" doc:"what it would change in a file that it writes whole"`
	Editable bool      `json:"editable,omitempty" doc:"the agent takes a changed input"`
	Event    any       `json:"event" doc:"the approval_request or input_required"`
}

func questionOf(i host.RunInfo, q host.Question) Question {
	return Question{q.RunID, q.ID, i.Agent, i.Name, q.Approval, q.Asked, q.Cwd, q.Why, q.Rules, q.Diff, q.Editable, json.RawMessage(q.Event)}
}

type questionsAnswer struct {
	Body struct {
		Questions []Question `json:"questions" nullable:"false" doc:"the first asked first"`
	}
}

type answerIn struct {
	RunRef
	ID   string `path:"question" doc:"interaction_id" maxLength:"500"`
	Body struct {
		Answer       string          `json:"answer" enum:"approve,deny,answer"`
		Text         string          `json:"text,omitempty" doc:"the reason of a denial, or the answer to a question" maxLength:"1000000"`
		AllowRules   []string        `json:"allow_rules,omitempty" nullable:"false" maxItems:"50" doc:"with approve: these rules, for the rest of the run"`
		UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"with approve: the input that the tool gets instead, where the question is editable"`
	}
}

// questions are what the agents of live runs ask, the first asked first.
func (s *api) questions(ctx context.Context, live []host.RunInfo) []Question {
	all := []Question{}
	for _, i := range live {
		if i.State != code.StateWaiting && i.State != code.StatePaused {
			continue
		}
		r, err := s.host.Open(ctx, i.ID)
		if err != nil {
			continue // it was deleted meanwhile
		}
		for _, q := range r.Questions() {
			all = append(all, questionOf(i, q))
		}
	}
	slices.SortStableFunc(all, func(a, b Question) int { return a.Asked.Compare(b.Asked) })
	return all
}

func (s *api) addQuestions(to huma.API) {
	add(to, "listQuestions", http.MethodGet, "/v1/questions", "List what the agents of all runs ask", reads, func(ctx context.Context, _ *struct{}) (*questionsAnswer, error) {
		live, err := s.host.Live(ctx)
		if err != nil {
			return nil, err
		}
		out := &questionsAnswer{}
		out.Body.Questions = s.questions(ctx, live)
		return out, nil
	})
	add(to, "listQuestionsOfRun", http.MethodGet, "/v1/runs/{run}/questions", "List what the agent of a run asks", reads, func(ctx context.Context, in *RunRef) (*questionsAnswer, error) {
		r, err := s.open(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		out := &questionsAnswer{}
		out.Body.Questions = []Question{}
		for _, q := range r.Questions() {
			out.Body.Questions = append(out.Body.Questions, questionOf(r.Info(), q))
		}
		return out, nil
	})
	add(to, "answerQuestion", http.MethodPost, "/v1/runs/{run}/questions/{question}", "Answer a question. The first answer counts: 409 for a later one", acts, func(ctx context.Context, in *answerIn) (*struct{}, error) {
		r, err := s.live(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		b := in.Body
		switch {
		case b.Answer != "approve" && (len(b.AllowRules) > 0 || len(b.UpdatedInput) > 0):
			return nil, app.Usagef("allow_rules and updated_input go with approve")
		case len(b.AllowRules) > 0 && len(b.UpdatedInput) > 0:
			return nil, app.Usagef("allow_rules and updated_input cannot be combined")
		case b.Answer == "deny":
			return nil, r.Deny(ctx, in.ID, b.Text)
		case b.Answer == "answer":
			return nil, r.Answer(ctx, in.ID, b.Text)
		case len(b.AllowRules) > 0:
			return nil, r.Allow(ctx, in.ID, b.AllowRules)
		}
		return nil, r.Approve(ctx, in.ID, b.UpdatedInput)
	})
}
