package httpapi

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/run"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Run is what is known of a run.
type Run struct {
	ID            string         `json:"run_id"`
	Name          string         `json:"name,omitempty"`
	Agent         string         `json:"agent"`
	State         string         `json:"state" enum:"queued,starting,running,waiting,paused,completed,failed,canceled,timed_out,lost"`
	Reason        string         `json:"reason,omitempty" doc:"why it ended"`
	Code          pluginapi.Code `json:"code,omitempty" doc:"of the error it ended with"`
	Message       string         `json:"message,omitempty" doc:"of that error"`
	Prompt        string         `json:"prompt"`
	Cwd           string         `json:"cwd"`
	Project       string         `json:"project,omitempty"`
	Tags          []string       `json:"tags,omitempty" nullable:"false"`
	SessionID     string         `json:"session_id,omitempty"`
	Approve       string         `json:"approve,omitempty"`
	Conversation  bool           `json:"conversation,omitempty" doc:"it takes more prompts"`
	Created       time.Time      `json:"created"`
	Ended         *time.Time     `json:"ended,omitempty"`
	Events        uint64         `json:"events" doc:"how many there are so far"`
	Usage         *Usage         `json:"usage,omitempty" doc:"of a run that has ended"`
	PluginVersion string         `json:"plugin_version,omitempty"`
}

// Usage is what a run has used; null is unknown.
type Usage struct {
	Turns            int      `json:"turns"`
	InputTokens      *int64   `json:"input_tokens"`
	OutputTokens     *int64   `json:"output_tokens"`
	CacheReadTokens  *int64   `json:"cache_read_tokens"`
	CacheWriteTokens *int64   `json:"cache_write_tokens"`
	CostUSD          *float64 `json:"cost_usd" doc:"as the agent says"`
}

func runOf(i host.RunInfo) Run {
	out := Run{
		ID: i.ID, Name: i.Name, Agent: i.Agent, State: i.State, Reason: i.Reason, Code: i.Code, Prompt: i.Prompt, Cwd: i.Cwd, Project: i.Project,
		Tags: i.Tags, SessionID: i.SessionID, Approve: string(i.Approve), Conversation: i.Conversation, Created: i.Created, Ended: i.Ended,
		Events: i.Events, PluginVersion: i.PluginVersion,
	}
	if e := i.End; e != nil {
		out.Message = e.Message
		out.Usage = &Usage{Turns: e.Turns, InputTokens: e.Tokens.Input, OutputTokens: e.Tokens.Output, CacheReadTokens: e.Tokens.CacheRead, CacheWriteTokens: e.Tokens.CacheWrite}
		if e.Cost != nil {
			out.Usage.CostUSD = &e.Cost.USD
		}
	}
	return out
}

// NewRun is what a run is started with. What is left out is decided as amux run decides it.
type NewRun struct {
	Agent          string            `json:"agent,omitempty" doc:"left out: that of config.toml" example:"claude" maxLength:"100"`
	Prompt         string            `json:"prompt,omitempty" doc:"needed unless it is a conversation"`
	Conversation   bool              `json:"conversation,omitempty" doc:"takes more prompts, until end"`
	Cwd            string            `json:"cwd" doc:"the folder to work in, absolute" example:"/home/me/project" minLength:"1" maxLength:"4096"`
	Worktree       bool              `json:"worktree,omitempty" doc:"work in a new git worktree"`
	Name           string            `json:"name,omitempty"`
	Tags           []string          `json:"tags,omitempty" nullable:"false" maxItems:"50"`
	Model          string            `json:"model,omitempty"`
	Effort         string            `json:"effort,omitempty"`
	System         string            `json:"system,omitempty"`
	Resume         string            `json:"resume,omitempty" doc:"a session of the agent to go on with"`
	Approve        string            `json:"approve,omitempty" enum:"ask,auto,deny,rules" doc:"who answers when the agent asks permission; left out: ask"`
	Sandbox        bool              `json:"sandbox,omitempty" doc:"keep the agent in a sandbox: it writes to its work folder alone, and sees no more of the home"`
	SandboxNet     []string          `json:"sandbox_net,omitempty" nullable:"false" maxItems:"200" doc:"hosts that it may reach in the sandbox, or none alone; left out: all"`
	Allow          []string          `json:"allow,omitempty" nullable:"false" maxItems:"200" doc:"rules of what is approved"`
	Deny           []string          `json:"deny,omitempty" nullable:"false" maxItems:"200"`
	AddDirs        []string          `json:"add_dirs,omitempty" nullable:"false" maxItems:"50"`
	Files          []string          `json:"files,omitempty" nullable:"false" maxItems:"50" doc:"files and images for the prompt"`
	Env            map[string]string `json:"env,omitempty" doc:"more variables for the agent"`
	MaxTurns       uint32            `json:"max_turns,omitempty"`
	MaxCost        float64           `json:"max_cost_usd,omitempty" minimum:"0"`
	MaxTokens      int64             `json:"max_tokens,omitempty" minimum:"0"`
	TimeoutSeconds float64           `json:"timeout_seconds,omitempty" minimum:"0" maximum:"2678400"`
}

