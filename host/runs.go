package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/amux-dev/amux/host/internal/archive"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/eventlog"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

// RunInfo is what is known of a run without asking anybody.
type RunInfo struct {
	ID            string            `json:"run_id"`
	Name          string            `json:"name,omitempty"`
	Agent         string            `json:"agent"`
	State         string            `json:"state"`
	Reason        string            `json:"reason,omitempty"`
	Code          pluginapi.Code    `json:"code,omitempty"`
	SessionID     string            `json:"session_id,omitempty"`
	Prompt        string            `json:"prompt"` // of a conversation that began without: its first one
	Cwd           string            `json:"cwd"`
	Project       string            `json:"project,omitempty"`
	Tags          []string          `json:"tags,omitempty"`
	Approve       ApproveMode       `json:"approve,omitempty"`
	Conversation  bool              `json:"conversation,omitempty"`
	Detached      bool              `json:"detached,omitempty"`
	Created       time.Time         `json:"created"`
	Ended         *time.Time        `json:"ended"`  // null while it runs
	Events        uint64            `json:"events"` // so far
	Dir           string            `json:"dir"`
	Plugin        string            `json:"plugin"`
	PluginVersion string            `json:"plugin_version"`
	PluginHash    string            `json:"plugin_hash"`
	Program       string            `json:"program,omitempty"` // that was started; not in lists
	End           *pluginapi.RunEnd `json:"end"`               // null while it runs
	// Spec is how it was started, without the values of environments and headers.
	Spec RunSpec `json:"-"`
	// Damage is what a look at the end of the record has found; Check looks at all.
	Damage []Damage `json:"damage,omitempty"`
}

// Recent returns the last events of the run, the newest last: at most n, and at most 1 MiB
// of them. It reads the end of the record alone, whoever hosts the run.
func (i RunInfo) Recent(n int) (events []Event) {
	const most = 1 << 20
	size := 0
	record.Latest(filepath.Join(filepath.FromSlash(i.Dir), "events.jsonl"), 0, func(line []byte) bool {
		head, err := record.Parse(line)
		if size += len(line); err != nil || len(events) == n || size > most {
			return false
		}
		events = append(events, Event{head.Type, head.RunID, head.Seq, head.Time, head.Agent, bytes.Clone(line)})
		return true
	})
	slices.Reverse(events)
	return events
}

// ApproveNow says who answers now when the agent asks before it acts: as the run was
// started, or as somebody has decided since. It reads the run's journal.
func (i RunInfo) ApproveNow() ApproveMode {
	decided := record.Standing(filepath.Join(filepath.FromSlash(i.Dir), "journal"))
	return cmp.Or(ApproveMode(decided.Mode), i.Approve)
}

