package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/host/internal/plugins"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/eventlog"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
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
		if err := h.recovery.recoverOne(ctx, id); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// RecoverRun is Recover for one run, whatever its name or id. It costs nothing where
// the run has ended or is hosted, and reports whether it is one that Adopt would take
// up. A run that does not exist is no error.
func (h *Host) RecoverRun(ctx context.Context, ref string) (orphan bool, err error) {
	dir, err := h.archive.Find(ref)
	if errors.Is(err, record.ErrNone) {
		return false, nil
	}
	if err != nil || !dir.Active() || h.runs.has(dir.ID) {
		return false, err
	}
	if err := h.recovery.recoverOne(ctx, dir.ID); err != nil {
		return false, err
	}
	meta, err := dir.ReadMeta()
	return err == nil && dir.Active() && record.Detached(meta) && record.Orphaned(dir), nil
}

// AnyUnhosted reports whether Recover or Adopt may have something to do: some run that is marked as not
// ended has no host, or no shim that lives. Where all have both it costs half of what Recover does, and of a
// run that has just begun it may be true.
func AnyUnhosted(h *Host) bool {
	return slices.ContainsFunc(h.store.Active(), func(id string) bool {
		return !h.runs.has(id) && !record.Attended(h.store.Run(id))
	})
}

// Abandoned lists the runs that have no end, and neither a host nor a shim that lives:
// RecoverRun ends them.
func (h *Host) Abandoned() []string {
	var ids []string
	for _, id := range h.store.Active() {
		if h.runs.has(id) {
			continue
		}
		dir := h.store.Run(id)
		if dir.Held() {
			continue
		}
		if _, lives := record.Shim(dir); !lives {
			ids = append(ids, id)
		}
	}
	return ids
}

// recovery ends runs whose host has died, and takes up those that go on without.
type recovery struct {
	host *Host

	mu    sync.Mutex
	named int           // runs that are taken up for somebody who waits for them
	none  chan struct{} // closed when there are no more
}

// hurry has others wait with what is not begun, until the returned function is called. A shim
// that does not answer holds them up no longer than longestHurry.
func (c *recovery) hurry() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.named++; c.named == 1 {
		c.none = make(chan struct{})
	}
	over := sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.named--; c.named == 0 {
			close(c.none)
		}
	})
	timer := time.AfterFunc(longestHurry, over)
	return func() { timer.Stop(); over() }
}

const longestHurry = 200 * time.Millisecond

// giveWay waits while anybody is in a hurry.
func (c *recovery) giveWay(ctx context.Context) error {
	for {
		c.mu.Lock()
		named, none := c.named, c.none
		c.mu.Unlock()
		if named == 0 {
			return ctx.Err()
		}
		select {
		case <-none:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sweep clears up after hosts that were killed.
func (c *recovery) sweep() {
	plugins.SweepFolders(c.host.opts.RuntimeDir)
	c.host.sweeping.Go(c.host.SweepOrphans)
	if supervision, err := Supervision(false); err == nil && c.host.registry.Dir() != "" {
		c.host.sweeping.Go(install.New(install.Options{Dir: c.host.registry.Dir(), Supervision: supervision}).ClearUp)
	}
}

func (c *recovery) recoverOne(ctx context.Context, id string) error {
	dir := c.host.store.Run(id)
	if record.Attended(dir) {
		return nil // as most often: it has all that it needs
	}
	err := c.recoverRun(ctx, id)
	if errors.Is(err, store.ErrLocked) {
		c.host.sweeping.Wait() // perhaps it was this host that looked
		err = c.recoverRun(ctx, id)
	}
	// Somebody else tries to record the end of a run whose disk was full: that is there in a
	// moment, or it is for us to try.
	for deadline := time.Now().Add(othersTry); errors.Is(err, store.ErrLocked) && time.Now().Before(deadline); {
		info, unread := record.Inspect(c.host.store.Run(id))
		if unread != nil || info.End != nil || info.Code != pluginapi.CodeDiskFull {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
		err = c.recoverRun(ctx, id)
	}
	if errors.Is(err, store.ErrLocked) {
		return nil
	}
	return err
}

// othersTry is how long somebody who records the end of a run is waited for.
const othersTry = time.Second

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
		if _, lives := record.Shim(dir); !lives {
			h.edges.sweep(meta)
		}
		dir.Unlock()
	}
}

// recoverRun finishes one run that is marked active.
func (c *recovery) recoverRun(ctx context.Context, id string) error {
	dir := c.host.store.Run(id)
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
			c.host.log.Named("run").Warn("run has a journal and no run.json", "run_id", id)
			dir.MarkEnded()
			return nil
		}
		return dir.Remove() // its host died before it had begun
	}
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "run %s: %w", id, err)
	}
	if _, lives := record.Shim(dir); !lives {
		if err := PlacesOf(c.host).revive(dir, meta, record.Detached(meta)); err != nil {
			return pluginapi.Errorf(pluginapi.CodeSpawn, "run %s at another place: %w", id, err)
		}
	}
	if info, lives := record.Shim(dir); lives {
		// A detached one is for a host that serves: see Adopt. That of a foreground
		// run leaves within moments of its host's death.
		if record.Detached(meta) || !record.WaitGone(ctx, info) {
			return nil
		}
	}
	c.host.edges.sweep(meta)
	_ = os.RemoveAll(meta.TempDir)
	_ = os.Remove(folders.Socket(c.host.opts.RuntimeDir, id))
	return c.conclude(ctx, dir, meta)
}

