package host

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/host/adapter"
	"github.com/amux-dev/amux/host/eventlog"
	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/internal/rawio"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Recover ends the runs whose host has died: processes they left are killed, and
// the rest of their events is made from the journal, by the plugin they were
// started with if it is still there. Runs that another host holds are left alone,
// and so are detached ones whose shim lives: see Adopt.
func (h *Host) Recover(ctx context.Context) error {
	var errs []error
	for _, id := range h.store.Active() {
		if ctx.Err() != nil {
			errs = append(errs, ctx.Err())
			break
		}
		if err := h.recoverOne(ctx, id); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// RecoverRun is Recover for one run, whatever its name or id. It costs nothing where
// the run has ended or is hosted, and reports whether it is one that Adopt would take
// up. A run that does not exist is no error.
func (h *Host) RecoverRun(ctx context.Context, ref string) (orphan bool, err error) {
	dir, err := h.find(ref)
	if errors.Is(err, errNoRun) {
		return false, nil
	}
	if err != nil || !dir.Active() || h.hosts(dir.ID) {
		return false, err
	}
	if err := h.recoverOne(ctx, dir.ID); err != nil {
		return false, err
	}
	meta, err := dir.ReadMeta()
	return err == nil && dir.Active() && isDetached(meta) && orphaned(dir), nil
}

// Abandoned lists the runs that have no end, and neither a host nor a shim that lives:
// RecoverRun ends them.
func (h *Host) Abandoned() []string {
	var ids []string
	for _, id := range h.store.Active() {
		if h.hosts(id) {
			continue
		}
		dir := h.store.Run(id)
		if dir.Held() {
			continue
		}
		if info, err := shim.ReadInfo(dir.Dir); err != nil || !shimLives(info) {
			ids = append(ids, id)
		}
	}
	return ids
}

// hosts reports whether a run is this host's.
func (h *Host) hosts(id string) bool { return h.runs.get(id) != nil }

func (h *Host) recoverOne(ctx context.Context, id string) error {
	err := h.recoverRun(ctx, id)
	if errors.Is(err, store.ErrLocked) {
		h.sweeping.Wait() // perhaps it was this host that looked
		err = h.recoverRun(ctx, id)
	}
	if errors.Is(err, store.ErrLocked) {
		return nil
	}
	return err
}

// SweepOrphans kills what runs of dead hosts have left running. It is quick where
// there is nothing to do.
func (h *Host) SweepOrphans() {
	for _, id := range h.store.Active() {
		if h.closing.Err() != nil {
			return // the next host goes on
		}
		dir := h.store.Run(id)
		meta, err := dir.ReadMeta()
		if err != nil || dir.Lock() != nil {
			continue
		}
		if info, err := shim.ReadInfo(dir.Dir); err != nil || !shimLives(info) {
			h.sweepRun(meta)
		}
		dir.Unlock()
	}
}

func shimLives(info shim.Info) bool {
	return info.BootID == process.BootID() && process.Alive(process.ID{PID: info.PID, Start: info.Start})
}

// sweepFolders removes what hosts that were killed have left in the runtime
// folder: their plugins' private folders, and sockets nobody listens on.
func (h *Host) sweepFolders() {
	entries, err := os.ReadDir(h.opts.RuntimeDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), pluginFolder); ok {
			pid, rest, _ := strings.Cut(name, "-")
			start, _, _ := strings.Cut(rest, "-")
			number, err1 := strconv.Atoi(pid)
			since, err2 := strconv.ParseUint(start, 36, 64)
			if err1 == nil && err2 == nil && !process.Alive(process.ID{PID: number, Start: since}) {
				_ = os.RemoveAll(filepath.Join(h.opts.RuntimeDir, e.Name()))
			}
		}
	}
	h.sweeping.Go(h.SweepOrphans)
}

// recoverRun finishes one run that is marked active.
func (h *Host) recoverRun(ctx context.Context, id string) error {
	dir := h.store.Run(id)
	if _, err := dir.ReadMeta(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return pluginapi.Errorf(pluginapi.CodeParse, "run %s: %w", id, err)
	}
	if err := dir.Lock(); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			dir.MarkEnded() // all that is left of it
			return nil
		}
		return err
	}
	defer dir.Unlock()
	meta, err := dir.ReadMeta() // as it is now
	if errors.Is(err, os.ErrNotExist) {
		if info, err := os.Stat(dir.Path("journal")); err == nil && info.Size() > 0 {
			// Its run.json has not reached the disk before the power went: nobody can say
			// whose the journal is, and nobody is to delete it.
			h.log.Named("run").Warn("run has a journal and no run.json", "run_id", id)
			dir.MarkEnded()
			return nil
		}
		return dir.Remove() // its host died before it had begun
	}
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "run %s: %w", id, err)
	}
	info, err := shim.ReadInfo(dir.Dir)
	if err == nil && shimLives(info) {
		// A detached one is for a host that serves: see Adopt. That of a foreground
		// run leaves within moments of its host's death.
		if isDetached(meta) || !waitGone(ctx, info) {
			return nil
		}
	}
	h.sweepRun(meta)
	_ = os.RemoveAll(meta.TempDir)
	_ = os.Remove(socketPath(h.opts.RuntimeDir, id))
	return h.conclude(ctx, dir, meta)
}

