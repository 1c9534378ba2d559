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
	"github.com/amux-dev/amux/host/journal"
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
		if meta, err := dir.ReadMeta(); err == nil && isDetached(meta) && orphaned(dir) {
			ids = append(ids, id)
		}
	}
	return ids
}

func isDetached(meta store.Meta) bool {
	var spec struct{ Detached bool }
	return json.Unmarshal(meta.Spec, &spec) == nil && spec.Detached
}

// orphaned reports that the shim of a detached run is all that it has.
func orphaned(dir *store.Run) bool {
	shimInfo, err := shim.ReadInfo(dir.Dir)
	return err == nil && shimLives(shimInfo) && !dir.Held()
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
	if err != nil || !isDetached(meta) {
		return nil, nil // Recover's, or another host is making it
	}
	if shimInfo, err := shim.ReadInfo(dir.Dir); err != nil || !shimLives(shimInfo) {
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
			r.src.close()
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
	r.src = &liveSource{edges: &h.edges, file: file, path: dir.Path("journal"), conn: r.shim.conn}
	past, err := readPast(r.src)
	if err != nil {
		return nil, fail(err)
	}
	r.inherited.fault = past.fault
	state := cmp.Or(past.state, engine.Starting)
	if r.log, err = h.edges.log(dir.Path("events.jsonl"), meta); err != nil {
		return nil, fail(err)
	}
	r.plugin = plugins.Service{Pool: h.plugins, Verified: registry.Verified{
		Plugin: registry.Plugin{Name: meta.Plugin, Manifest: &registry.Manifest{}}, SHA256: meta.PluginHash,
	}}
	if plugin, agent, _, err := h.catalog.find(meta.Agent, r.spec.Launch); err == nil {
		plugin.Name, plugin.Description = meta.Plugin, nil // what is installed now may be another version
		r.agent, r.plugin.Verified.Plugin = agent, plugin
	}
	if !past.prompted && (r.spec.Prompt != "" || !r.spec.Conversation) {
		// Its host died between the agent's start and the first prompt, or while the
		// shim was about to start it.
		in := firstInput(past.attempt, engine.OptionsOf(r.spec.options(r.agent), past.retry).Prompt)
		r.inherited.prompt, r.inherited.attempt = &in, past.attempt
	}
	r.attempts.run, r.attempts.place, r.attempts.queued = r, h.opts.Queue.takeNow(), state == engine.Queued
	r.engine = r.newEngine(state)
	r.begin(context.WithoutCancel(ctx))
	return r.self, nil
}

// past is what the host of a run has to know of what was before it, and the engine
// does not tell it.
type past struct {
	state    string // the last that was recorded
	fault    *journal.Fault
	attempt  int            // the last
	retry    *journal.Retry // what it follows, if it is not the first
	agents   bool           // an agent was started, in whatever attempt
	spawned  bool
	prompted bool
}

// readPast reads a journal from its start.
func readPast(src engine.Journal) (past, error) {
	var p past
	reader, err := journal.NewReader(src)
	if err != nil {
		return p, err
	}
	for {
		rec, err := reader.Next(src.Committed())
		if err != nil {
			return p, nil // the end, or a torn tail
		}
		switch rec.Kind {
		case journal.KindState:
			var state journal.State
			err = rec.Decode(&state)
			p.state = state.To
		case journal.KindRetry:
			p.retry, p.spawned, p.prompted = &journal.Retry{}, false, false
			err = rec.Decode(p.retry)
		case journal.KindPlan:
			var plan journal.Plan
			err = rec.Decode(&plan)
			p.attempt = plan.Attempt
		case journal.KindSpawned:
			p.agents, p.spawned = true, true
		case journal.KindInput:
			var in journal.Input
			err = rec.Decode(&in)
			p.prompted = p.prompted || in.First
		case journal.KindFault:
			p.fault = &journal.Fault{}
			err = rec.Decode(p.fault)
		}
		if err != nil {
			return p, err
		}
	}
}