// conclude makes the last events of a run that nothing writes any more.
func (c *recovery) conclude(ctx context.Context, dir *store.Run, meta store.Meta) error {
	fail := func(err error) error {
		return pluginapi.Errorf(pluginapi.AsError(err).Code, "recover run %s: %w", meta.RunID, err)
	}
	writer, err := c.host.edges.writer(dir)()
	if err != nil {
		return fail(err)
	}
	defer writer.Close()
	log, err := c.host.edges.log(dir, meta)
	if err != nil {
		return fail(err)
	}
	defer log.Close()
	file, err := c.host.edges.journal(dir)
	if err != nil {
		return fail(err)
	}
	defer file.Close()
	src := &record.Own{File: file, Writer: writer}
	told := engine.Summary{Usage: record.ReadUsage(dir)}
	if info, err := record.Read(dir); err == nil && info.End != nil {
		told.Ended = *info.Ended // its host died with nothing left to tell
	} else if told, err = c.tellRest(ctx, dir, meta, src, log); err != nil {
		return fail(err)
	}
	if mode := syncMode(meta, c.host.opts); mode != SyncOff {
		_ = errors.Join(src.Sync(), log.Sync()) // a disk that fails is told by whoever reads
	}
	log.Finish() // else its last event would be waited for
	var end pluginapi.RunEnd
	_ = log.From(log.Count()).Lines(ctx, func(line []byte) bool { return json.Unmarshal(line, &end) == nil })
	changesOf(dir, c.host.opts.Env).End(ctx)
	c.host.archive.Index(meta, end, told.Ended, told.Usage.Models)
	dir.MarkEnded()
	return nil
}

// tellRest makes the events that the log of a run lacks, and returns what they say.
func (c *recovery) tellRest(ctx context.Context, dir *store.Run, meta store.Meta, src *record.Own, log *eventlog.Log) (told engine.Summary, err error) {
	effects := deadRun{writer: src.Writer, dir: dir}
	e, err := c.host.teller.retell(ctx, meta, nil, src, log, effects)
	if err != nil && ctx.Err() == nil && pluginapi.AsError(err).Code != pluginapi.CodeDiskFull && !fault.Full(err) {
		if cut := log.Cut(); cut != nil {
			// They would have been made again.
			damage := record.Lost(cut)
			if err := src.Writer.Append(journal.KindDamage, journal.Encode(damage)); err != nil {
				return told, err
			}
		}
		// Without its plugin a run ends all the same, and says what is missing.
		c.host.log.Named("run").Warn("the rest of the run's events cannot be told", "run_id", meta.RunID, "error", err)
		err = c.tellEnd(ctx, meta, src, e, err)
	}
	if err != nil {
		return told, err
	}
	return e.Summary(), nil
}

