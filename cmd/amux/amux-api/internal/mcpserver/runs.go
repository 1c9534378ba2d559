package mcpserver

import (
	"context"
	"errors"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

const (
	maxRuns     = 50       // in one call
	maxAnswer   = 32 << 10 // bytes of an answer
	defaultWait = 60 * time.Second
	longestWait = 10 * time.Minute
)

// runOut is how far a run is.
type runOut struct {
	RunID     string   `json:"run_id"`
	Name      string   `json:"name,omitempty"`
	Agent     string   `json:"agent"`
	State     string   `json:"state" jsonschema:"queued, starting, running, waiting (for an answer), paused, completed, failed, canceled, timed_out or lost"`
	Ended     bool     `json:"ended"`
	Reason    string   `json:"reason,omitempty"`
	Error     *problem `json:"error,omitempty"`
	Prompt    string   `json:"prompt" jsonschema:"the beginning of the prompt"`
	Cwd       string   `json:"cwd"`
	Created   string   `json:"created"`
	Events    uint64   `json:"events" jsonschema:"how many there are so far"`
	Answer    string   `json:"answer,omitempty" jsonschema:"the last message of the agent"`
	CostUSD   *float64 `json:"cost_usd,omitempty" jsonschema:"left out: unknown"`
	Questions int      `json:"questions,omitempty" jsonschema:"how many wait for an answer"`
}

func shown(i host.RunInfo) runOut {
	out := runOut{
		RunID: i.ID, Name: i.Name, Agent: i.Agent, State: i.State, Ended: app.HasEnded(i), Reason: i.Reason,
		Prompt: render.Excerpt(i.Prompt, 200), Cwd: i.Cwd, Created: i.Created.UTC().Format(time.RFC3339Nano), Events: i.Events,
	}
	if i.End != nil && i.End.Code != "" {
		out.Error = &problem{Code: i.End.Code, Message: i.End.Message}
	}
	if i.End != nil && i.End.Cost != nil {
		out.CostUSD = &i.End.Cost.USD
	}
	return out
}

// full adds what takes a look into the record.
func full(r app.Recorded) runOut {
	i := r.Info()
	out := shown(i)
	out.Answer = lastAnswer(i)
	if i.End == nil {
		if out.Questions = len(r.Questions()); out.Questions > 0 && i.State == code.StateRunning {
			out.State = code.StateWaiting // which the record says a moment after the question
		}
	}
	return out
}

type listIn struct {
	All bool `json:"all,omitempty" jsonschema:"the ended ones too"`
	Max int  `json:"max,omitempty" jsonschema:"at most so many; default and most: 50"`
}

type listOut struct {
	Runs []runOut `json:"runs"`
	More int      `json:"more" jsonschema:"how many were left out"`
}

func (s *server) list(ctx context.Context, _ func(float64, string), in listIn) (listOut, error) {
	look := s.host.Live
	if in.All {
		look = func(ctx context.Context) ([]host.RunInfo, error) { return app.AllRuns(ctx, s.host) }
	}
	runs, err := look(ctx)
	most := in.Max
	if most <= 0 || most > maxRuns {
		most = maxRuns
	}
	out := listOut{Runs: []runOut{}, More: max(0, len(runs)-most)}
	for _, i := range runs[:min(most, len(runs))] {
		out.Runs = append(out.Runs, shown(i))
	}
	return out, err
}

type waitIn struct {
	RunIDs   []string `json:"run_ids" jsonschema:"the runs to wait for; at most 50"`
	TimeoutS float64  `json:"timeout_seconds,omitempty" jsonschema:"return after this time in any case; default 60, at most 600"`
	Any      bool     `json:"any,omitempty" jsonschema:"return when one of them has ended or waits for an answer"`
}

type waitOut struct {
	Runs     []runOut `json:"runs"`
	TimedOut bool     `json:"timed_out" jsonschema:"time was up before that; the runs go on"`
}

func (s *server) wait(ctx context.Context, progress func(float64, string), in waitIn) (waitOut, error) {
	if len(in.RunIDs) == 0 || len(in.RunIDs) > maxRuns {
		return waitOut{}, app.Usagef("got %d runs: expected 1 to %d", len(in.RunIDs), maxRuns)
	}
	if in.TimeoutS < 0 || in.TimeoutS > longestWait.Seconds() {
		return waitOut{}, app.Usagef("invalid timeout_seconds: expected 0 to %.0f", longestWait.Seconds()).WithHint("call run_wait again to wait longer")
	}
	limit := time.Duration(in.TimeoutS * float64(time.Second))
	if limit == 0 {
		limit = defaultWait
	}
	for _, ref := range in.RunIDs { // before any wait
		if _, err := s.host.Open(ctx, ref); err != nil {
			return waitOut{}, err
		}
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	settled := make(chan string, len(in.RunIDs))
	for _, ref := range in.RunIDs {
		go func() { settled <- s.settle(waiting, ref) }()
	}
	for n := range in.RunIDs {
		progress(float64(n+1), <-settled)
		if in.Any {
			cancel() // the others return
		}
	}
	out := waitOut{Runs: []runOut{}}
	for _, ref := range in.RunIDs {
		r, err := s.host.Open(ctx, ref)
		if err != nil {
			return waitOut{}, err
		}
		out.Runs = append(out.Runs, full(r))
	}
	out.TimedOut = errors.Is(waiting.Err(), context.DeadlineExceeded)
	return out, ctx.Err()
}

// settle returns when a run has ended or waits for an answer, or the context ends; with a
// line that says so.
func (s *server) settle(ctx context.Context, ref string) string {
	var patience app.Patience
	var seen uint64
	for {
		r, err := s.host.Open(ctx, ref)
		if err != nil || app.HasEnded(r.Info()) || len(r.Questions()) > 0 {
			break
		}
		failed := false
		for e, err := range r.Events(ctx, seen+1) {
			if failed = err != nil; failed {
				break
			}
			seen = e.Seq
			if asks(string(e.Type)) && len(r.Questions()) > 0 {
				return ref + " waits for an answer"
			}
		}
		if ctx.Err() != nil {
			return ref + " goes on"
		}
		if r, err = s.host.Open(ctx, ref); err != nil || app.HasEnded(r.Info()) {
			break
		}
		if failed { // its host has died
			s.follows.Rescue(ctx, ref)
		}
		if !patience.Again(r.Info(), seen) {
			break
		}
	}
	return ref + " has ended or waits"
}

func asks(event string) bool {
	return event == code.EventApprovalRequest || event == code.EventInputRequired
}

type stopIn struct {
	RunIDs []string `json:"run_ids" jsonschema:"the runs to stop; at most 50"`
	Kill   bool     `json:"kill,omitempty" jsonschema:"kill at once, without time to finish"`
}

type stopOut struct {
	Runs []runOut `json:"runs"`
}

func (s *server) stop(ctx context.Context, _ func(float64, string), in stopIn) (stopOut, error) {
	out := stopOut{Runs: []runOut{}}
	if len(in.RunIDs) == 0 || len(in.RunIDs) > maxRuns {
		return out, app.Usagef("got %d runs: expected 1 to %d", len(in.RunIDs), maxRuns)
	}
	for _, ref := range in.RunIDs { // none is stopped if one is unknown
		if _, err := s.host.Open(ctx, ref); err != nil {
			return out, err
		}
	}
	var failed error
	for _, ref := range in.RunIDs {
		_, err := s.host.Cancel(ctx, ref, in.Kill)
		if errors.Is(err, pluginapi.CodeHostGone) {
			s.follows.Rescue(ctx, ref)
			_, err = s.host.Cancel(ctx, ref, in.Kill)
		}
		if err != nil {
			failed = err
			continue
		}
		if r, err := s.host.Open(ctx, ref); err == nil {
			out.Runs = append(out.Runs, full(r))
		}
	}
	return out, failed
}

type sendIn struct {
	RunID  string `json:"run_id"`
	Prompt string `json:"prompt,omitempty" jsonschema:"the next prompt"`
	End    bool   `json:"end,omitempty" jsonschema:"no more prompts follow: the run ends when the agent has finished"`
}

type doneOut struct {
	RunID string `json:"run_id"`
}

func (s *server) send(ctx context.Context, _ func(float64, string), in sendIn) (doneOut, error) {
	r, err := s.host.Open(ctx, in.RunID)
	switch {
	case err != nil:
		return doneOut{}, err
	case in.Prompt == "" && !in.End:
		return doneOut{}, app.Usagef("no prompt").WithHint("set prompt, end or both")
	}
	if in.Prompt != "" {
		if err := app.CheckPrompt(in.Prompt); err != nil {
			return doneOut{}, err
		}
		if err := r.Send(ctx, in.Prompt); err != nil {
			return doneOut{}, err
		}
	}
	if in.End {
		err = r.End(ctx)
	}
	return doneOut{r.ID()}, err
}
