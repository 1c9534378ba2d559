package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/notify"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/cmd/amux/internal/telemetry"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/serve"
	"github.com/amux-dev/amux/pluginapi"
)

// daemon is amux serve at work: a host for each world in which a run was started.
type daemon struct {
	process  *app.Process
	print    *app.Printer
	runs     *app.Runs
	idle     time.Duration
	queue    *host.Queue // of all worlds; nil: no limit
	self     os.FileInfo // of the executable, when it was started
	replaced chan bool
	closing  context.Context // ends with the daemon
	close    context.CancelFunc
	ending   sync.WaitGroup  // of runs without host and shim
	telling  context.Context // ends the hooks of runs
	hush     context.CancelFunc
	export   *telemetry.Exporters
	told     sync.WaitGroup // all that is to be told of runs

	mu      sync.Mutex
	worlds  map[string]*world
	busy    int       // requests in progress, and runs that live
	quiet   time.Time // since when it is 0
	leaving bool
}

// world is a host and how many of its runs live.
type world struct {
	host  app.Host
	at    serve.World
	busy  int
	quiet time.Time
	tried map[string]bool // runs without host and shim; only a command tries again, and reports what is wrong
	// refused is why runs could not be adopted at the last look.
	refused string
}

// enter counts a request in a world; leave ends it.
func (d *daemon) enter(w serve.World) (_ *world, leave func(), _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leaving {
		return nil, nil, serve.ErrNone
	}
	env := withoutRun(w.Env)
	key, err := json.Marshal([]any{w.ConfigDir, w.ProjectDir, w.TempDir, w.Plugins, w.AlwaysVerify, w.AutoMTLS, process.EnvValue(env, "AMUX_PLUGIN_DIR")})
	if err != nil {
		return nil, nil, err
	}
	at := d.worlds[string(key)]
	if at == nil {
		set, _ := settings.Load(w.ConfigDir, "") // its client has reported what is wrong
		h, err := d.process.NewHost(host.Options{
			ConfigDir: w.ConfigDir, ProjectDir: w.ProjectDir, RuntimeDir: d.process.RuntimeDir(), TempDir: w.TempDir,
			BundledDir: d.process.Beside("plugins"), BundledHashes: d.process.BundledHashes, Plugins: w.Plugins,
			ShimPath: d.process.Beside(app.ProgramName("amux-shim")), Env: env,
			AlwaysVerify: w.AlwaysVerify, AutoMTLS: w.AutoMTLS, Subreaper: true, Version: d.process.Version, Logger: d.print.Logger(),
			IndexProjects: set.ProjectIndex, Keep: app.KeepOf(set), Queue: d.queue,
		})
		if err != nil {
			return nil, nil, err
		}
		at = &world{host: h, at: w, tried: map[string]bool{}}
		d.worlds[string(key)] = at
	}
	at.busy++
	d.busy++
	return at, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		at.busy--
		d.busy--
		at.quiet, d.quiet = time.Now(), time.Now()
	}, nil
}

// handle answers one request.
func (d *daemon) handle(ctx context.Context, req serve.Request) (reply serve.Reply) {
	fail := func(err error) serve.Reply {
		e := pluginapi.AsError(err)
		reply.Error = &serve.Error{Code: e.Code, Op: e.Op, Msg: e.Msg, Hint: e.Hint}
		return reply
	}
	if req.Op == serve.OpRun && d.outdated() {
		reply.Leaving = true
		return reply
	}
	at, leave, err := d.enter(req.World)
	if errors.Is(err, serve.ErrNone) {
		reply.Leaving = true
		return reply
	}
	if err != nil {
		return fail(err)
	}
	defer leave()
	switch {
	case req.Op == serve.OpAdopt:
		if err = d.adopt(ctx, at, req.Adopt...); len(req.Adopt) == 0 { // else the others with the next look
			d.end(at)
		}
	case req.Op == serve.OpRun && req.Run != nil:
		reply.RunID, err = d.run(ctx, at, req)
	default:
		err = app.Usagef(app.Misunderstood+"%s, does not know %q", d.process.Version, req.Op)
	}
	if err != nil {
		return fail(err)
	}
	return reply
}

// outdated reports that another build has replaced this one, with other plugins and
// another shim. This one leaves, and the next one adopts its runs; nobody could adopt
// queued runs, so this one stays for those.
func (d *daemon) outdated() bool {
	if d.self == nil || d.queue.Waiting() > 0 {
		return false
	}
	now, err := os.Stat(d.process.Executable)
	if err == nil && os.SameFile(now, d.self) && now.ModTime().Equal(d.self.ModTime()) {
		return false
	}
	d.mu.Lock()
	d.leaving = true
	d.mu.Unlock()
	select {
	case d.replaced <- true:
	default:
	}
	return true
}

func (d *daemon) run(ctx context.Context, at *world, req serve.Request) (string, error) {
	var spec host.RunSpec
	in := json.NewDecoder(bytes.NewReader(req.Run.Spec))
	in.DisallowUnknownFields() // an option of a later amux must not be ignored
	if err := in.Decode(&spec); err != nil {
		return "", app.Usagef(app.Misunderstood+"%s, does not understand the run: %v", d.process.Version, err)
	}
	spec.Env, spec.Environ, spec.Umask, spec.Detached = req.Run.Env, req.World.Env, req.World.Umask, true
	for i := range spec.MCPServers {
		if i < len(req.Run.MCP) {
			spec.MCPServers[i].Env, spec.MCPServers[i].Headers = req.Run.MCP[i].Env, req.Run.MCP[i].Headers
		}
	}
	set := userSettings(req.World.ConfigDir, spec.Profile)
	spec.Prepare = notify.Before(set.Hooks, withoutRun(req.World.Env))
	spec.Trace = telemetry.Trace(set.Telemetry, req.World.Env, spec)
	run, err := at.host.Start(ctx, spec)
	if err != nil {
		return "", err
	}
	if spec.Trace != nil {
		// An adopted run has its exporter, which outlives servers.
		d.export.Follow(set.Telemetry, req.World.Env, req.World.ConfigDir, run.Info())
	}
	d.watch(at, run, !spec.NoRecord, d.watcher(at, run, req.World.Env, 1))
	return run.ID(), nil
}