// Runs lists the recorded runs, newest first. A directory that cannot be read is
// left out.
func (h *Host) Runs(ctx context.Context) ([]RunInfo, error) {
	var infos []RunInfo
	for info, err := range RunsBefore(ctx, h, "") {
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	// Their ids are in that order but for those that a caller has chosen.
	slices.SortStableFunc(infos, func(a, b RunInfo) int { return b.Created.Compare(a.Created) })
	return infos, nil
}

// AnyRun reports whether a host has recorded a run, whether it has ended or not. It costs the
// same for any number of them.
func AnyRun(h *Host) bool { return h.store.Any() }

// RunsBefore are the recorded runs whose ids sort before one, those with the last ids first:
// ids begin with the time, but for those that a caller has chosen. "" is behind all ids. Each
// run is looked at when it is its turn, so that a page of the newest costs little for any number
// of others. It is not for use by two goroutines at once.
func RunsBefore(ctx context.Context, h *Host, id string) iter.Seq2[RunInfo, error] {
	return runsBefore(ctx, h, id, func(string) bool { return true })
}

// EndedBefore is RunsBefore without the runs that are marked as not ended, at which it does not look.
func EndedBefore(ctx context.Context, h *Host, id string) iter.Seq2[RunInfo, error] {
	active := map[string]bool{}
	for _, id := range h.store.Active() {
		active[id] = true
	}
	return runsBefore(ctx, h, id, func(id string) bool { return !active[id] })
}

func runsBefore(ctx context.Context, h *Host, id string, fits func(id string) bool) iter.Seq2[RunInfo, error] {
	return func(yield func(RunInfo, error) bool) {
		for _, name := range h.store.List() {
			if id != "" && name >= id || !fits(name) {
				continue
			}
			if err := ctx.Err(); err != nil {
				yield(RunInfo{}, err)
				return
			}
			if info, ok := look(h.store.Run(name)); ok && !yield(info, nil) {
				return
			}
		}
	}
}

// look reads the record of a run, unless it cannot be read.
func look(dir *store.Run) (RunInfo, bool) {
	info, err := record.Inspect(dir)
	var spec RunSpec
	if err != nil || json.Unmarshal(info.Meta.Spec, &spec) != nil {
		return RunInfo{}, false
	}
	return infoOf(info, spec, dir), true
}

// Live is Runs for those that are marked as not ended. It costs a look at each of them,
// however many have ended; called again, it reads what they have written since.
func (h *Host) Live(ctx context.Context) (infos []RunInfo, err error) {
	err = h.looks.Inspect(ctx, h.store, h.store.Active(), func(dir *store.Run, found record.Info) {
		var spec RunSpec
		if json.Unmarshal(found.Meta.Spec, &spec) == nil {
			infos = append(infos, infoOf(found, spec, dir))
		}
	})
	return infos, err
}

// Info says what is recorded of the run now.
func (r *Run) Info() RunInfo {
	found, err := record.Inspect(r.dir)
	if err != nil { // a run without record that has ended
		found = record.Info{Meta: r.meta}
		if r.backend.over() {
			result, _ := r.backend.wait(context.Background())
			found.State = result.State
		}
	}
	info := infoOf(found, r.spec, r.dir)
	info.Program = filepath.ToSlash(record.Program(r.dir))
	return info
}

func infoOf(found record.Info, spec RunSpec, dir *store.Run) RunInfo {
	m := found.Meta
	prompt := spec.Prompt
	if prompt == "" && spec.Conversation {
		prompt = record.FirstPrompt(dir)
	}
	return RunInfo{
		ID: m.RunID, Name: m.Name, Agent: m.Agent, Prompt: prompt, Cwd: filepath.ToSlash(m.Cwd),
		State: found.State, Reason: found.Reason, Code: found.Code, SessionID: found.SessionID,
		Project: filepath.ToSlash(m.Project), Tags: m.Tags, Created: m.Created, Dir: filepath.ToSlash(dir.Dir),
		Approve: spec.Approve, Conversation: spec.Conversation, Detached: spec.Detached, Spec: spec,
		Plugin: m.Plugin, PluginVersion: m.PluginVersion, PluginHash: m.PluginHash,
		Ended: found.Ended, Events: found.Events, End: found.End, Damage: damages(found.Damage),
	}
}

// Open returns a run that this or another host has started. While another process
// hosts it, its events are followed as they come, and what is asked of it goes to
// its shim. Wait and Events end with HOST_GONE if that process dies; Recover
// then makes the rest.
func (h *Host) Open(ctx context.Context, ref string) (*Run, error) {
	dir, err := h.archive.Find(ref)
	if err != nil {
		return nil, err
	}
	if ours := h.runs.get(dir.ID); ours != nil {
		return ours.self, nil
	}
	meta, err := dir.ReadMeta()
	if errors.Is(err, os.ErrNotExist) {
		return nil, record.NoRun(ref) // it was deleted meanwhile, or is only being made
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "run %s: %w", dir.ID, err)
	}
	r := &recorded{h: h, meta: meta, dir: dir, agent: &pluginapi.Agent{Id: meta.Agent}}
	if err := json.Unmarshal(meta.Spec, &r.spec); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "run %s: run.json: %w", dir.ID, err)
	}
	if _, agent, _, err := h.catalog.find(meta.Agent, r.spec.Launch); err == nil {
		r.agent = agent
	}
	info, _ := record.Inspect(dir)
	if info.End == nil && info.Damage == nil {
		return &Run{r, remote{r}}, nil
	}
	log, err := eventlog.Open(dir.Path("events.jsonl"), meta.RunID, meta.Agent, false)
	if errors.Is(err, os.ErrNotExist) {
		return nil, record.NoRun(ref)
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "events of run %s: %w", dir.ID, fault.Plain(err))
	}
	result := resultOf(info)
	if info.End == nil {
		result.Err = &pluginapi.Error{Code: info.Code, Msg: Damage(info.Damage[0]).String(), Hint: info.Code.Info().Hint}
	}
	return &Run{r, &finished{r, log, result}}, nil
}

