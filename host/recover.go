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
func (h *Host) hosts(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[id] != nil
}

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
	exited := func(p *pump) error {
		p.mu.Lock()
		if exit, ok := readExit(dir.Path("exit")); ok {
			p.ledger.take(exit)
		}
		end := p.ledger.verdict(spec.JSONSchema)
		p.mu.Unlock()
		return writer.Append(journal.KindState, journal.Encode(end))
	}
	p, err := h.retell(ctx, meta, nil, src, log, exited)
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
		p, err = h.tellEnd(ctx, src, log, exited)
	}
	if err != nil {
		return fail(err)
	}
	p.mu.Lock()
	ended := p.ledger.ended
	p.mu.Unlock()
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

// retell makes the events of a recorded run that log does not have, with another
// plugin than the run's if there is one. The plugin may die of other runs, so that it
// gets a few more chances in a process of its own.
func (h *Host) retell(ctx context.Context, meta store.Meta, other *registry.Plugin, src source, log *eventlog.Log, exited func(*pump) error) (*pump, error) {
	var past lives
	for attempt := 1; ; attempt++ {
		since := time.Now()
		p, stop, err := h.replayPump(ctx, meta, other, src, log, attempt > 1)
		took := time.Since(since)
		if err == nil {
			p.exited = exited
			err = p.run(ctx)
			took += p.watchdog.stalled()
		}
		stop()
		if err == nil {
			return p, nil
		}
		if broken, ok := errors.AsType[*errConversation](err); ok {
			err = broken.cause
		}
		if errors.Is(err, errHung) || !past.again(ctx, err, took, h.limits) {
			return nil, err
		}
		log.Rollback()
	}
}

// tellEnd makes the last event of a run whose plugin cannot be had.
func (h *Host) tellEnd(ctx context.Context, src source, log *eventlog.Log, exited func(*pump) error) (*pump, error) {
	log.Rollback()
	p, err := h.newPump(src, log, log.Count())
	if err != nil {
		return nil, err
	}
	p.start, p.mute, p.exited = &pb.Start{}, true, exited
	p.alone = func() bool { return true }
	return p, p.run(ctx)
}

// ownSource is the journal of a dead run, which this process has taken over.
type ownSource struct {
	*os.File
	writer *journal.Writer
	told   bool
}

func (s *ownSource) sync() error { return rawio.Sync(s.File) }

func (s *ownSource) Committed() int64 { return s.writer.Size() }

func (s *ownSource) Wait(context.Context) error {
	if s.told {
		return errors.New("the journal has no end")
	}
	s.told = true
	return errShimGone
}

// replayPump makes a pump over a recorded journal with the plugin that the run
// was started with, or with another.
func (h *Host) replayPump(ctx context.Context, meta store.Meta, other *registry.Plugin, src source, log *eventlog.Log, own bool) (*pump, func(), error) {
	stop := func() {}
	p, err := h.newPump(src, log, log.Count())
	if err != nil {
		return nil, stop, err
	}
	var spec RunSpec
	if err := json.Unmarshal(meta.Spec, &spec); err != nil {
		return nil, stop, err
	}
	past, err := readPast(src)
	if err != nil {
		return nil, stop, err
	}
	if past.fault != nil {
		p.heard = past.fault.Done // the adapter is not heard any more
	}
	p.start = &pb.Start{Agent: spec.adapter()}
	p.effect = func(*pb.Output, []byte) {} // what is over is not done again
	p.alone = func() bool { return true }
	if p.heard == 0 {
		return p, stop, nil // the adapter was never heard
	}
	if err := h.prepare(); err != nil {
		return nil, stop, err
	}
	verified, agent, err := h.replayPlugin(meta, spec, other)
	if err != nil {
		return nil, stop, err
	}
	p.start.Options = spec.recorded(agent)
	var process *adapter.Process
	if own {
		process, err = h.plugins.start(ctx, verified)
	} else {
		process, err = h.plugins.get(ctx, verified)
	}
	if err != nil {
		return nil, stop, err
	}
	p.conv, p.leave, err = h.plugins.converse(ctx, process)
	stop = func() {
		if p.leave != nil {
			p.leave()
		}
		if own {
			h.plugins.drop(process)
		}
	}
	return p, stop, err
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