func waitGone(ctx context.Context, info shim.Info) bool {
	for range 100 {
		if !shimLives(info) {
			return true
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// conclude makes the last events of a run that nothing writes any more.
func (h *Host) conclude(ctx context.Context, dir *store.Run, meta store.Meta) error {
	fail := func(err error) error {
		return pluginapi.Errorf(pluginapi.AsError(err).Code, "recover run %s: %w", meta.RunID, err)
	}
	var spec RunSpec
	_ = json.Unmarshal(meta.Spec, &spec) // then its answer is not validated
	writer, err := journal.OpenWriter(dir.Path("journal"), time.Now)
	if err != nil {
		return fail(err)
	}
	defer writer.Close()
	log, err := eventlog.Open(dir.Path("events.jsonl"), meta.RunID, meta.Agent, true)
	if err != nil {
		return fail(err)
	}
	defer log.Close()
	file, err := openJournal(dir)
	if err != nil {
		return fail(err)
	}
	defer file.Close()
	src := &ownSource{File: file, writer: writer}
	effects := deadRun{writer: writer, dir: dir}
	e, err := h.retell(ctx, meta, nil, src, log, effects)
	if err != nil && ctx.Err() == nil && pluginapi.AsError(err).Code != pluginapi.CodeDiskFull {
		if cut := log.Cut(); cut != nil {
			// They would have been made again.
			damage := damageOf(cut)
			if err := writer.Append(journal.KindDamage, journal.Encode(damage)); err != nil {
				return fail(err)
			}
		}
		// Without its plugin a run ends all the same: with the events that it has.
		h.log.Named("run").Warn("the rest of the run's events cannot be told", "run_id", meta.RunID, "error", err)
		e, err = h.tellEnd(ctx, src, log, effects, spec.JSONSchema)
	}
	if err != nil {
		return fail(err)
	}
	ended := e.Summary().Ended
	if mode := syncMode(meta, h.opts); mode != SyncOff {
		_ = errors.Join(src.sync(), log.Sync()) // a disk that fails is told by who reads
	}
	log.Finish() // else its last event would be waited for
	var end pluginapi.RunEnd
	_ = log.From(log.Count()).Lines(ctx, func(line []byte) bool { return json.Unmarshal(line, &end) == nil })
	h.index(meta, end, ended)
	dir.MarkEnded()
	return nil
}

// deadRun is what an engine can have done of a run that nothing writes any more: its end
// is recorded.
type deadRun struct {
	engine.Effects // of an agent: none is there, and an engine without policy asks for none
	writer         *journal.Writer
	dir            *store.Run
}

func (d deadRun) Append(kind journal.Kind, record []byte) error { return d.writer.Append(kind, record) }

func (d deadRun) Settle(bool) (settled engine.Settled, err error) {
	if exit, ok := readExit(d.dir.Path("exit")); ok {
		settled.Exit = &exit
	}
	return settled, nil
}

// retell makes the events of a recorded run that log does not have, with another
// plugin than the run's if there is one. The plugin may die of other runs, so that it
// gets a few more chances in a process of its own.
func (h *Host) retell(ctx context.Context, meta store.Meta, other *registry.Plugin, src engine.Journal, log *eventlog.Log, effects engine.Effects) (*engine.Engine, error) {
	var spec RunSpec
	if err := json.Unmarshal(meta.Spec, &spec); err != nil {
		return nil, err
	}
	past, err := readPast(src)
	if err != nil {
		return nil, err
	}
	var verified registry.Verified
	start := &pb.Start{Agent: spec.adapter()}
	mute := past.fault != nil && past.fault.Done == 0 // the adapter was never heard
	if !mute {
		if err := h.prepare(); err != nil {
			return nil, err
		}
		var agent *pluginapi.Agent
		if verified, agent, err = h.replayPlugin(meta, spec, other); err != nil {
			return nil, err
		}
		start.Options = spec.recorded(agent)
	}
	e := engine.New(engine.Config{
		Journal: src, Log: log, Limits: h.limits.engine(), Start: start, Schema: spec.JSONSchema, Effects: effects, Fault: past.fault,
	})
	var lived lives
	for attempt := 1; ; attempt++ {
		since := time.Now()
		reading, stop := engine.Reading{}, func() {}
		if !mute {
			reading, stop, err = h.replayReading(ctx, verified, attempt > 1)
		}
		took := time.Since(since)
		if err == nil {
			err = e.Run(ctx, reading)
		}
		stop()
		if err == nil {
			return e, nil
		}
		if broken, ok := errors.AsType[*engine.Broken](err); ok {
			err = broken.Cause
			took += broken.Stalled
		}
		if errors.Is(err, engine.ErrHung) || !lived.again(ctx, err, took, h.limits) {
			return nil, err
		}
	}
}

// tellEnd makes the last event of a run whose plugin cannot be had.
func (h *Host) tellEnd(ctx context.Context, src engine.Journal, log *eventlog.Log, effects engine.Effects, schema string) (*engine.Engine, error) {
	e := engine.New(engine.Config{
		Journal: src, Log: log, Limits: h.limits.engine(), Start: &pb.Start{}, Schema: schema, Effects: effects, Mute: true,
	})
	return e, e.Finish(ctx, nil)
}

// ownSource is the journal of a dead run, which this process has taken over.
type ownSource struct {
	*os.File
	writer *journal.Writer
	told   bool
}

func (s *ownSource) sync() error { return rawio.Sync(s.File) }

func (s *ownSource) Alone() bool { return true }

func (s *ownSource) Committed() int64 { return s.writer.Size() }

func (s *ownSource) Wait(context.Context) error {
	if s.told {
		return errors.New("the journal has no end")
	}
	s.told = true
	return engine.ErrShimGone
}

// replayReading begins a conversation with the shared process of a plugin, or with one of
// its own. stop ends it.
func (h *Host) replayReading(ctx context.Context, plugin registry.Verified, own bool) (reading engine.Reading, stop func(), err error) {
	stop = func() {}
	var process *adapter.Process
	if own {
		process, err = h.plugins.start(ctx, plugin)
	} else {
		process, err = h.plugins.get(ctx, plugin)
	}
	if err != nil {
		return reading, stop, err
	}
	conv, leave, err := h.plugins.converse(ctx, process)
	if err == nil {
		reading.Conversation, reading.Leave = conv, leave
	}
	stop = func() {
		if leave != nil {
			leave()
		}
		if own {
			h.plugins.drop(process)
		}
	}
	return reading, stop, err
}

// replayPlugin returns the plugin to make a run's events with, and the agent as it
// describes it.
func (h *Host) replayPlugin(meta store.Meta, spec RunSpec, other *registry.Plugin) (registry.Verified, *pluginapi.Agent, error) {
	if other != nil {
		_, agent, err := registry.Choose([]registry.Plugin{*other}, spec.adapter())
		if err != nil {
			return registry.Verified{}, nil, err
		}
		verified, err := h.registry.Verify(*other)
		return verified, agent, err
	}
	path, err := h.registry.Pinned(meta.PluginHash)
	if err != nil {
		return registry.Verified{}, nil, err
	}
	plugin, agent, err := h.registry.Agent(spec.adapter())
	if err != nil {
		// The copy speaks for itself; only its capabilities are not known.
		agent, plugin = &pluginapi.Agent{Id: meta.Agent}, registry.Plugin{Name: meta.Plugin, Manifest: &registry.Manifest{}}
	}
	plugin.Name, plugin.Description = meta.Plugin, nil // what is installed now may be another version
	return registry.Verified{Plugin: plugin, Path: path, SHA256: meta.PluginHash}, agent, nil
}

// index adds a run that has ended to the user's index, and to that of its project if
// the user wants one there.
func (h *Host) index(meta store.Meta, end pluginapi.RunEnd, ended time.Time) {
	project := ""
	if slices.Contains(h.opts.IndexProjects, meta.Project) {
		project = meta.Project
	}
	line, err := json.Marshal(struct {
		Version   int              `json:"v"`
		RunID     string           `json:"run_id"`
		Name      string           `json:"name,omitempty"`
		Agent     string           `json:"agent"`
		SessionID string           `json:"session_id,omitempty"`
		State     string           `json:"state"`
		Code      pluginapi.Code   `json:"code,omitempty"`
		Cwd       string           `json:"cwd"`
		Project   string           `json:"project,omitempty"`
		Tags      []string         `json:"tags,omitempty"`
		Created   time.Time        `json:"created"`
		Ended     time.Time        `json:"ended"`
		Turns     int              `json:"turns"`
		Tokens    pluginapi.Tokens `json:"tokens"`
		Cost      *pluginapi.Money `json:"cost"`
	}{1, meta.RunID, meta.Name, meta.Agent, end.SessionID, end.State, end.Code, meta.Cwd, meta.Project, meta.Tags,
		meta.Created, ended.UTC(), end.Turns, end.Tokens, end.Cost})
	if err == nil {
		err = store.AppendIndex(h.opts.ConfigDir, project, line)
	}
	if err != nil {
		h.log.Named("index").Warn("run is not in the index", "run_id", meta.RunID, "project", project, "error", err)
	}
}