// modes are from the one that lets an agent do least to the one that lets it do most.
var modes = []host.ApproveMode{host.ApproveDeny, host.ApproveRules, host.ApproveAsk, host.ApproveAuto}

// task is what the user's settings let HTTP start.
func (s *api) task(in NewRun) (run.Task, error) {
	t := run.Task{
		Agent: in.Agent, Prompt: in.Prompt, Model: in.Model, Effort: in.Effort, System: in.System, Cwd: filepath.Clean(filepath.FromSlash(in.Cwd)), Name: in.Name, Tags: in.Tags,
		Resume: in.Resume, Conversation: in.Conversation, Worktree: in.Worktree, AddDirs: in.AddDirs, Files: in.Files,
		Approve: in.Approve, Allow: in.Allow, Deny: in.Deny, MaxTurns: in.MaxTurns, MaxCost: in.MaxCost, MaxTokens: in.MaxTokens,
		Timeout: time.Duration(in.TimeoutSeconds * float64(time.Second)),
	}
	if in.Sandbox || len(in.SandboxNet) > 0 {
		t.Sandbox = &host.Sandbox{Network: in.SandboxNet}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		t.Env = append(t.Env, name+"="+in.Env[name])
	}
	if !filepath.IsAbs(t.Cwd) {
		return t, app.Usagef("invalid cwd %q: expected an absolute path", in.Cwd)
	}
	if strings.ContainsRune(in.Prompt, 0) {
		return t, app.Usagef("the prompt has a NUL byte")
	}
	if t.Approve == "" {
		t.Approve = string(host.ApproveAsk)
	}
	return t, s.allowed(t)
}

// mayApprove refuses an approve mode that the user's settings do not let HTTP choose.
func (s *api) mayApprove(mode host.ApproveMode) error {
	if slices.Index(modes, mode) > slices.Index(modes, s.most()) {
		return refused(`set approve = "`+string(mode)+`" in [http] of config.toml`, "HTTP may not have a run with approve %s", mode)
	}
	return nil
}

// most is the mode that lets an agent do most of those that HTTP may choose.
func (s *api) most() host.ApproveMode {
	return cmp.Or(host.ApproveMode(s.limits.Approve), host.ApproveAsk)
}

// allowed refuses what the user's settings do not let HTTP start, whichever way it came in.
func (s *api) allowed(t run.Task) error {
	if err := s.mayApprove(cmp.Or(host.ApproveMode(t.Approve), host.ApproveAsk)); err != nil {
		return err
	}
	if len(t.Allow) > 0 && s.most() != host.ApproveAuto { // a rule may allow everything
		return refused(`set approve = "auto" in [http] of config.toml`, "HTTP may start no run with rules of what is approved")
	}
	if len(s.limits.Agents) > 0 && t.Agent == "" {
		return refused("name one of agents in [http] of config.toml", "no agent is named, and HTTP may not start any")
	}
	if len(s.limits.Agents) > 0 && !slices.Contains(s.limits.Agents, t.Agent) {
		return refused("add it to agents in [http] of config.toml", "HTTP may not start agent %q", t.Agent)
	}
	for _, path := range slices.Concat([]string{t.Cwd}, t.AddDirs, t.Files) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(t.Cwd, path)
		}
		if len(s.limits.Folders) > 0 && !slices.ContainsFunc(s.limits.Folders, func(f string) bool { return within(f, path) }) {
			return refused("add it to folders in [http] of config.toml", "HTTP may not start runs in %q", path)
		}
	}
	return nil
}

// within reports whether a folder is another one, or inside it, whatever links there are.
func within(folder, dir string) bool {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false
	}
	rel, err := filepath.Rel(folder, dir)
	return err == nil && filepath.IsLocal(rel)
}

// RunRef is a run in an address.
type RunRef struct {
	Run string `path:"run" doc:"id, name, or the last characters of the id" maxLength:"200" example:"nightly"`
}

type runAnswer struct{ Body Run }

