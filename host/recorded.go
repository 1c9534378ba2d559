package host

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/amux-dev/amux/host/eventlog"
	"github.com/amux-dev/amux/host/internal/archive"
	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/host/store"
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
	Prompt        string            `json:"prompt"`
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
	// Damage is what a look at the end of the record has found; Check looks at all.
	Damage []Damage `json:"damage,omitempty"`
}

// Runs lists the recorded runs, newest first. A directory that cannot be read is
// left out.
func (h *Host) Runs(ctx context.Context) ([]RunInfo, error) {
	var infos []RunInfo
	for _, id := range h.store.List() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dir := h.store.Run(id)
		info, err := record.Inspect(dir)
		var spec RunSpec
		if err == nil && json.Unmarshal(info.Meta.Spec, &spec) == nil {
			infos = append(infos, infoOf(info, spec, dir))
		}
	}
	// Their ids are in that order but for those that a caller has chosen.
	slices.SortStableFunc(infos, func(a, b RunInfo) int { return b.Created.Compare(a.Created) })
	return infos, nil
}

// Info says what is recorded of the run now.
func (r *Run) Info() RunInfo {
	found, err := record.Inspect(r.dir)
	if err != nil { // a run without record that has ended
		found = record.Info{Meta: r.meta}
		if r.backend.over() {
			found.State = r.backend.wait().State
		}
	}
	info := infoOf(found, r.spec, r.dir)
	info.Program = filepath.ToSlash(record.Program(r.dir))
	return info
}

func infoOf(found record.Info, spec RunSpec, dir *store.Run) RunInfo {
	m := found.Meta
	return RunInfo{
		ID: m.RunID, Name: m.Name, Agent: m.Agent, Prompt: spec.Prompt, Cwd: filepath.ToSlash(m.Cwd),
		State: found.State, Reason: found.Reason, Code: found.Code, SessionID: found.SessionID,
		Project: filepath.ToSlash(m.Project), Tags: m.Tags, Created: m.Created, Dir: filepath.ToSlash(dir.Dir),
		Approve: spec.Approve, Conversation: spec.Conversation, Detached: spec.Detached,
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

// Retain applies the limits to the runs that have ended: 1,000 of them, 30 days,
// 5 GB. How old a run is, its record says: its id may be of any time, since a caller
// may choose it. It costs a look at one folder where there is nothing to do.
func (h *Host) Retain(ctx context.Context) error { return h.archive.Retain(ctx) }

// Removed is one thing that Clean has removed, or would.
type Removed struct {
	Kind string `json:"kind"` // run, temp dir, socket, plugin copy
	Path string `json:"path"`
	Why  string `json:"why"`
	Size int64  `json:"size"`
}

// Clean applies the limits of Retain and removes what hosts that died have left
// behind: temp dirs, sockets, copies of plugins that no run names and that are
// not current. With dry it only says what it would remove.
func (h *Host) Clean(ctx context.Context, dry bool) ([]Removed, error) {
	var removed []Removed
	list, err := h.archive.Clean(ctx, dry)
	for _, r := range list {
		removed = append(removed, Removed(r))
	}
	if err == nil && !dry {
		h.sweepFolders()
	}
	return removed, err
}

// Replay makes the events of a recorded run again, from its journal and the
// plugin it was started with, and writes them to w, one JSON object a line. Of a
// journal that is damaged it writes what stands before the damage, and returns
// RECORD_DAMAGED.
func (h *Host) Replay(ctx context.Context, ref string, w io.Writer) error {
	return h.ReplayWith(ctx, ref, ReplayOptions{}, w)
}

// ReplayOptions change how a run is replayed.
type ReplayOptions struct {
	// Plugin is the folder of a plugin that makes the events in the place of the one
	// that the run was started with. Nobody needs to have signed it.
	Plugin string
	// OnPlugin, if not nil, is called with name and version of that plugin, before the
	// first event.
	OnPlugin func(name, version string)
}

// ReplayWith is Replay with options. Plans are in the journal and not made again, and
// neither the record nor anything else is changed by what the plugin answers.
func (h *Host) ReplayWith(ctx context.Context, ref string, o ReplayOptions, w io.Writer) error {
	dir, err := h.archive.Find(ref)
	if err != nil {
		return err
	}
	meta, err := dir.ReadMeta()
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "run %s: %w", dir.ID, err)
	}
	var other *registry.Plugin
	if o.Plugin != "" {
		if other, err = h.teller.otherPlugin(meta, o.Plugin); err != nil {
			return err
		}
		if o.OnPlugin != nil {
			o.OnPlugin(other.Name, other.Version)
		}
	}
	src, err := record.Open(dir.Path("journal"))
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "run %s has no journal: %w", dir.ID, fault.Plain(err))
	}
	defer src.Close()
	temp, err := os.MkdirTemp(h.opts.TempDir, "agent-mux-replay-")
	if err != nil {
		return folders.Error("temp folder", h.opts.TempDir, err)
	}
	defer os.RemoveAll(temp)
	log, err := eventlog.Open(filepath.Join(temp, "events.jsonl"), meta.RunID, meta.Agent, true)
	if err != nil {
		return folders.Error("temp folder", temp, err)
	}
	defer log.Close()
	copied := make(chan error, 1)
	copyCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { copied <- copyEvents(copyCtx, log, w, 1) }()
	_, err = h.teller.retell(ctx, meta, other, src, log, nil)
	log.Finish()
	if copyErr := <-copied; err == nil {
		err = copyErr
	}
	if err != nil && !errors.Is(err, journal.ErrFormat) {
		if e := pluginapi.AsError(err); e.Code == pluginapi.CodeRecordDamaged {
			return e.WithHint("%s", record.DamageHint(meta.RunID))
		}
		return err
	}
	info, infoErr := record.Inspect(dir)
	if infoErr != nil || info.End == nil && info.Damage == nil {
		return errors.Join(err, infoErr) // it goes on
	}
	damage, _, checkErr := record.CheckJournal(ctx, src.Name(), info)
	if damage != nil {
		return Integrity{Damage: []Damage{Damage(*damage)}}.Err(dir.ID)
	}
	return errors.Join(err, checkErr)
}