// tellEnd makes the end of a run whose plugin cannot go on, or cannot be had. If it ever had
// an agent, events of that are missing.
func (c *recovery) tellEnd(ctx context.Context, meta store.Meta, src *record.Own, e *engine.Engine, cause error) error {
	past, err := record.ReadPast(src)
	if err != nil {
		return err
	}
	if !past.Started || past.Fault != nil || engine.Terminal(past.State) {
		return e.Finish(ctx, nil)
	}
	broken, ok := errors.AsType[*engine.Broken](cause)
	if !ok {
		broken = &engine.Broken{Cause: cause}
	}
	why := faultOf(broken, meta.Plugin)
	why.Done, why.Behind = e.Answered(), !e.CaughtUp()
	if err := src.Writer.Append(journal.KindFault, journal.Encode(why)); err != nil {
		return err
	}
	return e.Finish(ctx, &why)
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
	if exit, ok := record.ReadExit(d.dir.Path("exit")); ok {
		settled.Exit = &exit
	}
	return settled, nil
}

// Adopt takes up the detached runs whose host is gone while their shim lives:
// this host is theirs from now on, and what they did meanwhile is told. Of several
// hosts that try, one gets a run. Runs whose shim is gone as well are for
// Recover. The error speaks of the runs that are not in the list.
func (h *Host) Adopt(ctx context.Context) (adopted []*Run, _ error) {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	ids := h.store.Active()
	runs, errs := make([]*Run, len(ids)), make([]error, len(ids))
	next := make(chan int)
	var group sync.WaitGroup
	for range min(adoptAtOnce, len(ids)) {
		group.Go(func() {
			for i := range next {
				runs[i], errs[i] = h.recovery.adopt(ctx, ids[i])
			}
		})
	}
	for i := range ids {
		if errs[i] = h.recovery.giveWay(ctx); errs[i] != nil {
			break
		}
		next <- i
	}
	close(next)
	group.Wait()
	adopted = slices.DeleteFunc(runs, func(r *Run) bool { return r == nil })
	return adopted, leave(errors.Join(errs...))
}

// AdoptRun is Adopt for one run, whatever its name or id, for somebody who waits for it: an Adopt of all that
// is at work begins no other one meanwhile. nil and no error: it is not for this host, or is being
// taken up.
func AdoptRun(ctx context.Context, h *Host, ref string) (_ *Run, err error) {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = leave(err) }()
	dir, err := h.archive.Find(ref)
	if errors.Is(err, record.ErrNone) {
		return nil, nil
	}
	if err != nil || !dir.Active() {
		return nil, err
	}
	defer h.recovery.hurry()()
	return h.recovery.adopt(ctx, dir.ID)
}

// adoptAtOnce is how many runs are taken up at a time: each waits for an answer of its shim.
const adoptAtOnce = 16

// Orphans lists the detached runs that Adopt would take up.
func (h *Host) Orphans() []string {
	var ids []string
	for _, id := range h.store.Active() {
		if h.runs.has(id) {
			continue
		}
		if dir := h.store.Run(id); record.Orphaned(dir) {
			if meta, err := dir.ReadMeta(); err == nil && record.Detached(meta) {
				ids = append(ids, id)
			}
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
	if _, lives := record.Shim(dir); !lives {
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
	if err := prepare(h); err != nil {
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
	r.src = &record.Live{File: file, Conn: r.shim.conn, Write: PlacesOf(h).takeOver(dir, meta)}
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
	r.attempts.run, r.attempts.slot, r.attempts.queued = r, h.opts.Queue.takeNow(), state == engine.Queued
	r.engine = r.newEngine(state)
	r.begin(context.WithoutCancel(ctx))
	return r.self, nil
}