// Outcome is what came of Cancel and Delete. Both may be repeated.
type Outcome string

// The outcomes.
const (
	CancelRequested Outcome = "cancel_requested"
	AlreadyFinished Outcome = "already_finished"
	NotCancellable  Outcome = "not_cancellable" // no shim takes the command
	NotFound        Outcome = "not_found"
	Deleted         Outcome = "deleted"
	ActiveConflict  Outcome = "active_process_conflict"
)

// Cancel asks for the end of a run, whoever hosts it: by Stop, or by Kill at once.
// It does not wait for the end. The error says more where the outcome is
// NotFound or NotCancellable.
func (h *Host) Cancel(ctx context.Context, ref string, kill bool) (Outcome, error) {
	r, err := h.Open(ctx, ref)
	if errors.Is(err, record.ErrNone) {
		return NotFound, err
	}
	if err != nil {
		return NotCancellable, err
	}
	if kill {
		err = r.Kill(ctx)
	} else {
		err = r.Stop(ctx)
	}
	switch {
	case err == nil:
		return CancelRequested, nil
	case errors.Is(err, pluginapi.CodeRunNotActive):
		return AlreadyFinished, nil
	}
	return NotCancellable, err
}

// Delete removes the record of a run that has ended. A run that has not is
// ActiveConflict: stop it first.
func (h *Host) Delete(ctx context.Context, ref string) (Outcome, error) {
	dir, err := h.archive.Find(ref)
	if err == nil {
		err = h.archive.Delete(ctx, dir)
	}
	switch {
	case err == nil:
		return Deleted, nil
	case errors.Is(err, record.ErrNone):
		return NotFound, err
	case errors.Is(err, archive.ErrActive):
		return ActiveConflict, err
	}
	return "", err
}

// Retain applies Options.Keep to the runs that have ended. How old a run is, its record says:
// its id may be of any time, since a caller may choose it. It costs a look at one folder where
// there is nothing to do. Now and then it packs journals of runs that ended more than an hour ago,
// for a tenth of the time that ctx allows.
func (h *Host) Retain(ctx context.Context) error { return h.archive.Retain(ctx) }

// Removed is one thing that Clean has removed, or would.
type Removed struct {
	Kind string `json:"kind"` // run, temp dir, socket, plugin copy; journals: what packing them saves
	Path string `json:"path"`
	Why  string `json:"why"`
	Size int64  `json:"size"`
}

// Clean applies the limits of Retain, packs the journals of all runs that have ended, and removes what hosts that died have left
// behind: temp dirs, sockets, copies of plugins that no run names and that are
// not current, worktrees that were not finished. With dry it only says what it would remove.
func (h *Host) Clean(ctx context.Context, dry bool) ([]Removed, error) {
	var removed []Removed
	list, err := h.archive.Clean(ctx, dry)
	for _, r := range list {
		removed = append(removed, Removed(r))
	}
	if err == nil && !dry {
		h.recovery.sweep()
		err = WorktreesOf(h).sweep(ctx)
	}
	return removed, err
}

// resultOf is the result of a run that has ended.
func resultOf(info record.Info) Result {
	result := Result{RunID: info.Meta.RunID, State: info.State}
	if info.End == nil {
		result.End = pluginapi.RunEnd{State: info.State, Reason: info.Reason, Code: info.Code}
		return result
	}
	result.End = *info.End
	if info.Code != "" {
		result.Err = &pluginapi.Error{Code: info.Code, Msg: info.End.Message, Hint: cmp.Or(info.End.Hint, info.Code.Info().Hint)}
	}
	return result
}
