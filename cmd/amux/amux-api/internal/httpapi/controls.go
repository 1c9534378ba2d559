package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/excerpt"
	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
)

type sendIn struct {
	RunRef
	Body struct {
		Prompt string `json:"prompt,omitempty"`
		End    bool   `json:"end,omitempty" doc:"no prompt follows: the run ends when the agent has finished"`
	}
}

type modelIn struct {
	RunRef
	Body struct {
		Model string `json:"model" minLength:"1" maxLength:"200"`
	}
}

type approveIn struct {
	RunRef
	Body struct {
		Approve string `json:"approve" enum:"ask,auto,deny,rules"`
	}
}

type diffQuery struct {
	RunRef
	Patch bool `query:"patch" doc:"the patch too, at most 1 MiB of it"`
}

// Change is a file that a run has changed.
type Change struct {
	Path    string `json:"path" doc:"relative to root"`
	OldPath string `json:"old_path,omitempty"`
	Status  string `json:"status" enum:"added,deleted,modified,renamed,retyped"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

type diffAnswer struct {
	Body struct {
		Root      string   `json:"root"`
		Files     []Change `json:"files" nullable:"false"`
		MoreFiles int      `json:"more_files,omitempty"`
		Patch     string   `json:"patch,omitempty"`
		Truncated bool     `json:"truncated,omitempty" doc:"the patch was cut"`
	}
}

const (
	maxFiles = 2000
	maxPatch = 1 << 20
)

func (s *api) addControls(to huma.API) {
	on := func(id, verb, summary string, do func(ctx context.Context, r app.Recorded) error) {
		add(to, id, http.MethodPost, "/v1/runs/{run}/"+verb, summary, acts, func(ctx context.Context, in *RunRef) (*runAnswer, error) {
			r, err := s.live(ctx, in.Run)
			if err != nil {
				return nil, err
			}
			if err := do(ctx, r); err != nil {
				return nil, err
			}
			if r, err = s.open(ctx, r.ID()); err != nil {
				return nil, err
			}
			return &runAnswer{runOf(r.Info())}, nil
		})
	}
	on("interruptRun", "interrupt", "Interrupt the agent's turn", func(ctx context.Context, r app.Recorded) error { return r.Interrupt(ctx) })
	on("pauseRun", "pause", "Pause all processes of a run", func(ctx context.Context, r app.Recorded) error { return r.Pause(ctx) })
	on("resumeRun", "resume", "Resume a paused run", func(ctx context.Context, r app.Recorded) error { return r.Resume(ctx) })
	on("stopRun", "stop", "Stop a run: it has time to finish", func(ctx context.Context, r app.Recorded) error {
		_, err := s.host.Cancel(ctx, r.ID(), false)
		return err
	})
	on("killRun", "kill", "Kill a run with all its processes", func(ctx context.Context, r app.Recorded) error {
		_, err := s.host.Cancel(ctx, r.ID(), true)
		return err
	})
	add(to, "sendPrompt", http.MethodPost, "/v1/runs/{run}/prompts", "Send a prompt to a conversation, end it, or both", acts, func(ctx context.Context, in *sendIn) (*runAnswer, error) {
		if in.Body.Prompt == "" && !in.Body.End {
			return nil, app.Usagef("no prompt").WithHint("set prompt, end or both")
		}
		r, err := s.live(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		if in.Body.Prompt != "" {
			if err := app.CheckPrompt(in.Body.Prompt); err != nil {
				return nil, err
			}
			if err := r.Send(ctx, in.Body.Prompt); err != nil {
				return nil, err
			}
		}
		if in.Body.End {
			if err := r.End(ctx); err != nil {
				return nil, err
			}
		}
		return &runAnswer{runOf(r.Info())}, nil
	})
	add(to, "setModel", http.MethodPut, "/v1/runs/{run}/model", "Use another model from the next turn on", acts, func(ctx context.Context, in *modelIn) (*runAnswer, error) {
		r, err := s.live(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		if err := r.SetModel(ctx, in.Body.Model); err != nil {
			return nil, err
		}
		return &runAnswer{runOf(r.Info())}, nil
	})
	add(to, "setApprove", http.MethodPut, "/v1/runs/{run}/approve", "Change who answers from now on when the agent asks", acts, func(ctx context.Context, in *approveIn) (*runAnswer, error) {
		r, err := s.live(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		if err := s.mayApprove(host.ApproveMode(in.Body.Approve)); err != nil {
			return nil, err
		}
		if err := r.SetApprove(ctx, host.ApproveMode(in.Body.Approve)); err != nil {
			return nil, err
		}
		return &runAnswer{runOf(r.Info())}, nil
	})
	add(to, "getDiff", http.MethodGet, "/v1/runs/{run}/diff", "Show what a run has changed in its git work tree", reads, s.diff)
}

func (s *api) diff(ctx context.Context, in *diffQuery) (*diffAnswer, error) {
	r, err := s.open(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	d, err := r.Changes().Diff(ctx)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	files, err := d.Files(ctx)
	if err != nil {
		return nil, err
	}
	out := &diffAnswer{}
	out.Body.Root, out.Body.Files, out.Body.MoreFiles = d.Root(), []Change{}, max(0, len(files)-maxFiles)
	for _, f := range files[:min(len(files), maxFiles)] {
		out.Body.Files = append(out.Body.Files, Change{f.Path, f.OldPath, f.Status, f.Added, f.Deleted, f.Binary})
	}
	if !in.Patch {
		return out, nil
	}
	out.Body.Patch, out.Body.Truncated, err = excerpt.Patch(ctx, d, maxPatch)
	if err != nil {
		return nil, err
	}
	return out, nil
}