type listQuery struct {
	All   bool   `query:"all" doc:"the ended ones too"`
	State string `query:"state" doc:"only those in this state"`
	Agent string `query:"agent"`
	Tag   string `query:"tag"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	After string `query:"after" doc:"those that are older than this run: the last one of the page before" maxLength:"26"`
}

type listAnswer struct {
	Body struct {
		Runs []Run `json:"runs" nullable:"false" doc:"the newest first"`
		More bool  `json:"more" doc:"there are older ones"`
	}
}

type waitQuery struct {
	RunRef
	Timeout float64 `query:"timeout" minimum:"0" maximum:"600" default:"60" doc:"seconds; the answer says how far the run is then"`
	Ask     bool    `query:"questions" doc:"return when it asks something, too"`
}

var (
	reads = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusFailedDependency}
	acts  = append(slices.Clone(reads), http.StatusInsufficientStorage, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusRequestTimeout)
)

// created are the statuses of operations that are not the usual ones.
var created = map[string]int{"POST /v1/runs": http.StatusCreated}

// bodies are how large they may be, in bytes, where that is not maxBody.
var bodies = map[string]int64{"POST " + signInPath: maxSignIn}

// add adds an operation.
func add[In, Out any](to huma.API, id, method, path, summary string, errs []int, do func(ctx context.Context, in *In) (*Out, error)) {
	huma.Register(to, huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary, Description: descriptions[id], Tags: []string{strings.SplitN(strings.TrimPrefix(path, "/v1/"), "/", 2)[0]},
		Errors: errs, DefaultStatus: created[method+" "+path], MaxBodyBytes: cmp.Or(bodies[method+" "+path], maxBody), BodyReadTimeout: bodyTime,
	}, func(ctx context.Context, in *In) (*Out, error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, problemOf(err)
		}
		return out, nil
	})
}

func (s *api) addRuns(to huma.API) {
	add(to, "createRun", http.MethodPost, "/v1/runs", "Start a run. It goes on without this server", acts, func(ctx context.Context, in *struct{ Body NewRun }) (*runAnswer, error) {
		t, err := s.task(in.Body)
		if err != nil {
			return nil, err
		}
		id, err := run.Start(ctx, s.app, t)
		if err != nil {
			return nil, err
		}
		r, err := s.open(ctx, id)
		if err != nil {
			return nil, err
		}
		return &runAnswer{runOf(r.Info())}, nil
	})
	add(to, "listRuns", http.MethodGet, "/v1/runs", "List runs", reads, s.list)
	add(to, "getRun", http.MethodGet, "/v1/runs/{run}", "Say how far a run is", reads, func(ctx context.Context, in *RunRef) (*runAnswer, error) {
		r, err := s.open(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		return &runAnswer{runOf(r.Info())}, nil
	})
	add(to, "deleteRun", http.MethodDelete, "/v1/runs/{run}", "Delete the record of a run that has ended", acts, func(ctx context.Context, in *RunRef) (*struct{}, error) {
		r, err := s.open(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		_, err = s.host.Delete(ctx, r.ID())
		return nil, err
	})
	add(to, "waitForRun", http.MethodGet, "/v1/runs/{run}/wait", "Wait for the end of a run", reads, func(ctx context.Context, in *waitQuery) (*runAnswer, error) {
		r, err := s.open(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		if in.Ask && len(r.Questions()) > 0 {
			return &runAnswer{runOf(r.Info())}, nil
		}
		waiting, cancel := context.WithTimeout(ctx, time.Duration(in.Timeout*float64(time.Second)))
		defer cancel()
		err = s.follows.Events(waiting, r.ID(), r.Info().Events+1, func(_ uint64, line []byte) error {
			if in.Ask && (isType(line, code.EventApprovalRequest) || isType(line, code.EventInputRequired)) {
				cancel()
			}
			return nil
		})
		if err != nil && waiting.Err() == nil {
			return nil, err
		}
		if r, err = s.open(ctx, r.ID()); err != nil {
			return nil, err
		}
		return &runAnswer{runOf(r.Info())}, nil
	})
}

func (s *api) list(ctx context.Context, in *listQuery) (*listAnswer, error) {
	runs := s.host.RunsBefore(ctx, in.After, false)
	if !in.All {
		live, err := s.host.Live(ctx)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(live, func(a, b host.RunInfo) int { return strings.Compare(b.ID, a.ID) }) // ids begin with the time
		runs = func(yield func(host.RunInfo, error) bool) {
			for _, i := range live {
				if !yield(i, nil) {
					return
				}
			}
		}
	}
	out := &listAnswer{}
	out.Body.Runs = []Run{}
	for i, err := range runs {
		if err != nil {
			return nil, err
		}
		if !in.All && app.HasEnded(i) || in.State != "" && i.State != in.State || in.Agent != "" && i.Agent != in.Agent ||
			in.Tag != "" && !slices.Contains(i.Tags, in.Tag) || in.After != "" && i.ID >= in.After {
			continue
		}
		if len(out.Body.Runs) == in.Limit {
			out.Body.More = true
			break
		}
		out.Body.Runs = append(out.Body.Runs, runOf(i))
	}
	return out, nil
}
