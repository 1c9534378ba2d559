package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/host/internal/plugins"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/pluginapi"
)

// Adopt takes up the detached runs whose host is gone while their shim lives:
// this host is theirs from now on, and what they did meanwhile is told. Of several
// hosts that try, one gets a run. Runs whose shim is gone as well are for
// Recover. The error speaks of the runs that are not in the list.
func (h *Host) Adopt(ctx context.Context) (adopted []*Run, _ error) {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, id := range h.store.Active() {
		if ctx.Err() != nil {
			errs = append(errs, ctx.Err())
			break
		}
		r, err := h.recovery.adopt(ctx, id)
		if err != nil {
			errs = append(errs, err)
		}
		if r != nil {
			adopted = append(adopted, r)
		}
	}
	return adopted, leave(errors.Join(errs...))
}

// Orphans lists the detached runs that Adopt would take up.
func (h *Host) Orphans() []string {
	var ids []string
	for _, id := range h.store.Active() {
		if h.runs.has(id) {
			continue
		}
		dir := h.store.Run(id)
		if meta, err := dir.ReadMeta(); err == nil && record.Detached(meta) && record.Orphaned(dir) {
			ids = append(ids, id)
		}
	}
	return ids
}

// lockTries is how often the lock of a run is tried for that somebody holds who
// may only be looking.
const lockTries = 5

// adopt takes up one run. nil and no error: it is not for this host.
func (c *recovery) adopt(ctx context.Context, id string) (_ *Run, retErr error) {
	h := c.host
	if h.runs.has(id) {
		return nil, nil
	}
	dir := h.store.Run(id)
	meta, err := dir.ReadMeta()
	if err != nil || !record.Detached(meta) {
		return nil, nil // Recover's, or another host is making it
	}
	if shimInfo, err := shim.ReadInfo(dir.Dir); err != nil || !record.ShimLives(shimInfo) {
		return nil, nil
	}
	for try := 1; ; try++ {
		err := dir.Lock()
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrLocked) {
			return nil, folders.Error("folder of the run", dir.Dir, err)
		}
		if try == lockTries {
			return nil, nil
		}
		time.Sleep(time.Millisecond)
	}
	fail := func(err error) error {
		return pluginapi.Errorf(pluginapi.AsError(err).Code, "take up run %s: %w", id, err)
	}
	r := &hosted{
		recorded:  &recorded{h: h, meta: meta, dir: dir, agent: &pluginapi.Agent{Id: meta.Agent}},
		inherited: &inherited{}, done: make(chan struct{}),
	}
	r.self = &Run{r.recorded, r}
	defer func() {
		if retErr == nil {
			return
		}
		if r.log != nil {
			r.log.Close()
		}
		if r.src != nil {
			r.src.Close()
		}
		if r.shim.conn != nil {
			r.shim.conn.Close()
		}
		dir.Unlock()
	}()
	if err := json.Unmarshal(meta.Spec, &r.spec); err != nil {
		return nil, fail(err)
	}
	if err := h.prepare(); err != nil {
		return nil, err
	}
	shimInfo, err := shim.ReadInfo(dir.Dir) // under the lock: it is the run's own
	if err != nil {
		return nil, fail(err)
	}
	dialCtx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	start, _ := process.Start(os.Getpid())
	r.shim.conn, err = h.edges.dial.DialHost(dialCtx, shimInfo, shim.Hello{HostDir: h.plugins.Folder, HostPID: os.Getpid(), HostStart: start})
	if errors.Is(err, shim.ErrGone) {
		dir.Unlock()
		return nil, nil // it has just left: Recover's
	}
	if err != nil {
		return nil, fail(err)
	}
	r.shim.info = shimInfo
	file, err := h.edges.journal(dir)
	if err != nil {
		return nil, fail(err)
	}
	r.src = &record.Live{File: file, Conn: r.shim.conn, Write: h.edges.writer(dir)}
	past, err := record.ReadPast(r.src)
	if err != nil {
		return nil, fail(err)
	}
	r.inherited.fault = past.Fault
	state := cmp.Or(past.State, engine.Starting)
	if r.log, err = h.edges.log(dir, meta); err != nil {
		return nil, fail(err)
	}
	r.plugin = plugins.Service{Pool: h.plugins, Verified: registry.Verified{
		Plugin: registry.Plugin{Name: meta.Plugin, Manifest: &registry.Manifest{}}, SHA256: meta.PluginHash,
	}}
	if plugin, agent, _, err := h.catalog.find(meta.Agent, r.spec.Launch); err == nil {
		plugin.Name, plugin.Description = meta.Plugin, nil // what is installed now may be another version
		r.agent, r.plugin.Verified.Plugin = agent, plugin
	}
	if !past.Prompted && (r.spec.Prompt != "" || !r.spec.Conversation) {
		// Its host died between the agent's start and the first prompt, or while the
		// shim was about to start it.
		in := firstInput(past.Attempt, engine.OptionsOf(r.spec.options(r.agent), past.Retry).Prompt)
		r.inherited.prompt, r.inherited.attempt = &in, past.Attempt
	}
	r.attempts.run, r.attempts.place, r.attempts.queued = r, h.opts.Queue.takeNow(), state == engine.Queued
	r.engine = r.newEngine(state)
	r.begin(context.WithoutCancel(ctx))
	return r.self, nil
}