// adopt takes up the runs that have lost their host, or those of them that are named.
func (d *daemon) adopt(ctx context.Context, at *world, refs ...string) error {
	runs, err := at.host.Adopt(ctx, refs...)
	for _, run := range runs {
		d.watch(at, run, true, d.watcher(at, run, at.at.Env, run.Info().Events+1))
	}
	return err
}

// end ends the runs that have neither a host nor a shim: those that ended while no server
// lived, or before this one could adopt them. It does not wait for that. The caller is in
// the world.
func (d *daemon) end(at *world) {
	ids := at.host.Abandoned()
	todo := make(chan string, len(ids))
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if !at.tried[id] && !d.leaving {
			at.tried[id] = true
			todo <- id
		}
	}
	close(todo)
	for range min(endAtOnce, len(todo)) {
		at.busy++
		d.busy++
		d.ending.Go(func() {
			for id := range todo {
				if _, err := at.host.RecoverRun(d.closing, id); err != nil && d.closing.Err() == nil {
					d.print.Notef("error: %v", err)
				}
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			at.busy--
			d.busy--
			at.quiet, d.quiet = time.Now(), time.Now()
		})
	}
}

// watcher returns what notifies about a run, from event number from on, until it has ended.
func (d *daemon) watcher(at *world, run app.Run, env []string, from uint64) func() {
	set := userSettings(at.at.ConfigDir, run.Info().Spec.Profile)
	w := notify.Watcher{Settings: set.Notify, Hooks: set.Hooks, Env: withoutRun(env), Warn: func(format string, args ...any) {
		d.print.Warnf("run "+render.ShortID(run.ID())+": "+format, args...)
	}}
	return func() {
		if w.Needed() {
			w.Watch(d.telling, run, from)
		}
	}
}

// userSettings are the user's with a profile, which may have been removed meanwhile. What is
// wrong with them, commands report.
func userSettings(configDir, profile string) settings.Settings {
	set, err := settings.LoadProfile(configDir, "", cmp.Or(profile, settings.NoProfile))
	if err != nil {
		set, _ = settings.LoadProfile(configDir, "", settings.NoProfile)
	}
	return set
}

// watch counts a run for as long as it lives. The caller is in the world.
func (d *daemon) watch(at *world, run app.Run, recorded bool, notified func()) {
	d.mu.Lock()
	at.busy++
	d.busy++
	d.mu.Unlock()
	d.told.Add(1)
	go func() { // ends with the run, or with the host
		notified()
		d.told.Done()
		run.Wait(context.Background())
		if recorded {
			d.runs.Retain(at.host, retainTime)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		at.busy--
		d.busy--
		at.quiet, d.quiet = time.Now(), time.Now()
	}()
}

// look adopts runs that have lost their host, closes hosts that nobody needs, and
// reports whether it is time to leave.
func (d *daemon) look() (leave bool) {
	d.mu.Lock()
	var all, over []*world
	for key, at := range d.worlds {
		if at.busy == 0 && time.Since(at.quiet) > max(d.idle, serveIdle) {
			delete(d.worlds, key)
			over = append(over, at)
			continue
		}
		at.busy++
		all = append(all, at)
	}
	d.mu.Unlock()
	for _, at := range over {
		app.CloseHost(at.host)
	}
	for _, at := range all {
		said := ""
		if len(at.host.Orphans()) > 0 {
			if err := d.adopt(context.Background(), at); err != nil {
				said = err.Error()
			}
		}
		if said != "" && said != at.refused {
			d.print.Notef("error: %s", said)
		}
		at.refused = said // tried again with the next look: said once
		d.end(at)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range all {
		at.busy--
	}
	d.leaving = d.idle > 0 && d.busy == 0 && time.Since(d.quiet) >= d.idle
	return d.leaving
}

// retainTime bounds how long old records are removed. Nobody waits for that: where many are
// too many, because they ended while no server was there, it may take long.
const retainTime = 5 * time.Minute

// hooksTime is how long hooks of runs that have ended keep the process.
const hooksTime = 30 * time.Second

// leave closes the hosts. Their runs go on.
func (d *daemon) leave(server *serve.Server) {
	d.mu.Lock()
	d.leaving = true
	all := d.worlds
	d.mu.Unlock()
	server.HangUp()
	d.close()
	defer d.export.Close()
	d.ending.Wait() // else they would end without their plugins
	if n := d.queue.Waiting(); n > 0 {
		d.print.Notef("%s in the queue: canceled, because no other server can start them", render.Plural(n, "run"))
	}
	var closing sync.WaitGroup
	for _, at := range all {
		closing.Go(func() { app.CloseHost(at.host) }) // cancels what is being started
	}
	closing.Wait()
	server.Close() // another one may serve
	defer time.AfterFunc(hooksTime, d.hush).Stop()
	d.told.Wait()
}

// withoutRun is an environment without the mark of a run.
func withoutRun(env []string) []string {
	var rest []string
	for _, variable := range env {
		if len(variable) <= len(process.RunEnv) || variable[:len(process.RunEnv)+1] != process.RunEnv+"=" {
			rest = append(rest, variable)
		}
	}
	return rest
}
